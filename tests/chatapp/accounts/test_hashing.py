"""Password hashes do not take the computer from everybody else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password

from chatapp import settings
from chatapp.accounts.hashing import AT_ONCE, PatientPasswordHasher

SIGN_INS = 20


def test_what_is_stored_stays_valid() -> None:
    """Under Django's own name and with its strength."""
    hasher, djangos = PatientPasswordHasher(), PBKDF2PasswordHasher()
    assert settings.PASSWORD_HASHERS == ["chatapp.accounts.hashing.PatientPasswordHasher"]
    assert hasher.algorithm == djangos.algorithm
    assert hasher.iterations == djangos.iterations
    assert hasher.verify("a password", djangos.encode("a password", "salt", 10))


def test_n04_two_passwords_are_hashed_at_a_time(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N04: set or checked, of whomever.

    Breaks when: the hasher waits for nobody, or only where a password is checked.
    """
    settings.PASSWORD_HASHERS = ["chatapp.accounts.hashing.PatientPasswordHasher"]  # type: ignore[attr-defined]
    running, most, lock = 0, 0, threading.Lock()
    own = PBKDF2PasswordHasher.encode

    def watched(self: PBKDF2PasswordHasher, *args: object) -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            return own(self, args[0], args[1], 20_000)  # type: ignore[arg-type]
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", watched)
    stored = make_password("a password")
    with ThreadPoolExecutor(12) as threads:
        made = [threads.submit(make_password, "another") for _ in range(6)]
        right = [threads.submit(check_password, "a password", stored) for _ in range(6)]
        assert all(one.result() for one in made)
        assert all(one.result() for one in right)
    assert most == AT_ONCE == 2
