"""Server-sent events in, chunks out: pure, incremental, strict, bounded.

The SDK builds a model object for each chunk, which costs about ten times as much as the JSON
itself, and passes stray exceptions on. This decoder takes bytes at any split and yields the
values of :mod:`chatapp.llm.client`. It ignores what it does not know, and raises an
:class:`chatapp.llm.errors.LLMError` for what cannot be a reply.

Bytes become objects in :mod:`.event_stream`, objects are read in :mod:`.payloads`, and what they
say is handed over by :mod:`.chunks`. All three keep to the one :mod:`.bounds` of the reply.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatapp.llm.client import Chunk, Finished
from chatapp.llm.errors import EmptyReply, LLMError, MalformedReply, ReplyCut, ReplyTooLong
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.chunks import ChunkBuffer
from chatapp.llm.openai_compatible.classify import from_error_event
from chatapp.llm.openai_compatible.event_stream import EventReader, ServerSaid
from chatapp.llm.openai_compatible.payloads import PayloadReader

#: One event. Servers that send the token ids of the prompt along reach about 1 MB; 4 MB of JSON
#: are decoded in about 40 ms.
MAX_EVENT_BYTES = 4 * 1024 * 1024
#: Text, reasoning and tool arguments together.
MAX_REPLY_CHARACTERS = 400_000


class StreamDecoder:
    """One streamed reply. Feed bytes until they end, then call :meth:`end` once.

    ``error`` is what the server complained of after the model said why it stopped, or with it: the
    reply is whole as far as the model was concerned.
    """

    def __init__(
        self,
        *,
        max_reply_characters: int = MAX_REPLY_CHARACTERS,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.error: LLMError | None = None
        self._bounds = Bounds(max_characters=max_reply_characters, max_event_bytes=max_event_bytes)
        self._events = EventReader(self._bounds)
        self._chunks = ChunkBuffer(self._bounds)
        self._reply = PayloadReader(self._chunks, self._bounds)
        self._cut_inside_event = False

    @property
    def done(self) -> bool:
        """Whether ``[DONE]`` has come, or a complaint after the end: what follows is ignored."""
        return self._events.done or self.error is not None

    @property
    def finish_reason(self) -> str:
        """Why the model stopped; empty until it said so."""
        return self._reply.finish_reason

    @property
    def characters(self) -> int:
        """Characters of text, reasoning and tool arguments that have come so far."""
        return self._bounds.characters

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that these bytes complete; neighbours of one kind come as one.

        Raises MalformedReply, ReplyTooLong, or the error that the server sent, each after the
        chunks that came before it.
        """
        error: Exception | None = None
        try:
            if self.error is None:
                for payload, is_error in self._events.feed(data):
                    self._reply.take(payload, is_error=is_error)
        except (MalformedReply, ReplyTooLong) as caught:
            error = caught
        except ServerSaid as caught:
            error = self._complaint(from_error_event(caught.error))
        yield from self._chunks.drain()
        if error is not None:
            raise error from None

    def feed_whole(self, body: bytes) -> Iterator[Chunk]:
        """The chunks of an answer that is one JSON object instead of a stream."""
        yield from self.feed(b"data: " + b" ".join(body.splitlines()) + b"\n\n")

    def end(self) -> Iterator[Chunk]:
        """The chunks still held back, and then :class:`Finished`.

        Some servers (Snowflake) give no finish reason: their usage and ``[DONE]`` together are the
        end that they mean. Raises ReplyCut when neither has come, EmptyReply when nothing at all
        has, and what :meth:`feed` raises.
        """
        if not self.done and self._events.unfinished:
            yield from self._last_words()
        yield from self._chunks.rest()
        if not (self._events.count or self._cut_inside_event or self.done):
            raise EmptyReply("The model server closed the reply without sending anything. Retry.")
        reply, calls = self._reply, self._reply.tool_calls()
        reason = reply.finish_reason
        if not reason:
            if not self.done or reply.usage is None:
                raise ReplyCut
            reason = "tool_calls" if calls else "stop"
        yield Finished(
            finish_reason="refusal" if reason == "stop" and reply.only_refused else reason,
            tool_calls=calls,
            usage=reply.usage,
            model=reply.model,
            reasoning_field=reply.reasoning_field,
            error=self.error,
        )

    def _complaint(self, error: LLMError) -> LLMError | None:
        """The error if it ends the reply; None if the model had ended it, and it is only kept."""
        if not self.finish_reason:
            return error
        self.error = error
        return None

    def _last_words(self) -> Iterator[Chunk]:
        """An event without its blank line; half an event is what a cut leaves, so no error."""
        inside_event = self._events.inside_event
        try:
            yield from self.feed(b"\n\n")
        except MalformedReply:
            if not inside_event:
                raise
            self._cut_inside_event = True
