"""How a letter is answered by a model that may look things up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from compression.database import in_database_thread
from compression.tools.loop import ToolLoop, WrittenCall
from compression.tools.tool import Tool

from .compressing import COUNTER, SIZES
from .models import Letter

Reply = tuple[str, Sequence[WrittenCall]]
Ask = Callable[[list[dict[str, Any]], Sequence[Tool]], Awaitable[Reply]]


def count_letters(thread_id: int) -> Tool:
    """A tool that tells how many letters there are."""

    async def run(arguments: Mapping[str, Any]) -> str:
        letters = Letter.objects.filter(thread=thread_id, role=arguments["of"])
        return f"{await in_database_thread(letters.count)()} letters"

    return Tool(
        name="count_letters",
        description="The number of letters of one side.",
        parameters={
            "type": "object",
            "properties": {"of": {"enum": ["user", "assistant"]}},
            "required": ["of"],
        },
        run=run,
        read_only=True,
    )


async def answer(thread_id: int, messages: list[dict[str, Any]], ask: Ask) -> str:
    """The model's answer; ``messages`` grow by its calls and their results."""
    loop, tools = ToolLoop(COUNTER), (count_letters(thread_id),)
    while True:
        offered = tools if loop.offers else ()
        text, calls = await ask(messages, offered)
        loop.asked(offered)
        if not calls or not offered:
            return text
        known = [call["id"] for one in messages for call in one.get("tool_calls", ())]
        made = await loop.made(calls, offered, taken=known)
        messages.append(
            {"role": "assistant", "content": text, "tool_calls": [one.stored for one in made]}
        )
        async with aclosing(loop.answers(made, SIZES.ruler(1.0))) as answers:
            async for one in answers:
                result = {"tool_call_id": one.call.id, "content": one.outcome.text}
                messages.append({"role": "tool", **result})
