"""The built-in demo model: not a language model, and it says so.

It reports what it was sent and quotes the lines that share words with the question, so that people
can see what a compression keeps. It needs no key and no network.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chatapp.llm.client import (
    ChatRequest,
    Chunk,
    Finished,
    ModelInfo,
    OnTokens,
    TextChunk,
    TokenUsage,
    WholeReply,
    collect,
)
from chatapp.llm.errors import ContextOverflow
from compression.ports import TokenCounter

MODEL = "demo"
#: Tokens. Small, so that a compression happens within a few minutes of chatting.
WINDOW = 4096
WORDS_PER_SECOND = 70.0
#: Tokens per message for role and separators, as in OpenAI's chat format.
MESSAGE_OVERHEAD = 4

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$")
_BULLET = re.compile(r"^\s*[-*]\s+(.+?)\s*$")
_SOURCES = re.compile(r"\s*\[\d[\d,\s–-]*\]\s*$")
_SUMMARY_HEADINGS = frozenset(
    {"summary", "constraints", "decisions", "files", "state", "done", "pending", "context"}
)
_WORD = re.compile(r"\w+")
_COMMON_WORDS = frozenset(
    _WORD.findall(
        "about again also another because been before being could does done from have here "
        "into just know like make many more most much must need only other please said same "
        "should show some still such tell than that their them then there these they thing "
        "things this those through want were what when where which while will with would your "
        "yours"
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The demo model's view of a request."""

    question: str
    """The last user message."""
    from_user: tuple[str, ...]
    """The user's earlier messages, oldest first."""
    replies: int
    """Number of the assistant's messages in the request."""
    summary: tuple[str, ...]
    """The lines of the summary, without their bullets; empty if there is none."""
    constraints: tuple[str, ...]
    """The summary's lines under the heading of the constraints."""

    @property
    def messages(self) -> int:
        """Number of messages in the request besides the system message."""
        return len(self.from_user) + 1 + self.replies


class DemoClient:
    """An :class:`chatapp.llm.client.LLMClient` that answers without a server.

    ``counter`` counts the reported usage. ``pause`` waits the given seconds between two words;
    tests pass one that does not wait.
    """

    def __init__(
        self,
        *,
        counter: TokenCounter,
        words_per_second: float = WORDS_PER_SECOND,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._counter = counter
        self._seconds_a_word = 1.0 / words_per_second
        self._pause = pause

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """Answer word by word. Raises ContextOverflow for a request above the window."""
        if request.attempts is not None:
            request.attempts.sent(_as_body(request))
        words, finished = await asyncio.to_thread(self._answer, request)
        chunks = self._paced(words, finished)
        try:
            yield chunks
        finally:
            await chunks.aclose()

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """The whole answer, at the same pace."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The demo model alone."""
        return (ModelInfo(name=MODEL, window=WINDOW, max_output_tokens=WINDOW // 4, source=MODEL),)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def _paced(self, words: list[str], finished: Finished) -> AsyncGenerator[Chunk, None]:
        for word in words:
            yield TextChunk(text=word)
            await self._pause(self._seconds_a_word)
        yield finished

    def _answer(self, request: ChatRequest) -> tuple[list[str], Finished]:
        """The words of the answer and its end. Counting takes time, so this runs in a thread."""
        prompt_tokens = sum(
            self._counter.count(_text_of(message)) + MESSAGE_OVERHEAD
            for message in request.messages
        )
        if prompt_tokens > WINDOW:
            raise ContextOverflow(window=WINDOW)
        words = re.findall(r"\s*\S+", compose(look(request.messages), prompt_tokens))
        reason = "stop"
        room = WINDOW - prompt_tokens
        limit = room if request.max_tokens is None else min(room, request.max_tokens)
        completion_tokens = self._counter.count("".join(words))
        while words and completion_tokens > limit:
            words = words[: max(1, len(words) * limit // completion_tokens) - 1]
            completion_tokens = self._counter.count("".join(words))
            reason = "length"
        usage = TokenUsage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        return words, Finished(finish_reason=reason, usage=usage, model=MODEL)


def look(messages: tuple[Mapping[str, Any], ...]) -> Seen:
    """The demo model's view of OpenAI-style messages."""
    system = "\n".join(_text_of(m) for m in messages if m.get("role") in {"system", "developer"})
    users = [_text_of(m) for m in messages if m.get("role") == "user"]
    summary: list[str] = []
    constraints: list[str] = []
    section = ""
    for line in system.splitlines():
        heading = _HEADING.match(line)
        if heading:
            name = heading[1].lower()
            section = name if name in _SUMMARY_HEADINGS else ""
        elif section and line.strip():
            bullet = _BULLET.match(line)
            text = _SOURCES.sub("", bullet[1] if bullet else line.strip())
            summary.append(text)
            if section == "constraints" and bullet:
                constraints.append(text)
    return Seen(
        question=users[-1] if users else "",
        from_user=tuple(users[:-1]),
        replies=sum(1 for m in messages if m.get("role") == "assistant"),
        summary=tuple(summary),
        constraints=tuple(constraints),
    )


def compose(seen: Seen, prompt_tokens: int) -> str:
    """The answer, in Markdown: always the same for the same request."""
    parts = [
        "This is the built-in demo model, no language model: I cannot think, I can only show "
        "what reached me.",
        _what_i_see(seen, prompt_tokens),
        _what_you_asked(seen),
        _EXTRAS[len(seen.from_user) % len(_EXTRAS)](seen, prompt_tokens),
    ]
    return "\n\n".join(parts)


def _what_i_see(seen: Seen, prompt_tokens: int) -> str:
    share = round(100 * prompt_tokens / WINDOW)
    sight = (
        f"I see **{_many(seen.messages, 'message')}** word for word, about {prompt_tokens} tokens "
        f"({share} % of my window of {WINDOW})"
    )
    if not seen.summary:
        return (
            f"{sight}, and no summary yet. Go on chatting: once the window is nearly full, the "
            "older messages are compressed, and here I will tell what is left of them."
        )
    sight = f"{sight}, and a summary with **{_many(len(seen.constraints), 'constraint')}**"
    if not seen.constraints:
        return f"{sight}. All that was said before these messages I know from the summary alone."
    listed = "\n".join(f"- {_short(text)}" for text in seen.constraints[:5])
    return f"{sight} that I have to keep to:\n\n{listed}"


def _what_you_asked(seen: Seen) -> str:
    if not seen.question.strip():
        return "Your message had no text that I could look for."
    found = _related(seen)
    asked = f"You wrote: “{_short(seen.question, 120)}”"
    if not found:
        return (
            f"{asked} Nothing else that I was sent shares a word with it. In a real chat the "
            "model would answer now; with me you can state a rule (“always answer in British "
            "English”), talk about something else for a while, and ask for the rule later."
        )
    quotes = "\n".join(f"> {where}: {text}\n>" for where, text in found).removesuffix("\n>")
    return f"{asked} These lines, which I was sent, have to do with it:\n\n{quotes}"


def _related(seen: Seen) -> list[tuple[str, str]]:
    """Up to four lines that share most words with the question, each with its place."""
    wanted = _terms(seen.question)
    lines = [("from the summary", text) for text in seen.summary]
    lines += [("from an earlier message", text) for text in seen.from_user]
    scored = [
        (len(wanted & _terms(text)), position, where, text)
        for position, (where, text) in enumerate(lines)
    ]
    best = sorted((line for line in scored if line[0]), key=lambda line: (-line[0], line[1]))
    return [(where, _short(text)) for _, _, where, text in best[:4]]


def _terms(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text[:20_000]))
    return frozenset(
        word.removesuffix("s") for word in words if len(word) > 3 and word not in _COMMON_WORDS
    )


def _table(seen: Seen, prompt_tokens: int) -> str:
    return (
        "What this request was made of:\n\n"
        "| part | how many |\n|---|---:|\n"
        f"| messages by you | {len(seen.from_user) + 1} |\n"
        f"| replies by me | {seen.replies} |\n"
        f"| lines of summary | {len(seen.summary)} |\n"
        f"| tokens in all | {prompt_tokens} |\n\n"
        "The bar above the conversation shows the same figures as a share of the budget. Each "
        "of my replies makes it grow a little; after a compression it falls back to less than "
        "half, and nothing has been deleted: the older messages stay on the page and are "
        "searched and exported as before."
    )


def _list(seen: Seen, _prompt_tokens: int) -> str:
    if not seen.summary:
        worth = (
            "1. **State a rule**, to see later that it stands in the summary, word for word.\n"
            "2. **Go on for some messages**, longer ones for a quick result. `/compact` then "
            "compresses what is old enough.\n"
            "3. **Look at the bar** above: once it passes its mark, the next message is "
            "preceded by a compression.\n\n"
        )
    else:
        worth = (
            "1. **State a rule** and see that it stands in the next summary, word for word.\n"
            "2. **Open the summary** that stands in for the older messages, line by line.\n"
            "3. **Edit or undo** the summary, and see in my next reply what I know then.\n\n"
        )
    return (
        f"Three things worth trying here:\n\n{worth}"
        "What a summary says can be reviewed line by line; each line names the messages it "
        "comes from. What you write into it yourself is never changed by a later compression."
    )


def _code(seen: Seen, prompt_tokens: int) -> str:
    return (
        "In the form in which a model server gets it, your request looked like this:\n\n"
        "```json\n"
        "{\n"
        f'  "model": "{MODEL}",\n'
        f'  "messages": {seen.messages + 1},\n'
        f'  "lines_of_summary": {len(seen.summary)},\n'
        f'  "prompt_tokens": {prompt_tokens},\n'
        '  "stream": true\n'
        "}\n"
        "```\n\n"
        "The first of these messages holds the instructions and the summary; the rest is the "
        "newest part of the conversation, sent unchanged."
    )


def _connect(_seen: Seen, _prompt_tokens: int) -> str:
    return (
        "To talk with a real model, start the program with the address of any "
        "OpenAI-compatible server:\n\n"
        "```sh\n"
        "export OPENAI_BASE_URL=http://localhost:11434/v1\n"
        "export OPENAI_API_KEY=your-key   # if the server wants one\n"
        "make run\n"
        "```\n\n"
        "This conversation stays as it is, and the real model will read the same summary and "
        "the same last messages that I see now. A larger window only means that compressions "
        "come less often."
    )


_EXTRAS: tuple[Callable[[Seen, int], str], ...] = (_list, _table, _code, _connect)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _short(text: str, length: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _as_body(request: ChatRequest) -> dict[str, Any]:
    """The request as it would be sent to a server."""
    body: dict[str, Any] = {"model": request.model, "messages": list(request.messages)}
    if request.tools:
        body["tools"] = list(request.tools)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return body
