"""The review of summaries in Django's admin: base classes for a host's own two models."""

from compression.admin.facts import covered
from compression.admin.review import (
    Fact,
    ReviewAdmin,
    RunningFilter,
    ShownValuesFilter,
    moment,
    moments,
    told,
)
from compression.admin.summaries import SummaryReviewAdmin

__all__ = [
    "Fact",
    "ReviewAdmin",
    "RunningFilter",
    "ShownValuesFilter",
    "SummaryReviewAdmin",
    "covered",
    "moment",
    "moments",
    "told",
]
