"""Recorded streams of real providers, sent through the real client and compared with what is known
of them: ``python -m tests.recorded FOLDER [--rounds 3] [--seed 1]``.

FOLDER holds ``expected.jsonl`` (one line a stream: ``file`` and what a correct client makes of it)
and ``http_errors.json`` (answers that are no reply). The fake upstream replays each stream byte for
byte, first as it is, then ``--rounds`` times split at random places with delays between, then cut
at a random place. The calls that come out are checked and made ours by the tool loop. Recordings
are other people's, so none is kept here and no test needs them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatapp.llm.client import ChatRequest, Finished, ReasoningChunk, TextChunk, ToolCall
from chatapp.llm.errors import LLMError, ReplyCut
from chatapp.llm.openai_compatible.client import OpenAIClient
from chatapp.llm.openai_compatible.limits import Limits
from compression.tokens import CharacterCounter
from compression.tools.arguments import wire_call
from compression.tools.calls import ID_LENGTH, MOST_CALLS, Checked, wire_name
from compression.tools.loop import MadeCall, ToolLoop
from compression.tools.tool import Tool
from tests.fake_scripts import Cut, Delay, Raw, Script, Step
from tests.fake_upstream import FakeUpstream

Json = dict[str, Any]
REQUEST = ChatRequest(model="fake-model", messages=({"role": "user", "content": "Hello"},))
# Nothing is asked again: each recorded answer is the only one.
LIMITS = Limits(attempts=1, closing=0.5)


@dataclass(slots=True)
class Came:
    """What the client made of one stream."""

    text: str = ""
    reasoning: str = ""
    finished: Finished | None = None
    error: LLMError | None = None
    differences: list[str] = field(default_factory=list)

    def differ(self, what: str, here: object, wanted: object) -> None:
        """Note it when the two are not the same."""
        if here != wanted:
            self.differences.append(f"{what}: {here!r:.200} instead of {wanted!r:.200}")


async def played(upstream: FakeUpstream, client: OpenAIClient, script: Script) -> Came:
    """Ask once, to be answered by ``script``."""
    upstream.enqueue(script)
    came = Came()
    try:
        async with client.stream(REQUEST) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    came.text += chunk.text
                elif isinstance(chunk, ReasoningChunk):
                    came.reasoning += chunk.text
                else:
                    came.finished = chunk
    except LLMError as error:
        came.error = error
    return came


def end_of(expected: Json) -> str | None:
    """How the whole stream ends: usage and ``[DONE]`` together are an end as well."""
    reason: str | None = expected["finish_reason"]
    if reason is None and expected["done"] and expected["usage"]:
        reason = "tool_calls" if expected["tool_calls"] else "stop"
    return reason


def compared(came: Came, expected: Json, *, usage: bool = True) -> Came:
    """With its differences from what a correct client makes of the whole stream.

    Counts that ``expected`` does not know are not compared: Groq tells them in a place of its own.
    """
    came.differ("content", came.text, expected["content"] or "")
    came.differ("reasoning", came.reasoning, expected["reasoning"] or "")
    reason = end_of(expected)
    if reason is None:
        # Without an end of the provider's own a reply is never complete, whatever else came (I6).
        came.differ("finished", came.finished, None)
        came.differ("an error of ours", bool(came.error and came.error.message), True)
        return came
    came.differ("error", came.error, None)
    if came.finished is None:
        came.differ("finished", None, reason)
        return came
    came.differ("finish reason", came.finished.finish_reason, reason)
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments}
        for call in came.finished.tool_calls
    ]
    came.differ("tool calls", calls, expected["tool_calls"] or [])
    counted, told = came.finished.usage, expected["usage"]
    if usage and told:
        names = ("prompt_tokens", "completion_tokens")
        here = counted and {name: getattr(counted, name) for name in names}
        came.differ("usage", here, {name: told[name] for name in names})
    return came


def cut_short(came: Came, expected: Json) -> Came:
    """With its differences from what a stream that was cut may be: its beginning, and not whole.

    After the finish reason the reply is whole, and the counts may be missing.
    """
    if came.finished is not None:
        return compared(came, expected, usage=False)
    came.differ("content", (expected["content"] or "").startswith(came.text), True)
    came.differ("reasoning", (expected["reasoning"] or "").startswith(came.reasoning), True)
    if end_of(expected) is not None:
        came.differ("error", type(came.error), ReplyCut)
    return came


async def looped(calls: Sequence[ToolCall]) -> list[str]:
    """What is wrong with these calls once the tool loop has made them ours, to be stored and sent.

    Each has to be answered by a run or by an error, under an id of our own, and with a name and
    arguments that every server takes.
    """
    found = []
    offered = [_offered(name) for name in dict.fromkeys(call.name for call in calls)]
    made = await ToolLoop(CharacterCounter(), most_rounds=1).made(calls, offered, taken=())
    if [call.name for call in made] != [wire_name(call.name) for call in calls]:
        found.append(f"names: {[call.name for call in made]}")
    if len({call.id for call in made}) < len(made) or not all(map(_is_ours, made)):
        found.append(f"ids: {[call.id for call in made]}")
    for number, (call, one) in enumerate(zip(calls, made, strict=True)):
        function = one.stored["function"]
        try:
            wanted = json.loads(call.arguments, parse_constant=_refuse)
        except ValueError:
            wanted = None
        if json.loads(function["arguments"]) != one.arguments:
            found.append(f"arguments: {function['arguments']!r:.200}")
        runs = isinstance(wanted, dict) and number < MOST_CALLS
        if runs != isinstance(one.checked, Checked):
            found.append(f"checked: {one.checked!r:.200} of {call.arguments!r:.200}")
        if isinstance(wanted, dict) and one.arguments != wanted:
            found.append(f"arguments: {one.arguments!r:.200} instead of {wanted!r:.200}")
        if wire_call(one.stored) != one.stored:
            found.append(f"not as it is sent: {one.stored!r:.200}")
        if isinstance(one.checked, str) and not one.checked.startswith("error: "):
            found.append(f"no error: {one.checked!r:.200}")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _is_ours(call: MadeCall) -> bool:
    return len(call.id) == ID_LENGTH and call.id.isascii() and call.id.isalnum()


def _offered(name: str) -> Tool:
    """A tool of this name that takes anything."""

    async def nothing(arguments: Mapping[str, Any]) -> str:
        return ""

    return Tool(name=name, description="", parameters={"type": "object"}, run=nothing)


def split(data: bytes, chance: random.Random) -> Script:
    """The bytes in pieces of random sizes, some of them late."""
    steps: list[Step] = []
    position = 0
    longest = chance.choice([3, 40, 700, 20_000])
    while position < len(data):
        size = chance.randint(1, longest)
        steps.append(Raw(data[position : position + size]))
        position += size
        if chance.random() < min(0.3, 20 * longest / len(data)):
            steps.append(Delay(chance.random() * 0.005))
    return Script(steps=tuple(steps))


Judge = Callable[[Came, Json], Came]


async def streams(
    folder: Path, upstream: FakeUpstream, client: OpenAIClient, rounds: int, chance: random.Random
) -> list[str]:
    """What differs in any of the recorded streams."""
    found = []
    for line in (folder / "expected.jsonl").read_text("utf-8").splitlines():
        expected = json.loads(line)
        data = (folder / expected["file"]).read_bytes()
        tries: list[tuple[str, Script, Judge]] = [("whole", Script(steps=(Raw(data),)), compared)]
        tries += [(f"split {number}", split(data, chance), compared) for number in range(rounds)]
        for number in range(rounds):
            short = split(data[: chance.randrange(1, len(data))], chance)
            # The last piece has to leave before the connection is closed.
            script = short.followed_by(Delay(0.01), Cut())
            tries.append((f"cut {number}", script, cut_short))
        for name, script, judge in tries:
            came = judge(await played(upstream, client, script), expected)
            if came.finished is not None:
                came.differences += await looped(came.finished.tool_calls)
            found += [f"{expected['file']}, {name}: {one}" for one in came.differences]
    return found


async def errors(folder: Path, upstream: FakeUpstream, client: OpenAIClient) -> list[str]:
    """Which of the recorded answers got no sentence of ours."""
    found = []
    for number, one in enumerate(json.loads((folder / "http_errors.json").read_text("utf-8"))):
        body = one["body"] if isinstance(one["body"], str) else json.dumps(one["body"])
        script = Script(
            status=one["status"], body=body.encode(), content_type=one["content_type"][0]
        )
        # What the server objects to is left out, and it is asked again.
        upstream.enqueue(*[script] * 8)
        came = await played(upstream, client, script)
        upstream.forget()
        said = came.error.message if came.error else ""
        own = came.error is not None and said == type(came.error).default_message
        if not said or not own or body[:40] in said:
            found.append(f"error {number} ({one['status']}): {came.error!r}")
    return found


async def replay(folder: Path, rounds: int, seed: int) -> Iterator[str]:
    """Play everything; what differs."""
    chance = random.Random(seed)
    async with FakeUpstream() as upstream:
        client = OpenAIClient(base_url=upstream.base_url, api_key="a-key", limits=LIMITS)
        try:
            found = await streams(folder, upstream, client, rounds, chance)
            found += await errors(folder, upstream, client)
        finally:
            await client.aclose()
    return iter(found)


def main(arguments: Sequence[str]) -> int:
    """Print what differs; 0 when nothing does."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    differences = list(asyncio.run(replay(asked.folder, asked.rounds, asked.seed)))
    print("\n".join(differences) or "Everything is as it should be.")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
