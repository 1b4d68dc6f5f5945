"""Long conversations in the running product, before a model server that counts strictly."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.actions.importing import import_openai_messages
from chatapp.models import Conversation, Message, Summary, Turn
from compression.database import in_database_thread
from compression.tokens import default_counter
from tests.fake_scripts import Json, Script, Usage, default_answer, failing, is_summary_request
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, fresh_product, settle, signed_in

RULER = default_counter()
MODEL = "strict-model"
MESSAGE_OVERHEAD = 4
SLACK = 16
"""Tokens that a server may add for the frame of a whole request."""


@dataclass(slots=True)
class StrictUpstream:
    """A model whose tokenizer makes ``factor`` tokens of one of the ruler's.

    It refuses what does not fit its window together with the reply that is asked for, as real
    servers do, and keeps every such request in ``refused``.
    """

    window: int
    factor: float = 1.0
    unseen: int = 0
    """Tokens that it puts before each request without a word."""
    answer: Callable[[Json], Script] = default_answer
    overflow: Callable[[int, int], Script] | None = None
    """(tokens, window) -> how it refuses; None: OpenAI's words."""
    sizes: list[int] = field(default_factory=list)
    """Tokens of each request, the reply that it asks for included."""
    refused: list[Json] = field(default_factory=list)

    def tokens(self, request: Json) -> int:
        """What this model makes of a request's messages and of the tools that it offers."""
        texts = ((m.get("content") or "", m.get("tool_calls")) for m in request["messages"])
        ruler = sum(
            RULER.count(text)
            + (RULER.count(json.dumps(calls, ensure_ascii=False)) if calls else 0)
            + MESSAGE_OVERHEAD
            for text, calls in texts
        )
        if tools := request.get("tools"):
            ruler += RULER.count(json.dumps(tools, ensure_ascii=False))
        return round(ruler * self.factor) + self.unseen

    def __call__(self, request: Json) -> Script:
        """The handler for a :class:`FakeUpstream`."""
        asked = self.tokens(request)
        total = asked + int(request.get("max_tokens") or request.get("max_completion_tokens") or 0)
        self.sizes.append(total)
        if total > self.window + SLACK:
            self.refused.append(request)
            refuse = self.overflow or _refuse
            return refuse(asked, self.window)
        script = self.answer(request)
        steps = (Usage(prompt_tokens=asked) if isinstance(s, Usage) else s for s in script.steps)
        return replace(script, steps=tuple(steps))


def _refuse(tokens: int, window: int) -> Script:
    return failing(
        400,
        f"This model's maximum context length is {window} tokens. However, you requested "
        f"{tokens + 99} tokens ({tokens} in the messages, 99 in the completion). Please reduce the "
        "length of the messages or completion.",
        code="context_length_exceeded",
        parameter="messages",
    )


@dataclass(slots=True)
class Talk:
    """One conversation and the server behind it."""

    client: AsyncClient
    code: str
    upstream: FakeUpstream
    strict: StrictUpstream
    longest_pause: float = 0.0
    """Seconds for which the event loop stood still at most."""

    async def say(self, text: str) -> Mapping[str, Any]:
        """Send, wait for the turn and all that follows it; the turn's JSON, or the refusal's."""
        fields = {"text": text, "client_msg_id": str(uuid4())}
        answer = await self.client.post(f"/c/{self.code}/messages/", fields, headers=JSON)
        if answer.status_code != 202:
            return {"status": answer.status_code, **answer.json()}
        await settle()
        turn = answer.json()["turn"]
        told = await self.client.get(f"/c/{self.code}/turns/{turn}/", headers=JSON)
        return dict(told.json())

    async def chats(self) -> list[Json]:
        """The bodies of the requests for a reply, without those for summaries."""
        return [one.json for one in self.upstream.chats if not is_summary_request(one.json)]

    async def row(self) -> Conversation:
        """The conversation as it is stored."""
        return await in_database_thread(Conversation.objects.get)(code=self.code)

    async def summaries(self) -> list[Summary]:
        """Every attempt, in order."""
        rows = Summary.objects.filter(conversation__code=self.code).order_by("pk")
        return await in_database_thread(lambda: list(rows))()

    async def turns(self) -> list[Turn]:
        """Every turn that was run here."""
        rows = Turn.objects.filter(conversation__code=self.code).order_by("pk")
        return await in_database_thread(lambda: list(rows))()

    async def texts(self) -> list[str]:
        """All messages' texts, in order."""
        rows = Message.objects.filter(conversation__code=self.code).order_by("seq")
        return await in_database_thread(lambda: list(rows.values_list("text", flat=True)))()


def import_now(owner: User, messages: Iterable[Mapping[str, Any]]) -> str:
    """Store these as one conversation of ``owner``; its code."""
    stream = io.BytesIO(json.dumps(list(messages)).encode())
    report = import_openai_messages(owner.pk, stream, counter=RULER)
    return report.conversation.code


@asynccontextmanager
async def talking(
    owner: User,
    settings: Any,
    strict: StrictUpstream,
    history: Iterable[Mapping[str, Any]] = (),
    *,
    model_says_window: bool = True,
) -> AsyncIterator[Talk]:
    """The product in front of ``strict``, with a conversation that holds ``history``."""
    listed: Json = {"id": MODEL, "object": "model"}
    if model_says_window:
        listed["max_model_len"] = strict.window
    async with FakeUpstream(handler=strict, models=(listed,)) as upstream:
        settings.OPENAI_BASE_URL = upstream.base_url
        settings.OPENAI_API_KEY = "sk-test"
        messages = list(history)
        async with fresh_product():
            client = await signed_in(owner)
            if messages:
                code = await in_database_thread(import_now)(owner, messages)
            else:
                code = (await client.post("/c/", {}, headers=JSON)).json()["code"]
            talk = Talk(client=client, code=code, upstream=upstream, strict=strict)
            watch = asyncio.create_task(_watch(talk))
            try:
                yield talk
            finally:
                watch.cancel()


async def _watch(talk: Talk) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.005)
        talk.longest_pause = max(talk.longest_pause, time.perf_counter() - before - 0.005)
