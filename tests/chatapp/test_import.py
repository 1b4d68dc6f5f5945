"""``manage.py import_messages``: from a file to a conversation, whole or not at all, and once."""

from __future__ import annotations

import io
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections

from chatapp.actions.importing import ImportReport, import_openai_messages
from chatapp.context.tokens import message_tokens
from chatapp.conversations.imports.storing import store_import
from chatapp.models import Connection, Conversation, Message, TitleSource, Turn
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression.tokens import CharacterCounter, default_counter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Obey."},
    {"role": "assistant", "content": "Welcome."},
    {"role": "user", "content": "What is in `x`?", "created_at": "2024-05-06T07:08:09Z"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "x = 5"},
    {"role": "assistant", "content": "Five."},
    {"role": "user", "content": "Thanks <b>a lot</b> 😀"},
    {"role": "tool", "tool_call_id": "gone", "content": "orphan"},
]


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", password=None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path, MESSAGES)


def write(folder: Path, messages: Any) -> Path:
    path = folder / "messages.json"
    path.write_text(json.dumps(messages))
    return path


def run(path: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("import_messages", str(path), "--owner", "anna", *options, stdout=out)
    return out.getvalue()


def import_all(owner: User, messages: list[dict[str, Any]]) -> ImportReport:
    stream = io.BytesIO(json.dumps(messages).encode())
    return import_openai_messages(owner.pk, stream, counter=CharacterCounter())


def foreign(*texts: str) -> ForeignConversation:
    messages = tuple(ForeignMessage(role="user", text=text) for text in texts)
    return ForeignConversation(messages=messages)


def rows() -> tuple[int, int, int]:
    return Conversation.objects.count(), Turn.objects.count(), Message.objects.count()


def test_it_goes_on_with_the_model_of_new_conversations(anna: User, file: Path) -> None:
    """While only the demo model would answer, a connected one is the default.

    Breaks when: the command stores no model, as the page does.
    """
    Connection.objects.create(
        name="study",
        address="http://study.example/v1",
        listed=[{"name": "qwen3:8b"}],
        offered=["qwen3:8b"],
        everyone=True,
    )
    run(file)
    assert Conversation.objects.get().model == "qwen3:8b @ study"


def test_it_imports(anna: User, file: Path) -> None:
    said = run(file)
    conversation = Conversation.objects.get()
    assert "7 messages (2 user, 3 assistant, 2 tool)" in said
    assert str(conversation.code) in said
    assert f"/c/{conversation.code}/" in said
    assert "Left out: the leading system text" in said
    assert "1 tool results without a call" in said
    assert conversation.owner == anna
    assert conversation.title == "What is in x?"
    assert conversation.title_source == TitleSource.FIRST_WORDS
    assert conversation.system_prompt == ""
    assert conversation.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert conversation.next_seq == 8


def test_i3_messages_are_numbered_without_gaps(anna: User, file: Path) -> None:
    """I3: the file's order is the order of ``seq``, which goes on without a gap.

    Breaks when: ``_messages`` counts from 0, or ``next_seq`` is left at 1.
    """
    run(file)
    stored = list(Message.objects.order_by("seq"))
    texts = [message["content"] or "" for message in MESSAGES[1:]]
    assert [(one.seq, one.text) for one in stored] == list(enumerate(texts, start=1))
    assert Conversation.objects.get().next_seq == stored[-1].seq + 1


def test_user_messages_begin_turns_that_are_complete(anna: User, file: Path) -> None:
    run(file)
    first, second = Turn.objects.order_by("pk")
    for turn in (first, second):
        assert turn.status == "complete"
        assert turn.finished_at is not None
        assert turn.started_at == turn.finished_at
    assert first.user_message is not None
    assert second.user_message is not None
    assert (first.user_message.seq, second.user_message.seq) == (2, 6)
    turns = list(Message.objects.order_by("seq").values_list("turn_id", flat=True))
    assert turns == [None, first.pk, first.pk, first.pk, first.pk, second.pk, second.pk]


def test_calls_results_and_tokens_are_stored(anna: User, file: Path) -> None:
    run(file)
    call, result = Message.objects.get(seq=3), Message.objects.get(seq=4)
    assert call.tool_calls == [CALL]
    assert (result.tool_call_id, result.tool_name) == ("c1", "look")
    for one in Message.objects.all():
        assert one.token_count == message_tokens(default_counter(), one.text, one.tool_calls)


def test_the_system_prompt_is_kept_only_when_asked(anna: User, file: Path) -> None:
    """P04: a file gives no orders unless the person who imports it says so."""
    said = run(file, "--keep-system-prompt", "--title", "Mine")
    conversation = Conversation.objects.get()
    assert conversation.system_prompt == "Obey."
    assert (conversation.title, conversation.title_source) == ("Mine", TitleSource.PERSON)
    assert "now the conversation's system prompt" in said


def test_i30_the_same_messages_are_imported_once(anna: User, file: Path) -> None:
    """I30, F09: importing again changes nothing and says where the first import is.

    Breaks when: ``fingerprint`` takes in anything that differs from import to import.
    """
    run(file)
    before = rows()
    said = run(file, "--title", "Another")
    assert rows() == before
    code = Conversation.objects.get().code
    assert said.startswith(f"Already imported as {code}; nothing was changed.")
    User.objects.create_user("bert")
    call_command("import_messages", str(file), "--owner", "bert", stdout=io.StringIO())
    assert Conversation.objects.count() == 2


def test_i31_an_import_does_not_bring_back_what_was_deleted(anna: User, file: Path) -> None:
    """I31: the second import finds the deleted conversation and leaves it so.

    Breaks when: ``find_imported`` looks only at conversations that are not deleted.
    """
    run(file)
    Conversation.objects.update(deleted_at=datetime(2024, 5, 7, tzinfo=UTC))
    assert "It was deleted since" in run(file)
    assert Conversation.objects.get().deleted_at is not None


def test_i30_two_imports_at_once_make_one(anna: User) -> None:
    """I30: of two simultaneous imports one stores, the other finds it.

    Breaks when: ``store_import`` lets the IntegrityError out.
    """
    barrier = threading.Barrier(2)
    codes: list[tuple[str, bool]] = []

    def work() -> None:
        try:
            barrier.wait(timeout=10)
            stored = store_import(
                anna.pk, foreign("hello"), tokens=[1], title="t", title_source=TitleSource.PERSON
            )
            codes.append((stored.code, stored.created))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len({code for code, _ in codes}) == 1
    assert sorted(created for _, created in codes) == [False, True]
    assert rows() == (1, 1, 1)


def test_i30_an_import_that_fails_leaves_nothing(anna: User) -> None:
    """I30: a failure in the last batch takes the first ones with it.

    Breaks when: ``store_import`` stores outside one ``transaction.atomic``.
    """
    source = foreign(*(str(number) for number in range(600)))
    tokens = [1] * 599 + [10**30]
    with pytest.raises((OverflowError, DatabaseError)):
        store_import(anna.pk, source, tokens=tokens, title="t", title_source=TitleSource.PERSON)
    assert rows() == (0, 0, 0)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "Line 1: a list of messages must begin here"),
        (b'[{"role":"user","content":"a"},\n{"role":"root"}]', "Message 2 (line 2): its role"),
        (b'[{"role":"user","content":"a"},{"role":"user","content":"\\u0000"}]', "NUL"),
        (b'[{"role":"user","content":"a"},{"role":"user","content":"\\ud800"}]', "surrogate"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_stored(
    anna: User, tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "messages.json"
    path.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        run(path)
    assert caught.value.returncode == 1
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert rows() == (0, 0, 0)


def test_a_file_over_the_limit_is_refused(anna: User, file: Path) -> None:
    with pytest.raises(CommandError, match="larger than 100 bytes, the limit"):
        run(file, "--max-bytes", "100")
    assert rows() == (0, 0, 0)


def test_a_missing_file_and_an_unknown_person_are_said(anna: User, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="The file cannot be read: No such file"):
        run(tmp_path / "none.json")
    with pytest.raises(CommandError, match="cannot be read"):
        run(tmp_path)
    path = write(tmp_path, MESSAGES)
    with pytest.raises(CommandError, match="no active person named 'nobody'"):
        call_command("import_messages", str(path), "--owner", "nobody")
    with pytest.raises(CommandError, match="The title is longer than 200"):
        run(path, "--title", "t" * 201)
    assert rows() == (0, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "a\r\nb\rc",
        " lead and trail \n",
        "\x1b]52;c\x07",
        "1\ufe0f\u20e3",
        "\ufdd0\uffff",
        "e\u0301",
    ],
)
def test_i28_texts_are_stored_as_they_came(anna: User, text: str) -> None:
    """I28: the same characters come back from the database.

    Breaks when: a text is stripped, normalised or cleaned on its way in.
    """
    import_all(anna, [{"role": "user", "content": text}])
    assert Message.objects.get().text == text


def test_i22_a_title_from_a_file_is_stored_as_text(anna: User) -> None:
    import_all(anna, [{"role": "user", "content": "<script>alert(1)</script> hello"}])
    assert len(Conversation.objects.get().title) <= 60


def test_a_long_conversation_takes_few_queries(
    anna: User, django_assert_max_num_queries: Any
) -> None:
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": f"message {number}"}
        for number in range(2_000)
    ]
    with django_assert_max_num_queries(100):
        report = import_all(anna, messages)
    assert report.conversation.created
    assert Message.objects.count() == 2_000
    assert Turn.objects.filter(user_message__isnull=False).count() == 1_000
