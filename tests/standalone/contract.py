"""The letters keep compression's contract, and can be compressed and reviewed.

Run by Django's own runner under these settings; see tests/compression/test_standalone.py.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import User
from django.test import TransactionTestCase
from django.urls import reverse

from compression import masking
from compression.contract import ContractTests
from compression.database import in_database_thread
from compression.ports import Masks, Transcript
from compression.recall.quoting import numbers
from tests.standalone.letters.compressing import COUNTER, Letters, make_room
from tests.standalone.letters.masks import LetterMasks
from tests.standalone.letters.models import Digest, Letter, Thread
from tests.standalone.letters.recalling import tools


class LettersTests(ContractTests, TransactionTestCase):
    """The contract, on threads of letters."""

    transcript: ClassVar[Transcript] = Letters()
    masks: ClassVar[Masks | None] = LetterMasks()

    def start(self) -> int:
        """A thread."""
        return int(Thread.objects.create(subject="Words").pk)

    def say(self, conversation_id: int, role: str, text: str) -> int:
        """A letter."""
        number = Letter.objects.filter(thread=conversation_id).count() + 1
        Letter.objects.create(
            thread_id=conversation_id,
            number=number,
            role=role,
            text=text,
            tokens=COUNTER.count(text) + 4,
        )
        return number

    def take_back(self, conversation_id: int, seq: int) -> None:
        """A letter is withdrawn."""
        Letter.objects.filter(thread=conversation_id, number=seq).update(withdrawn=True)

    def _long_thread(self) -> int:
        thread = self.start()
        for number in range(60):
            self.say(thread, "assistant" if number % 2 else "user", "Dear friend, " * 40)
        return thread

    async def test_the_readme_s_own_call_makes_room(self) -> None:
        """``make_room`` is all that a host calls."""
        thread_id = await in_database_thread(self._long_thread)()
        await make_room(thread_id)
        thread = await Thread.objects.aget(pk=thread_id)
        assert "Letters were exchanged." in thread.compressed_context
        assert 0 < thread.compressed_through < 60

    async def test_old_results_are_masked_before_anything_is_compressed(self) -> None:
        """The calls of the document mask at the soft threshold, and what is sent is shorter."""
        thread_id = await in_database_thread(self._thread_with_results)()
        await make_room(thread_id)
        letters = await in_database_thread(Letters().items)(thread_id, after_seq=0)
        assert [item.seq for item in letters if item.masked] == [2, 5, 8, 11]
        assert (await Thread.objects.aget(pk=thread_id)).compressed_through == 0
        sent = [masking.as_sent(item).text for item in letters if item.masked]
        line = "[tool result masked: 601 lines, starts with: a line]\n"
        assert sent == [line + ("a line\n" * 30)[:200]] * 4

    def _thread_with_results(self) -> int:
        thread = self.start()
        for _ in range(6):
            for role, text in (("user", "Look."), ("tool", "a line\n" * 600), ("assistant", "So.")):
                self.say(thread, role, text)
        return thread

    async def test_a_model_looks_up_what_the_digest_leaves_out(self) -> None:
        """Breaks when: recall needs anything of the chat, or reads letters that the model sees."""
        thread_id = await in_database_thread(self._long_thread)()
        await in_database_thread(self.say)(thread_id, "user", "The ferry leaves at nine.")
        search, read = tools(thread_id)
        arguments = {"query": "When does the ferry leave?"}
        assert not numbers(await search.run(arguments))
        through = Thread.objects.filter(pk=thread_id)
        await through.aupdate(compressed_through=61)
        assert 61 in numbers(await search.run(arguments))
        answer = await read.run({"first": 61, "last": 61})
        assert "The ferry leaves at nine." in answer
        assert COUNTER.count(answer) <= (read.most_tokens or 0)

    def test_a_digest_can_be_reviewed(self) -> None:
        """The admin mixin shows a version of this host's."""
        User.objects.create_superuser("reviewer", password="x")
        self.client.login(username="reviewer", password="x")
        thread = Thread.objects.get(pk=self.start())
        digest = Digest.objects.create(
            conversation=thread, version=1, status="active", trigger="manual", text="Hello"
        )
        page = reverse("admin:letters_digest_change", args=[digest.pk])
        assert self.client.get(page).status_code == 200
        assert self.client.get(reverse("admin:letters_digest_changelist")).status_code == 200
        review = reverse("admin:letters_digest_review", args=[digest.pk])
        assert "Hello" in self.client.get(review).content.decode()
        answer = self.client.post(review, {"action": "approve", "review": "seen"})
        assert answer.status_code == 302
        assert Digest.objects.get().review == "approved"
