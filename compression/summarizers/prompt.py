"""A summary by a model: quoting, parts, strict reading, one repair. The host does the network."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from compression.exceptions import DraftRejected, SummarizerError
from compression.judging.audit import (
    Checked,
    check_delta,
    check_draft,
    check_entries,
    redact,
    redact_delta,
)
from compression.judging.floor import check_part
from compression.judging.standing_rules import missed
from compression.ledger.ledger import Delta, apply_delta
from compression.planning import defaults
from compression.planning.parts import Chunk, Plan, filled
from compression.ports import Complete, TokenCounter
from compression.summarizers.answering import SCHEMA, read_delta
from compression.summarizers.prompt_files import Prompt, packaged
from compression.summarizers.quoting import quote_item, quote_ledger, shortened
from compression.types import Completion, Draft, Item, Ledger, Spent

#: Further attempts at a part after a draft that was refused as a whole.
RETRIES = 2
#: Further attempts after no answer; the host has already retried a busy server.
SERVER_RETRIES = 1
#: Characters of a person's focus.
LONGEST_FOCUS = 500
#: Characters of a tool result, and of a call's arguments, that the model is shown.
LONGEST_TOOL_RESULT = defaults.TOOL_RESULT_MAX_LENGTH
#: Ruler tokens that the server adds around a request.
FRAMING = 64
#: Ruler tokens that a message takes besides its text and delimiters.
JOINT = 2
#: Ruler tokens for listing the mistakes in a repair; the answer gets so much less room.
PROBLEMS = 400
#: Ruler tokens of room for messages; with less, a summary is not worth asking for.
SMALLEST_CHUNK = 120
#: Ruler tokens by which the notes are expected to grow with each part, up to their limit.
NOTES_A_PART = 120


def instructions() -> str:
    """The instructions of the packaged ``prompts/compact.md``."""
    return packaged().text


def prompt_version() -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the packaged instructions."""
    return packaged().version


PROMPT_VERSION = prompt_version()


class PromptSummarizer:
    """A :class:`compression.ports.Summarizer` that asks a model."""

    def __init__(
        self,
        complete: Complete,
        counter: TokenCounter,
        *,
        window: int,
        max_output_tokens: int,
        label: str,
        supports_json_schema: bool = True,
        tool_result_characters: int = LONGEST_TOOL_RESULT,
        prompt: Prompt | None = None,
        nonce: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        """``window`` and ``max_output_tokens`` are in ruler tokens of the summary model.

        ``prompt`` replaces the packaged one.
        """
        self._complete = complete
        self._counter = counter
        self._window = window
        self._reply = max(1, min(max_output_tokens, window // 3))
        self._label = label
        self._schema = SCHEMA if supports_json_schema else None
        self._tool_result = tool_result_characters
        self._prompt = prompt or packaged()
        self._nonce = nonce

    def narrowed(self, factor: float) -> PromptSummarizer:
        """See :meth:`compression.ports.PartwiseSummarizer.narrowed`."""
        narrower = copy(self)
        narrower._window = int(self._window / factor)
        narrower._reply = max(1, min(self._reply, narrower._window // 3))
        return narrower

    @property
    def label(self) -> str:
        """The model's name."""
        return self._label

    @property
    def prompt_version(self) -> str:
        """The version of the instructions."""
        return self._prompt.version

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """A draft that covers ``ledger`` and ``items``, made part by part.

        Raises :class:`DraftRejected` when a part got no usable answer in three attempts, and
        :class:`SummarizerError` when the model could not be asked or its window is too small.
        """
        plan = await asyncio.to_thread(self.plan, items, ledger, focus=focus)
        whole = Draft(ledger=ledger, model=self._label, prompt_version=self._prompt.version)
        for chunk in plan.chunks:
            before = whole.spent.completion_tokens

            async def told(tokens: int, before: int = before) -> None:
                await on_tokens(before + tokens)

            try:
                part = await self.part(plan, chunk, whole.ledger, focus=focus, on_tokens=told)
            except SummarizerError as error:
                error.spent = whole.spent + error.spent
                raise
            whole = whole.followed_by(part)
        return whole

    def plan(self, items: Sequence[Item], ledger: Ledger, *, focus: str) -> Plan:
        """See :meth:`compression.ports.PartwiseSummarizer.plan`.

        Each part fills the room that its call has besides the notes, as large as they will be then.
        """
        nonce = self._nonce()
        room = self._room(nonce, focus[:LONGEST_FOCUS])
        if room - self._notes_limit() < SMALLEST_CHUNK:
            raise SummarizerError(
                "The summary model's window is too small to write a summary with it.",
                fields={"window": self._window},
            )
        count = self._counter.count
        present = count(quote_ledger(ledger, nonce, limit=self._notes_limit(), count=count))

        def free(number: int) -> int:
            return room - min(self._notes_limit(), present + number * NOTES_A_PART)

        def size(item: Item) -> int:
            return count(quote_item(item, nonce)) + JOINT

        cut = [shortened(item, self._tool_result) for item in items]
        return Plan(
            chunks=tuple(filled(cut, free, size)),
            nonce=nonce,
            originals={item.seq: item for item in items},
        )

    async def part(
        self,
        plan: Plan,
        chunk: Chunk,
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
        most_calls: int | None = None,
    ) -> Draft:
        """See :meth:`compression.ports.PartwiseSummarizer.part`."""
        run = _Run(
            nonce=plan.nonce,
            focus=focus[:LONGEST_FOCUS],
            on_tokens=on_tokens,
            most_calls=most_calls,
        )
        try:
            return await self._part(chunk, plan.source(chunk), ledger, run)
        except SummarizerError as error:
            error.spent = run.spent
            raise

    async def _part(self, chunk: Chunk, source: Sequence[Item], ledger: Ledger, run: _Run) -> Draft:
        checked = await self._ask(chunk, source, ledger, run)
        clean, secrets_found = redact_delta(checked.kept)
        merged, ignored = apply_delta(
            ledger,
            clean,
            first_seq=source[0].seq,
            through_seq=source[-1].seq,
            user_seqs=[item.seq for item in source if item.role == "user"],
        )
        redacted = (f"redacted: {secrets_found} secrets",) if secrets_found else ()
        dropped = (redact(note)[0] for note in checked.dropped)
        return Draft(
            ledger=merged,
            model=run.model or self._label,
            prompt_version=self._prompt.version,
            notes=(*redacted, *dropped, *ignored),
            spent=run.spent,
        )

    def _room(self, nonce: str, focus: str) -> int:
        """Ruler tokens for the notes and messages of one call, after all fixed parts."""
        framing = _framed("", "", nonce=nonce, focus=focus)
        spoken_for = self._counter.count(self._prompt.text) + self._counter.count(framing)
        return self._window - self._reply - spoken_for - FRAMING

    def _notes_limit(self) -> int:
        return self._window // 8

    async def _ask(
        self, chunk: Chunk, source: Sequence[Item], ledger: Ledger, run: _Run
    ) -> Checked:
        """The model's checked draft for one chunk, after at most two retries and one repair."""
        user = await asyncio.to_thread(self._question, chunk, ledger, run)
        addendum = ""
        for attempt in range(RETRIES + 1):
            try:
                delta = await self._answer(user, run, addendum)
                checked = await asyncio.to_thread(check_entries, delta, source, ledger)
                if checked.problems and run.may_ask_again:
                    checked = await self._repair(user, checked, source, ledger, run)
                check_delta(checked.kept)
                await asyncio.to_thread(
                    check_part, ledger, checked.kept, chunk.items, self._counter.count
                )
                return checked
            except SummarizerError as error:
                refused = isinstance(error, DraftRejected)
                last = attempt == (RETRIES if refused else SERVER_RETRIES)
                if last or not error.transient or not run.may_ask_again:
                    raise
                if refused:
                    told = f"Your last answer was refused: {error.message[:300]} Try again."
                    addendum = f"\n\n{told}"
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _repair(
        self, user: str, first: Checked, source: Sequence[Item], ledger: Ledger, run: _Run
    ) -> Checked:
        """The good entries of the first answer, and those that a repair call corrected.

        The call also names the user's rules that the answer lacks. It is not made for these alone,
        since code can add them when the draft is judged.
        """
        forgotten = await asyncio.to_thread(_missing_rules, first.kept, source, ledger)
        room = min(PROBLEMS, self._reply // 2)
        listed = "\n".join(self._within((*first.problems, *forgotten), room * 3 // 4))
        ask = (
            f"\n\nThese entries of your last answer are wrong or missing:\n{listed}\n"
            "Answer with one JSON object of the same shape that holds only these entries, "
            "corrected. Leave out what cannot be corrected."
        )
        try:
            again = await self._answer(user, run, ask)
        except SummarizerError:
            # The entries that were good stay good.
            return first
        second = await asyncio.to_thread(check_entries, again, source, ledger)
        kept = replace(
            first.kept,
            narrative=first.kept.narrative or second.kept.narrative,
            add=(*first.kept.add, *second.kept.add),
            supersede=(*first.kept.supersede, *second.kept.supersede),
            lift=(*first.kept.lift, *second.kept.lift),
        )
        sent_back = (note.replace("dropped", "sent back", 1) for note in first.dropped)
        return Checked(kept=kept, dropped=(*sent_back, *second.dropped), problems=second.problems)

    async def _answer(self, user: str, run: _Run, addendum: str = "") -> Delta:
        """The answer to one call, read strictly. Raises DraftRejected when it cannot be read.

        The question fills its room, so ``addendum`` takes its tokens from the answer's.
        """
        longest = self._reply - self._counter.count(addendum)
        if longest < self._reply // 3:
            addendum, longest = "", self._reply
        run.asks()
        completion = await self._complete(
            system=self._prompt.text,
            user=user + addendum,
            schema=self._schema,
            max_tokens=longest,
            on_tokens=run.progress,
        )
        run.note(completion)
        text = check_draft(completion, prompt=self._prompt.text, secret=run.nonce)
        return await asyncio.to_thread(read_delta, text)

    def _question(self, chunk: Chunk, ledger: Ledger, run: _Run) -> str:
        """The question about a chunk; the notes get the room that the messages leave."""
        messages = "\n".join(quote_item(item, run.nonce) for item in chunk.items)
        count = self._counter.count
        left = self._room(run.nonce, run.focus) - chunk.tokens
        frame = count(quote_ledger(Ledger(), run.nonce, limit=0, count=count))
        limit = min(self._notes_limit(), left) - frame
        notes = quote_ledger(ledger, run.nonce, about=messages, limit=limit, count=count)
        return _framed(notes, messages, nonce=run.nonce, focus=run.focus)

    def _within(self, problems: Sequence[str], limit: int) -> Iterator[str]:
        used = 0
        for problem in problems:
            line = f"- {problem}"
            used += self._counter.count(line) + 1
            if used > limit:
                return
            yield line


def _framed(notes: str, messages: str, *, nonce: str, focus: str) -> str:
    """The question: notes and messages as quoted data, and the person's focus."""
    special = f"\nPay special attention to: {focus.replace(nonce, '')}" if focus else ""
    return (
        f"The present notes, as data:\n{notes}\n\nThe next messages, as data:\n{messages}\n\n"
        f"Write the JSON object that reports what these messages change.{special}"
    )


@dataclass(slots=True)
class _Run:
    """The cost of one part so far, over all of its calls."""

    nonce: str
    focus: str
    on_tokens: Callable[[int], Awaitable[None]]
    most_calls: int | None
    model: str = ""
    spent: Spent = field(default_factory=Spent)
    _before: int = field(default=0)
    _now: int = field(default=0)

    @property
    def may_ask_again(self) -> bool:
        """Whether the part may make one more call."""
        return self.most_calls is None or self.spent.calls < self.most_calls

    def asks(self) -> None:
        """Count one call."""
        self.spent += Spent(calls=1)

    async def progress(self, tokens: int) -> None:
        """Report the tokens of all answers so far."""
        self._now = tokens
        await self.on_tokens(self._before + tokens)

    def note(self, completion: Completion) -> None:
        """Add the cost of one call."""
        self._before += max(self._now, completion.completion_tokens)
        self._now = 0
        self.model = completion.model or self.model
        self.spent += replace(Spent.on(completion), calls=0)


def _missing_rules(delta: Delta, source: Sequence[Item], ledger: Ledger) -> list[str]:
    """The rules of the source's users that neither ledger nor delta contains, as problems."""
    after, _ = apply_delta(
        ledger,
        delta,
        first_seq=source[0].seq,
        through_seq=source[-1].seq,
        user_seqs=[item.seq for item in source if item.role == "user"],
    )
    return [
        f"“{text:.200}”: the user's message {seq} rules so, and no constraint says it"
        for seq, text in missed(source, after)
    ]
