"""What reviewers say of stored rows: who, when, and whether it is good. Each is one UPDATE.

A row's summary never changes, so that a word on it holds for what was read.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from compression import conf
from compression.models import REVIEW_NOTE, Review
from compression.store.rows import clean


def mark_seen(row_id: int, *, reviewer_id: int | None) -> bool:
    """Record that somebody looked at a row. False when somebody had already."""
    unseen = _row(row_id).filter(review__isnull=True)
    return bool(unseen.update(**_said(Review.SEEN, reviewer_id)))


def decide(
    row_id: int, review: Review, *, expected: str, reviewer_id: int | None, note: str = ""
) -> bool:
    """Record a reviewer's word, who read the row when its word was ``expected``.

    False, with nothing changed, when another reviewer has said something else meanwhile.
    """
    open_still = Q(review__isnull=True) | Q(review=Review.SEEN.value) | Q(review=expected)
    found = _row(row_id).filter(open_still)
    return bool(found.update(**_said(review, reviewer_id, clean(note.strip())[:REVIEW_NOTE])))


def _row(row_id: int) -> Any:
    return conf.summary_model()._default_manager.filter(pk=row_id)


def _said(review: Review, reviewer_id: int | None, note: str = "") -> dict[str, Any]:
    return {
        "review": review.value,
        "review_note": note or None,
        "reviewed_at": Now(),
        "reviewer_id": reviewer_id,
    }
