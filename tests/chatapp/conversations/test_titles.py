from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations import lifecycle, titles
from tests.chatapp.talking import new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_a_persons_title_is_never_replaced_by_the_machine(alice: User) -> None:
    code = new(alice)
    pk = row_of(code).pk
    number = titles.set_automatic_title(pk, "First words")
    assert number == row_of(code).event_no
    assert titles.set_automatic_title(pk, "Later words") is None
    lifecycle.change(alice.pk, code, {"title": "", "title_source": "person"})
    assert titles.set_automatic_title(pk, "Against their will") is None
