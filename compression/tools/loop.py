"""The tool loop of one turn: which requests offer tools, and how the calls of a reply are answered.

A host asks its model, stores what was called, has it answered here, stores the answers, and asks
again, until the model answers in words. It never runs a call itself::

    loop = ToolLoop(counter)
    while True:
        offered = tools if loop.offers else ()
        reply = await ask(messages, offered)
        loop.asked(offered)
        if not reply.calls:
            break
        calls = await loop.made(reply.calls, offered, taken=ids)
        async with aclosing(loop.answers(calls, budget)) as answers:
            async for answer in answers:
                ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compression.exceptions import ToolFailed
from compression.ports import TokenCounter
from compression.tools.approval import Approve
from compression.tools.arguments import as_json, as_object
from compression.tools.calls import Checked, Checker, new_id, wire_name
from compression.tools.rounds import MOST_ROUNDS, Rounds
from compression.tools.running import SECONDS, Limits, Outcome, run
from compression.tools.tool import Tool


class WrittenCall(Protocol):
    """A call as a model wrote it."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> str:
        """JSON, if the model wrote it well."""

    @property
    def extra(self) -> Mapping[str, Any]:
        """Fields of the server's own, sent back unchanged; those of ``function`` under that key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A call that is stored and answered."""

    id: str
    """Our own: not among those ``taken``, and random enough to come only once anywhere."""
    name: str
    arguments: Mapping[str, Any]
    stored: dict[str, Any]
    """The call in OpenAI's form, as it is stored and sent back."""
    checked: Checked | str
    """What may run, or the error that answers the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a call."""

    call: MadeCall
    outcome: Outcome


class ToolLoop:
    """The rounds and calls of one turn.

    ``approve`` is asked before a tool runs that is not read-only; without it none such runs.
    """

    def __init__(
        self,
        counter: TokenCounter,
        *,
        most_rounds: int = MOST_ROUNDS,
        seconds: float = SECONDS,
        approve: Approve | None = None,
    ) -> None:
        self._counter = counter
        self._seconds = seconds
        self._approve = approve
        self._checker = Checker()
        self._rounds = Rounds(most=most_rounds)

    @property
    def offers(self) -> bool:
        """Whether the next request offers tools."""
        return self._rounds.offers

    @property
    def begun(self) -> bool:
        """Whether any request of the turn has offered tools."""
        return self._rounds.begun > 0

    def asked(self, offered: Sequence[Tool]) -> None:
        """Note that a request was answered, which offered these tools."""
        self._rounds = self._rounds.after(offered=bool(offered))

    async def made(
        self, calls: Sequence[WrittenCall], offered: Sequence[Tool], *, taken: Iterable[str]
    ) -> tuple[MadeCall, ...]:
        """The calls of one reply, checked, with ids that are not ``taken``.

        Calls of a reply to a request that offered nothing are a round too, so that they have an
        end.
        """
        if not offered:
            self._rounds = self._rounds.after(offered=True)
        written = [(call.name, call.arguments) for call in calls]
        # In a thread: schemas come from anywhere, and may be hard to check.
        checks = await asyncio.to_thread(self._checker.check, written, offered)
        ids = set(taken)
        made = []
        for call, checked in zip(calls, checks, strict=True):
            ids.add(identity := new_id(ids))
            made.append(_made(identity, call, checked))
        return tuple(made)

    async def answers(self, calls: Sequence[MadeCall], budget: int) -> AsyncGenerator[Answer, None]:
        """The answer to each call as it comes; ``budget`` is B in ruler tokens.

        Calls that change nothing run at once, the others one after another. Closing the generator
        ends every tool.
        """
        running = [call for call in calls if isinstance(call.checked, Checked)]
        limits = Limits.of_round(budget, len(running), seconds=self._seconds)
        one_by_one = asyncio.Lock()
        tasks = [asyncio.create_task(self._answer(call, limits, one_by_one)) for call in calls]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, call: MadeCall, limits: Limits, one_by_one: asyncio.Lock) -> Answer:
        checked = call.checked
        if isinstance(checked, str):
            return Answer(call=call, outcome=Outcome(text=checked, seconds=0.0))
        if checked.tool.read_only:
            return Answer(call=call, outcome=await self._run(call, checked, limits))
        async with one_by_one:
            return Answer(call=call, outcome=await self._run(call, checked, limits))

    async def _run(self, call: MadeCall, checked: Checked, limits: Limits) -> Outcome:
        async def approve() -> bool:
            if self._approve is None:
                raise ToolFailed("Nobody can approve calls here, so it did not run.")
            return await self._approve(checked.tool, call.id, checked.arguments)

        asked = None if checked.tool.read_only else approve
        return await run(checked, limits, self._counter, approve=asked)


def _made(identity: str, call: WrittenCall, checked: Checked | str) -> MadeCall:
    extra = dict(call.extra)
    inside = extra.pop("function", {})
    name = wire_name(call.name)
    function = {**inside, "name": name, "arguments": as_json(call.arguments)}
    return MadeCall(
        id=identity,
        name=name,
        arguments=as_object(call.arguments),
        stored={**extra, "id": identity, "type": "function", "function": function},
        checked=checked,
    )
