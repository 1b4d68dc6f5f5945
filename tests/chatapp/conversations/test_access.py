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
from chatapp.conversations import access, reading
from chatapp.errors import NotFound
from chatapp.models import Conversation, Message, Project, Turn
from tests.chatapp.talking import PROCESS_ID, begin, context_view, end, first_message, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

# What the functions of this room want besides a person and a code.
VALUES: dict[str, Any] = {
    "action": "remove",
    "changes": {"title": "theirs"},
    "client_msg_id": uuid.uuid4(),
    "context": context_view,
    "event_no": 1,
    "field": "deleted_at",
    "first": first_message("theirs"),
    "process_id": PROCESS_ID,
    "keep_turns": 1,
    "model": "model",
    "most_tokens": 1000,
    "query": "hello",
    "seq": 1,
    "summary_tokens": 1,
    "text": "theirs",
    "tokens": 1,
    "turn_id": 1,
}


def on_ones_own() -> Iterator[Any]:
    """Every function of this room that takes a person and a code, with these two left open."""
    for found in pkgutil.iter_modules(conversations.__path__):
        module = import_module(f"{conversations.__name__}.{found.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            wanted = inspect.signature(function).parameters
            foreign = function.__module__ != module.__name__ or name.startswith("_")
            if foreign or not {"user_id", "code"} <= wanted.keys():
                continue
            # Its answer is None; it has a test of its own below.
            if inspect.iscoroutinefunction(function) or function is access.may_follow:
                continue
            values = {one: VALUES[one] for one in wanted if one in VALUES}
            for more in ({"on": True}, {"on": False}) if "on" in wanted else ({},):
                label = "-".join([f"{found.name}.{name}", *(str(one) for one in more.values())])
                yield pytest.param(partial(function, **values, **more), id=label)


def test_it_works(alice: User) -> None:
    code = access.create(alice.pk, title="A title", model="model", system_prompt="Be kind.")
    row = access.owned(alice.pk, code)
    assert (row.title, row.title_source, row.model, row.system_prompt) == (
        "A title",
        "person",
        "model",
        "Be kind.",
    )
    assert access.newest(alice.pk) == code
    assert access.may_follow(alice.pk, code) == row.pk


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
        assert access.may_follow(alice.pk, other) is None or other == code
        if other != code:
            with pytest.raises(NotFound):
                access.owned(alice.pk, other)


def test_i20_who_may_not_sign_in_may_not_follow(alice: User, bob: User) -> None:
    """Breaks when: ``may_follow`` does not ask whether the owner is active."""
    code = new(alice)
    assert access.may_follow(bob.pk, code) is None
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert access.may_follow(alice.pk, code) is None


def test_deletion_hides_and_can_be_taken_back(alice: User) -> None:
    code = new(alice)
    access.set_flag(alice.pk, code, "deleted_at", on=True)
    assert access.newest(alice.pk) is None
    assert access.links(alice.pk) == []
    assert access.may_follow(alice.pk, code) is None
    with pytest.raises(NotFound):
        access.owned(alice.pk, code)
    with pytest.raises(NotFound):
        reading.snapshot_with_tail(row_of(code).pk)
    access.set_flag(alice.pk, code, "deleted_at", on=False)
    assert access.newest(alice.pk) == code


def test_archived_ones_have_a_list_of_their_own(alice: User) -> None:
    kept, archived = new(alice), new(alice)
    access.set_flag(alice.pk, archived, "archived_at", on=True)
    assert [one.code for one in access.links(alice.pk)] == [kept]
    assert [one.code for one in access.links(alice.pk, archived=True)] == [archived]
    assert access.newest(alice.pk) == kept


def test_r05_the_list_costs_the_same_at_ten_thousand_conversations(
    alice: User, django_assert_num_queries: Any
) -> None:
    """R05: one query and so many lines; the rest is found by searching.

    Breaks when: ``links`` reads all there are, or asks for each whether it is answering.
    """
    Conversation.objects.bulk_create(
        Conversation(owner=alice, title=f"number {number}") for number in range(10_000)
    )
    with django_assert_num_queries(1):
        found = access.links(alice.pk)
    assert len(found) == access.LINKS


def test_the_list_has_pinned_ones_first_then_the_latest(
    alice: User, bob: User, django_assert_num_queries: Any
) -> None:
    first, second, third = new(alice), new(alice), new(alice)
    new(bob)
    access.set_flag(alice.pk, second, "pinned_at", on=True)
    accepted = begin(alice, first)
    with django_assert_num_queries(1):
        links = access.links(alice.pk)
    assert [one.code for one in links] == [second, first, third]
    assert [one.answering for one in links] == [False, True, False]
    end(accepted)
    assert not any(one.answering for one in access.links(alice.pk))


def test_a_persons_title_is_never_replaced_by_the_machine(alice: User) -> None:
    code = new(alice)
    pk = row_of(code).pk
    number = access.set_automatic_title(pk, "First words")
    assert number == row_of(code).event_no
    assert access.set_automatic_title(pk, "Later words") is None
    access.change(alice.pk, code, {"title": "", "title_source": "person"})
    assert access.set_automatic_title(pk, "Against their will") is None


def test_each_change_of_settings_is_numbered(alice: User) -> None:
    code = new(alice)
    assert access.change(alice.pk, code, {"system_prompt": "Be brief."}) == 1
    assert access.change(alice.pk, code, {"keep_turns": 3}) == 2


def test_a_project_must_be_ones_own(alice: User, bob: User) -> None:
    Project.objects.create(owner=bob, name="Secret", slug="secret")
    with pytest.raises(NotFound):
        access.create(alice.pk, project="secret")
    assert access.project_id(alice.pk, "") is None
    assert Conversation.objects.count() == 0
    assert access.create(bob.pk, project="secret")


def test_a_draft_that_waits_to_be_sent_is_left_alone(alice: User) -> None:
    code = new(alice)
    access.save_draft(alice.pk, code, "being written")
    assert row_of(code).draft == "being written"
    Conversation.objects.update(draft="waits", send_when_done=True)
    access.save_draft(alice.pk, code, "being written")
    assert row_of(code).draft == "waits"
