"""Lines of summaries that a project could keep: those of its conversations, and one of them."""

from __future__ import annotations

from chatapp.conversations.ownership import owned
from chatapp.conversations.projects.lines import Source, compared, read
from chatapp.conversations.projects.rows import owned_project
from chatapp.errors import InvalidInput
from chatapp.live.project_views import Suggestion
from chatapp.models import Conversation
from compression import store
from compression.database import in_database_thread, snapshot
from compression.exceptions import StaleVersion
from compression.ledger.lines import Line, lines_of
from compression.types import Section

#: Conversations whose summaries are read, the latest ones, and lines that are suggested at once.
MOST_READ, MOST_SUGGESTED = 12, 8
# Messages of one line that are named.
_MOST_SEQS = 20
#: What is likely to hold in another conversation too.
_WORTH = (Section.CONSTRAINTS, Section.DECISIONS)


@snapshot()
def suggestions(user_id: int, slug: str) -> list[Suggestion]:
    """Rules and decisions in summaries of the project's conversations that it neither keeps nor
    was told not to keep. Raises NotFound.
    """
    row = owned_project(user_id, slug)
    known = set(read(row.lines).known)
    summarised = Conversation.objects.filter(
        project=row, owner_id=user_id, deleted_at__isnull=True
    ).exclude(compressed_context="")
    found: list[Suggestion] = []
    for one in summarised.order_by("-updated_at", "-pk")[:MOST_READ]:
        for line in lines_of(store.read_base(one.pk).ledger):
            if line.section not in _WORTH or compared(line.text) in known:
                continue
            known.add(compared(line.text))
            found.append(
                Suggestion(
                    section=str(line.section),
                    text=line.text,
                    code=str(one.code),
                    title=one.title,
                    line=line.key,
                )
            )
            if len(found) == MOST_SUGGESTED:
                return found
    return found


@snapshot()
def summary_line(
    user_id: int, code: str, key: str, version: int | None
) -> tuple[Line, Source, str]:
    """A line of the conversation's summary, where it comes from, and its project's slug.

    Raises NotFound, StaleVersion when ``version`` is not the active one, and InvalidInput when the
    line is not there or the conversation is in no project.
    """
    row = owned(user_id, code)
    if row.project is None:
        raise InvalidInput.of("line", "This conversation is in no project. Move it to one first.")
    base = store.read_base(row.pk)
    if version is not None and base.version != version:
        raise StaleVersion(
            "The summary has changed meanwhile. This is the present one; nothing was done.",
            fields={"current_version": base.version},
        )
    line = next((one for one in lines_of(base.ledger) if one.key == key), None)
    if line is None:
        raise InvalidInput.of("line", "This line is not there any more.")
    return line, Source(code=code, seqs=line.sources[:_MOST_SEQS]), row.project.slug


asuggestions = in_database_thread(suggestions)
asummary_line = in_database_thread(summary_line)
