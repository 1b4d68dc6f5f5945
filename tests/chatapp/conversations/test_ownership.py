from __future__ import annotations

import inspect
import pkgutil
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from chatapp import conversations
from chatapp.conversations import lifecycle, listing, ownership
from chatapp.conversations.continuing import LeftBehind
from chatapp.errors import NotFound
from chatapp.models import Conversation, Message, Turn
from compression.types import Ledger
from tests.chatapp.talking import PROCESS_ID, begin, by, context_view, first_message, new

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

# What the functions of this room want besides a person and a code.
VALUES: dict[str, Any] = {
    "admit": by("model"),
    "action": "remove",
    "after_seq": 0,
    "arguments_sha256": "0" * 64,
    "before_seq": 2,
    "call_id": "a1b2c3d4e",
    "changes": {"title": "theirs"},
    "client_msg_id": uuid.uuid4(),
    "context": context_view,
    "days": 1,
    "decision": "once",
    "event_no": 1,
    "field": "deleted_at",
    "first": first_message("theirs"),
    "process_id": PROCESS_ID,
    "keep_turns": 1,
    "key": "0",
    "ledger": Ledger(),
    "left": LeftBehind(version=0, text="", ledger=Ledger(), first_kept=1, items=()),
    "model": "model",
    "name": "notes",
    "most_tokens": 1000,
    "query": "hello",
    "seq": 1,
    "share_id": 1,
    "summaries": True,
    "summary_tokens": 1,
    "text": "theirs",
    "tokens": 1,
    "tool": "notes__write",
    "tools": True,
    "try_only": False,
    "turn_id": 1,
    "version": None,
}


def on_ones_own() -> Iterator[Any]:
    """Every function of this room that takes a person and a code, with these two left open."""
    for found in pkgutil.walk_packages(conversations.__path__, f"{conversations.__name__}."):
        module = import_module(found.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            wanted = inspect.signature(function).parameters
            foreign = function.__module__ != module.__name__ or name.startswith("_")
            if foreign or not {"user_id", "code"} <= wanted.keys():
                continue
            # Its answer is None; it has a test of its own below.
            if inspect.iscoroutinefunction(function) or function is ownership.may_follow:
                continue
            values = {one: VALUES[one] for one in wanted if one in VALUES}
            for more in ({"on": True}, {"on": False}) if "on" in wanted else ({},):
                room = found.name.removeprefix(f"{conversations.__name__}.")
                label = "-".join([f"{room}.{name}", *(str(one) for one in more.values())])
                yield pytest.param(partial(function, **values, **more), id=label)


def test_it_works(alice: User) -> None:
    code = lifecycle.create(alice.pk, title="A title", model="model", system_prompt="Be kind.")
    row = ownership.owned(alice.pk, code)
    assert (row.title, row.title_source, row.model, row.system_prompt) == (
        "A title",
        "person",
        "model",
        "Be kind.",
    )
    assert listing.newest(alice.pk) == code
    assert ownership.may_follow(alice.pk, code) == row.pk


@pytest.mark.parametrize("work", list(on_ones_own()))
def test_i19_a_stranger_sees_what_a_wrong_code_shows_and_changes_nothing(
    alice: User, bob: User, work: Callable[..., Any]
) -> None:
    """Each function of the room, those that are still to be written too.

    Breaks when: ``owned`` or ``locked`` does not filter by owner.
    """
    code = new(alice)
    begin(alice, code)
    before = Conversation.objects.values().get()
    said = []
    for wrong in (code, str(uuid.uuid4()), " ", "x", code.upper(), code.replace("-", "")):
        # A row is held within a transaction only.
        with pytest.raises(NotFound) as caught, transaction.atomic():
            work(user_id=bob.pk, code=wrong)
        said.append(caught.value.as_dict())
    assert all(one == said[0] for one in said)
    assert Conversation.objects.values().get() == before
    assert (Message.objects.count(), Turn.objects.filter(stop_requested_at=None).count()) == (2, 1)


def test_a_code_has_one_form_only(alice: User) -> None:
    code = new(alice)
    for other in (code.upper(), code.replace("-", ""), f"{{{code}}}", f"urn:uuid:{code}"):
        assert ownership.may_follow(alice.pk, other) is None or other == code
        if other != code:
            with pytest.raises(NotFound):
                ownership.owned(alice.pk, other)


def test_i20_who_may_not_sign_in_may_not_follow(alice: User, bob: User) -> None:
    """Breaks when: ``may_follow`` does not ask whether the owner is active."""
    code = new(alice)
    assert ownership.may_follow(bob.pk, code) is None
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert ownership.may_follow(alice.pk, code) is None
