"""A summary by a model: quoting, chunking, strict reading, one repair. The network is injected."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from compression.audit import (
    Checked,
    check_delta,
    check_draft,
    check_entries,
    redact,
    redact_delta,
)
from compression.editing import delta_from_markdown
from compression.exceptions import DraftRejected, SummarizerError
from compression.ledger import Delta, apply_delta, parse_delta
from compression.ports import Complete, TokenCounter
from compression.quoting import Chunk, chunks, quote_item, quote_ledger, shortened
from compression.standing import missed
from compression.types import Completion, Draft, Item, Ledger, Section, Spent

RETRIES = 2
#: More attempts a chunk gets after a draft that was refused as a whole.
LONGEST_FOCUS = 500
#: Characters of a person's focus.
LONGEST_TOOL_RESULT = 2000
#: Characters of a tool's result that the summariser is shown.
FRAMING = 200
#: Ruler tokens of what the program says around the data, and of what the server adds.
PROBLEMS = 400
#: Ruler tokens kept free for naming what is wrong in a repair or a retry.
SMALLEST_CHUNK = 120
#: Ruler tokens: with less room for messages no summary is worth asking for.
KEYS = frozenset({"narrative", "add", "resolve", "supersede", "lift"})


@cache
def instructions() -> str:
    """The text of ``prompts/compact.md``."""
    return resources.files("compression").joinpath("prompts", "compact.md").read_text("utf-8")


@cache
def prompt_version() -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the instructions."""
    return hashlib.sha256(instructions().encode()).hexdigest()[:12]


PROMPT_VERSION = prompt_version()


def _shape(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


_INTEGER = {"type": "integer"}
_TEXT = {"type": "string"}
SCHEMA: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "compression",
        "strict": True,
        "schema": _shape(
            {
                "narrative": _TEXT,
                "add": _list_of(
                    _shape(
                        {
                            "section": {"type": "string", "enum": [one.value for one in Section]},
                            "text": _TEXT,
                            "sources": _list_of(_INTEGER),
                        }
                    )
                ),
                "resolve": _list_of(_INTEGER),
                "supersede": _list_of(
                    _shape({"id": _INTEGER, "text": _TEXT, "sources": _list_of(_INTEGER)})
                ),
                "lift": _list_of(_shape({"id": _INTEGER, "source": _INTEGER})),
            }
        ),
    },
}
"""What is asked for, in the shape of OpenAI's ``response_format``."""


class PromptSummarizer:
    """Implements :class:`compression.ports.Summarizer` by asking a model."""

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
        nonce: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        """``window`` and ``max_output_tokens`` are in ruler tokens of the summary model."""
        self._complete = complete
        self._counter = counter
        self._window = window
        self._reply = max(1, min(max_output_tokens, window // 3))
        self._label = label
        self._schema = SCHEMA if supports_json_schema else None
        self._tool_result = tool_result_characters
        self._nonce = nonce

    @property
    def label(self) -> str:
        """The model's name."""
        return self._label

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """A draft that stands for ``ledger`` and ``items``, made chunk by chunk.

        Raises :class:`DraftRejected` when a chunk got no usable answer in three attempts, and
        :class:`SummarizerError` when the model could not be asked or its window is too small.
        """
        run = _Run(nonce=self._nonce(), focus=focus[:LONGEST_FOCUS], on_tokens=on_tokens)
        try:
            return await self._draft(items, ledger, run)
        except SummarizerError as error:
            error.spent = run.spent
            raise

    async def _draft(self, items: Sequence[Item], ledger: Ledger, run: _Run) -> Draft:
        originals = {item.seq: item for item in items}
        notes: list[str] = []
        room = self._room(ledger, run)
        cut = [shortened(item, self._tool_result) for item in items]
        for chunk in await asyncio.to_thread(list, chunks(cut, room, self._counter.count)):
            source = [originals[seq] for seq in sorted({item.seq for item in chunk.items})]
            checked = await self._ask(chunk, source, ledger, run)
            clean, secrets_found = redact_delta(checked.kept)
            if secrets_found:
                notes.append(f"redacted: {secrets_found} secrets")
            notes.extend(redact(note)[0] for note in checked.dropped)
            ledger, ignored = apply_delta(
                ledger,
                clean,
                first_seq=source[0].seq,
                through_seq=source[-1].seq,
                user_seqs=[item.seq for item in source if item.role == "user"],
            )
            notes.extend(ignored)
        return Draft(
            ledger=ledger,
            model=run.model or self._label,
            prompt_version=PROMPT_VERSION,
            notes=tuple(notes),
            spent=run.spent,
        )

    def _room(self, ledger: Ledger, run: _Run) -> int:
        """Ruler tokens for the messages of one call; the rest of the window is spoken for."""
        spoken_for = self._counter.count(instructions()) + self._counter.count(run.focus)
        room = self._window - self._reply - spoken_for - self._notes_limit() - FRAMING - PROBLEMS
        if room < SMALLEST_CHUNK:
            raise SummarizerError(
                "The summary model's window is too small to write a summary with it.",
                fields={"window": self._window},
            )
        return room

    def _notes_limit(self) -> int:
        return self._window // 6

    async def _ask(
        self, chunk: Chunk, source: Sequence[Item], ledger: Ledger, run: _Run
    ) -> Checked:
        """What the model makes of one chunk, checked, after at most two retries and one repair."""
        user = self._question(chunk, ledger, run)
        addendum = ""
        for attempt in range(RETRIES + 1):
            try:
                delta = await self._answer(user + addendum, run)
                checked = await asyncio.to_thread(check_entries, delta, source, ledger)
                if checked.problems:
                    checked = await self._repair(user, checked, source, ledger, run)
                check_delta(checked.kept)
                return checked
            except DraftRejected as refused:
                if attempt == RETRIES:
                    raise
                addendum = f"\n\nYour last answer was refused: {refused.message[:300]} Try again."
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _repair(
        self, user: str, first: Checked, source: Sequence[Item], ledger: Ledger, run: _Run
    ) -> Checked:
        """The first answer's good entries and those that one more call put right.

        The call also names the user's rules that the answer has not noted. It is not made for
        these alone: they are copied word for word, which code can do as well when the draft is
        judged.
        """
        forgotten = await asyncio.to_thread(_forgotten, first.kept, source, ledger)
        listed = "\n".join(self._within((*first.problems, *forgotten), PROBLEMS * 3 // 4))
        ask = (
            f"{user}\n\nThese entries of your last answer are wrong or missing:\n{listed}\n"
            "Answer with one JSON object of the same shape that holds only these entries, "
            "corrected. Leave out what cannot be corrected."
        )
        try:
            again = await self._answer(ask, run)
        except DraftRejected:
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

    async def _answer(self, user: str, run: _Run) -> Delta:
        """One call, its answer read strictly. Raises DraftRejected when it is none."""
        completion = await self._complete(
            system=instructions(),
            user=user,
            schema=self._schema,
            max_tokens=self._reply,
            on_tokens=run.progress,
        )
        run.note(completion)
        text = check_draft(completion, prompt=instructions(), secret=run.nonce)
        return await asyncio.to_thread(read_delta, text)

    def _question(self, chunk: Chunk, ledger: Ledger, run: _Run) -> str:
        notes = quote_ledger(
            ledger, run.nonce, limit=self._notes_limit(), count=self._counter.count
        )
        messages = "\n".join(quote_item(item, run.nonce) for item in chunk.items)
        focus = (
            f"\nPay special attention to: {run.focus.replace(run.nonce, '')}" if run.focus else ""
        )
        return (
            f"The present notes, as data:\n{notes}\n\nThe next messages, as data:\n{messages}\n\n"
            f"Write the JSON object that reports what these messages change.{focus}"
        )

    def _within(self, problems: Sequence[str], limit: int) -> Iterator[str]:
        used = 0
        for problem in problems:
            line = f"- {problem}"
            used += self._counter.count(line) + 1
            if used > limit:
                return
            yield line


@dataclass(slots=True)
class _Run:
    """What one draft has cost so far, over all of its calls."""

    nonce: str
    focus: str
    on_tokens: Callable[[int], Awaitable[None]]
    model: str = ""
    spent: Spent = field(default_factory=Spent)
    _before: int = field(default=0)
    _now: int = field(default=0)

    async def progress(self, tokens: int) -> None:
        """Tell the tokens of all answers so far."""
        self._now = tokens
        await self.on_tokens(self._before + tokens)

    def note(self, completion: Completion) -> None:
        """Add one call's cost."""
        self._before += max(self._now, completion.completion_tokens)
        self._now = 0
        self.model = completion.model or self.model
        self.spent += Spent.on(completion)


def _forgotten(delta: Delta, source: Sequence[Item], ledger: Ledger) -> list[str]:
    """The rules of the source's users that neither the ledger nor the delta holds, as problems."""
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


def read_delta(text: str) -> Delta:
    """The delta in a model's answer: one JSON object anywhere in it, or the known headings.

    Raises :class:`DraftRejected` saying what is wrong.
    """
    found = _find_object(text)
    delta = parse_delta(found) if found is not None else delta_from_markdown(text)
    check_delta(delta)
    return delta


def _find_object(text: str) -> object | None:
    """The first JSON object that has one of our keys, else the first object at all."""
    decoder = json.JSONDecoder()
    first: object | None = None
    position, attempts = text.find("{"), 0
    while position >= 0 and attempts < 50:
        attempts += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict) and KEYS & value.keys():
                return value
            first = value if first is None else first
        position = text.find("{", end)
    looks_like_json = text.lstrip("` \njson").startswith("{")
    if first is None and looks_like_json:
        raise DraftRejected("The model's summary is not a whole JSON object.")
    return first if looks_like_json else None
