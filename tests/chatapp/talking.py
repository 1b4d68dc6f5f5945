"""Conversations for tests, made through the product's own doors."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from chatapp.conversations import lifecycle
from chatapp.conversations.messages.measures import tail_tokens
from chatapp.conversations.turns import beginning, progress, sending
from chatapp.live.view_models import ContextView
from chatapp.models import Conversation, Message, Turn, TurnStatus

R = TypeVar("R")
PROCESS_ID = "this process"


def context_view(row: Conversation) -> ContextView:
    """A meter without a model: B is 1,000 tokens."""
    tail = tail_tokens(row)
    return ContextView(
        model="model",
        window=1200,
        reserve=200,
        budget=1000,
        system=0,
        summary=0,
        pinned=0,
        tail=tail,
        total=tail,
        usage=tail / 1000,
        threshold=0.8,
        estimated=False,
    )


def by(model: str) -> sending.Admit:
    """There is room for any message, and this model answers."""
    return lambda snapshot: model


def new(owner: User) -> str:
    return lifecycle.create(owner.pk)


def row_of(code: str) -> Conversation:
    return Conversation.objects.get(code=code)


def live_texts(code: str) -> list[str]:
    messages = Message.objects.filter(conversation__code=code, superseded_at=None)
    return list(messages.order_by("seq").values_list("text", flat=True))


def send(
    owner: User,
    code: str,
    text: str = "Hello",
    client_msg_id: uuid.UUID | None = None,
    **more: Any,
) -> sending.Accepted | sending.Queued:
    return sending.accept(
        owner.pk,
        code,
        text=text,
        client_msg_id=client_msg_id or uuid.uuid4(),
        **{"tokens": 5, "admit": by("model"), "process_id": PROCESS_ID, **more},
    )


def first_message(text: str = "Hello", **more: Any) -> beginning.First:
    """What a new conversation is to begin with; there is room for it."""
    given = {
        "tokens": 5,
        "process_id": PROCESS_ID,
        "admit": by("model"),
    }
    return beginning.First(text=text, **{"client_msg_id": uuid.uuid4(), **given, **more})


def begin(owner: User, code: str, text: str = "Hello", **more: Any) -> sending.Accepted:
    """Send, with no turn open."""
    accepted = send(owner, code, text, **more)
    assert isinstance(accepted, sending.Accepted)
    return accepted


def end(
    accepted: sending.Accepted,
    text: str = "Hello yourself",
    status: TurnStatus = TurnStatus.COMPLETE,
    **more: Any,
) -> progress.Ended | None:
    ending = progress.Ending(status=status, text=text, tokens=7, **more)
    return progress.finish(PROCESS_ID, accepted.turn, accepted.reply_id, ending)


def exchange(owner: User, code: str, text: str = "Hello", reply: str = "Yes") -> sending.Accepted:
    """A whole turn."""
    accepted = begin(owner, code, text)
    assert end(accepted, reply) is not None
    return accepted


def long_conversation(owner: User, messages: int) -> str:
    """So many messages at once, two a turn, as an import would leave them."""
    code = new(owner)
    row = row_of(code)
    now = timezone.now()
    turns = Turn.objects.bulk_create(
        Turn(conversation=row, status=TurnStatus.COMPLETE, finished_at=now)
        for _ in range(messages // 2)
    )
    Message.objects.bulk_create(
        Message(
            conversation=row,
            seq=seq,
            turn=turns[(seq - 1) // 2],
            role="user" if seq % 2 else "assistant",
            text=f"m{seq}",
            token_count=5,
            event_no=1,
            created_at=now,
        )
        for seq in range(1, messages + 1)
    )
    Conversation.objects.filter(pk=row.pk).update(next_seq=messages + 1, event_no=1)
    return code


def expire(turn_id: int) -> None:
    """As if the process that holds the turn had died half a minute ago."""
    long_ago = timezone.now() - timedelta(minutes=1)
    Turn.objects.filter(pk=turn_id).update(lease_expires_at=long_ago)


def at_once(*works: Callable[[], R]) -> list[R | BaseException]:
    """Run these in threads that begin together; what each returned or raised, in order."""
    barrier = threading.Barrier(len(works))
    results: list[R | BaseException] = [RuntimeError("did not run")] * len(works)

    def run(number: int, work: Callable[[], R]) -> None:
        try:
            # Connecting takes longer than the work: it would put the threads in a row.
            connections["default"].ensure_connection()
            barrier.wait(30)
            results[number] = work()
        except BaseException as error:
            results[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results
