"""The storing of an imported conversation: completely or not at all, and only once.

A long conversation is stored in portions, so that no transaction is long. Until the last portion it
is marked ``importing`` and counts as deleted, so that its owner's queries do not find it. The rest
of an interrupted import is deleted in portions too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import IntegrityError, transaction

from chatapp.conversations.imports.portions import (
    FIRST_EVENT,
    ConversationGone,
    Counted,
    Unfinished,
    add_portion,
)
from chatapp.conversations.projects.rows import named
from chatapp.models import Conversation, TitleSource
from chatapp.transfer.values import ForeignConversation, Identity, OwnState
from compression import store
from compression.database import in_database_thread

# Versions of a summary stored in one transaction, which take 15 ms.
VERSIONS_AT_ONCE = 20
# The fields reported of a conversation that was imported before.
_TOLD = ("code", "deleted_at", "source_fingerprint")


@dataclass(frozen=True, kw_only=True)
class ImportedConversation:
    """The conversation that an import led to."""

    code: str
    created: bool
    """False: the same conversation had been imported before, and nothing was changed."""
    deleted: bool = False
    """The conversation that was imported before is deleted."""
    earlier: str = ""
    """The code of a shorter or longer import of the same conversation, if there is one."""
    begun_at: datetime | None = None
    ended_at: datetime | None = None
    """Of a created one: its own dates."""


def find_imported(owner_id: int, identity: Identity) -> ImportedConversation | None:
    """The person's conversation with this identity, if there is one.

    Older releases stored only a fingerprint of the content. The first conversation with the same
    content is then taken to be it, and gets the whole identity.
    """
    known = Conversation.objects.filter(
        owner_id=owner_id, source_fingerprint__in={identity.whole, identity.content}
    )
    rows = {row.source_fingerprint: row for row in known.only(*_TOLD)}
    row = rows.get(identity.whole) or rows.get(identity.content)
    if row is None:
        return None
    if row.source_fingerprint != identity.whole:
        Conversation.objects.filter(pk=row.pk, source_fingerprint=identity.content).update(
            source_fingerprint=identity.whole, source_key=identity.source
        )
    return ImportedConversation(
        code=str(row.code), created=False, deleted=row.deleted_at is not None
    )


def begin_import(
    owner_id: int,
    foreign: ForeignConversation,
    identity: Identity,
    *,
    title: str,
    title_source: TitleSource,
    model: str = "",
    keep_system_prompt: bool = False,
    job_id: int | None = None,
) -> Unfinished:
    """Store a conversation without messages; it stays hidden until :func:`finish_import`.

    ``model`` is the one to talk to, unless the file is our own export and names another.
    """
    now = datetime.now(UTC)
    known = (one.created_at for one in foreign.messages if one.created_at)
    first = foreign.created_at or next(known, None) or foreign.updated_at or now
    row = Conversation(
        owner_id=owner_id,
        title=title,
        title_source=title_source,
        model=model,
        system_prompt=foreign.system_prompt if keep_system_prompt else "",
        event_no=FIRST_EVENT,
        seen_event_no=FIRST_EVENT,
        import_job_id=job_id,
        importing=True,
        deleted_at=now,
    )
    if foreign.own is not None:
        _take_over(row, foreign.own, now)
    row.save(force_insert=True)
    return Unfinished(
        conversation_id=row.pk,
        code=str(row.code),
        owner_id=owner_id,
        identity=identity,
        moment=min(first, now),
        created_at=min(first, now),
    )


def _take_over(row: Conversation, own: OwnState, now: datetime) -> None:
    """Give a conversation that has not been stored yet what our own export says of it."""
    row.system_prompt = own.system_prompt
    row.model = own.model or row.model
    row.threshold, row.keep_turns = own.threshold, own.keep_turns
    row.compression_off = own.compression_off
    row.temperature = own.options.temperature
    row.reasoning_effort = own.options.reasoning_effort or None
    row.answer_tokens = own.options.answer_tokens
    row.preview_first = own.preview_first
    row.project_id = named(row.owner_id, own.project) if own.project else None
    row.pinned_at = now if own.pinned else None
    row.archived_at = now if own.archived else None
    row.truncated_through = own.truncated_through


def add_versions(unfinished: Unfinished, own: OwnState, first: int = 0) -> int:
    """Store some versions of the summary in one transaction, after all messages.

    ``first`` of them are stored already. Returns the number that are stored now.
    """
    through = min(first + VERSIONS_AT_ONCE, len(own.versions))
    store.bring_versions(
        unfinished.conversation_id,
        own.versions[first:through],
        active=own.active,
        author_id=unfinished.owner_id,
    )
    return through


def finish_import(unfinished: Unfinished, foreign: ForeignConversation) -> ImportedConversation:
    """Make the conversation visible, in one transaction.

    If the same one was imported meanwhile, returns that one, and this one stays hidden. Raises
    ConversationGone.
    """
    own = foreign.own
    now = datetime.now(UTC)
    updated = max(min(foreign.updated_at or unfinished.moment, now), unfinished.created_at)
    try:
        with transaction.atomic():
            finished = Conversation.objects.filter(pk=unfinished.conversation_id).update(
                importing=False,
                deleted_at=None,
                source_fingerprint=unfinished.identity.whole,
                source_key=unfinished.identity.source,
                next_seq=unfinished.seq + 1,
                event_no=FIRST_EVENT,
                truncated_through=own.truncated_through if own else 0,
                created_at=unfinished.created_at,
                updated_at=updated,
            )
            if not finished:
                raise ConversationGone
    except IntegrityError:
        found = find_imported(unfinished.owner_id, unfinished.identity)
        if found is None:
            raise
        return found
    return ImportedConversation(
        code=unfinished.code,
        created=True,
        earlier=_earlier(unfinished),
        begun_at=unfinished.created_at,
        ended_at=updated,
    )


def _earlier(unfinished: Unfinished) -> str:
    """The code of another import of the same conversation; empty if there is none."""
    if not unfinished.identity.source:
        return ""
    others = Conversation.objects.filter(
        owner_id=unfinished.owner_id,
        source_key=unfinished.identity.source,
        importing=False,
        deleted_at=None,
    ).exclude(pk=unfinished.conversation_id)
    code = others.order_by("-pk").values_list("code", flat=True).first()
    return str(code) if code else ""


def store_import(
    owner_id: int,
    foreign: ForeignConversation,
    *,
    tokens: Sequence[int],
    title: str,
    title_source: TitleSource,
    model: str = "",
    keep_system_prompt: bool = False,
    identity: Identity | None = None,
    job_id: int | None = None,
) -> ImportedConversation:
    """Store a short conversation in one transaction, for which others wait.

    It has at most ``VERSIONS_AT_ONCE`` versions of a summary. ``tokens`` are the ruler tokens of
    each message, in order; ``model`` as for :func:`begin_import`. A conversation imported before is
    found again, even if two imports of it run at the same moment.
    """
    identity = identity or foreign.identity
    counted = [
        Counted(message=one, tokens=count)
        for one, count in zip(foreign.messages, tokens, strict=True)
    ]
    with transaction.atomic():
        unfinished = begin_import(
            owner_id,
            foreign,
            identity,
            title=title,
            title_source=title_source,
            model=model,
            keep_system_prompt=keep_system_prompt,
            job_id=job_id,
        )
        unfinished = add_portion(unfinished, counted)
        if foreign.own is not None:
            add_versions(unfinished, foreign.own)
        stored = finish_import(unfinished, foreign)
        if not stored.created:
            transaction.set_rollback(True)
    return stored


afind_imported = in_database_thread(find_imported, lane="bulk")
aadd_versions = in_database_thread(add_versions, lane="bulk")
abegin_import = in_database_thread(begin_import, lane="bulk")
afinish_import = in_database_thread(finish_import, lane="bulk")
astore_import = in_database_thread(store_import, lane="bulk")
