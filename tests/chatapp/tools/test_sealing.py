"""Keys of servers are stored encrypted."""

from __future__ import annotations

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from chatapp.tools.sealing import Unreadable, seal, unseal

SECRET = "Bearer sk-something"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_sealed_comes_back(secret: str) -> None:
    assert unseal(seal(secret)) == secret


def test_nothing_of_it_can_be_read() -> None:
    """Breaks when: the text is encoded instead of encrypted, or encrypted without a fresh IV."""
    assert SECRET not in seal(SECRET)
    assert seal(SECRET) != seal(SECRET)


def test_another_secret_key_reads_nothing() -> None:
    """Breaks when: the key is not derived from ``SECRET_KEY``."""
    sealed = seal(SECRET)
    with override_settings(SECRET_KEY="x" * 60), pytest.raises(Unreadable):
        unseal(sealed)


def test_a_fallback_still_reads() -> None:
    with override_settings(SECRET_KEY="old" * 20):
        sealed = seal(SECRET)
    with override_settings(SECRET_KEY="new" * 20, SECRET_KEY_FALLBACKS=["old" * 20]):
        assert unseal(sealed) == SECRET


def test_a_changed_one_is_refused() -> None:
    sealed = seal(SECRET)
    flipped = "A" if sealed[40] != "A" else "B"
    with pytest.raises(Unreadable):
        unseal(sealed[:40] + flipped + sealed[41:])
