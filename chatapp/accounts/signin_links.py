"""Sign-in links, which work once and without a password, and the owner's account.

Besides :mod:`chatapp.conversations`, only this module uses the database: accounts are Django's, and
no conversation is read or written here.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

OWNER_NAME = "owner"


class SignInTokens(PasswordResetTokenGenerator):
    """Tokens that expire after PASSWORD_RESET_TIMEOUT seconds or at the next sign-in."""

    # With a salt of their own, these and Django's tokens cannot be used for one another.
    key_salt = "chatapp.accounts.signin_links.SignInTokens"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        # Django drops the microseconds, so that a link made and used within the same second as the
        # last sign-in would work twice. Both of our databases store them.
        moment: datetime | None = user.last_login
        value = super()._make_hash_value(user, timestamp)
        return f"{value}{moment.isoformat() if moment else ''}"


tokens = SignInTokens()


@transaction.atomic
def ensure_owner() -> tuple[User | None, bool]:
    """The oldest active superuser, and whether this call created it.

    If there is no superuser at all, creates one named ``owner``, without a usable password. None if
    all superusers are inactive: a restart of the server must not let anybody in.
    """
    people = get_user_model().objects
    superusers = people.filter(is_superuser=True).order_by("pk")
    if superusers.exists():
        return superusers.filter(is_active=True).first(), False
    name, number = OWNER_NAME, 1
    while people.filter(username=name).exists():
        number += 1
        name = f"{OWNER_NAME}-{number}"
    return people.create_superuser(name, password=None), True


def find_person(name: str) -> User | None:
    """The active person of that name; for an empty name the oldest active superuser."""
    people = get_user_model().objects.filter(is_active=True)
    if name:
        return people.filter(username=name).first()
    return people.filter(is_superuser=True).order_by("pk").first()


def signin_link(user: User, base_url: str) -> str:
    """An absolute address that signs ``user`` in once, within PASSWORD_RESET_TIMEOUT seconds.

    ``base_url`` is scheme, host and port, as in ``http://127.0.0.1:8000``.
    """
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return f"{base_url.rstrip('/')}/accounts/link/{uid}/{tokens.make_token(user)}/"


def user_from_link(uidb64: str, token: str) -> User | None:
    """The person whom a link would sign in; None if it is wrong, used or expired. Only reads."""
    try:
        key = int(urlsafe_base64_decode(uidb64).decode("ascii"))
    except ValueError:
        return None
    if not 0 < key < 2**63:
        return None
    user = get_user_model().objects.filter(pk=key, is_active=True).first()
    return user if user is not None and tokens.check_token(user, token) else None


def use_link(uidb64: str, token: str) -> User | None:
    """Use up a link. Returns the person to sign in; None if it is wrong, used or expired.

    A conditional UPDATE of the time of the last sign-in lets only one of two simultaneous uses win.
    """
    user = user_from_link(uidb64, token)
    if user is None:
        return None
    now = timezone.now()
    spent = (
        get_user_model()
        .objects.filter(pk=user.pk, is_active=True, last_login=user.last_login)
        .update(last_login=now)
    )
    if not spent:
        return None
    user.last_login = now
    return user
