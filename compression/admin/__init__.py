"""The review of summaries in Django's admin: base classes for a host's own two models."""

from compression.admin.changes import number_of
from compression.admin.facts import covered
from compression.admin.filters import CHIP, EitherFilter, RunningFilter, ShownValuesFilter
from compression.admin.lines import Said
from compression.admin.review import CHOOSE, Fact, ReviewAdmin, moment, moments, told
from compression.admin.summaries import SummaryReviewAdmin

__all__ = [
    "CHIP",
    "CHOOSE",
    "EitherFilter",
    "Fact",
    "ReviewAdmin",
    "RunningFilter",
    "Said",
    "ShownValuesFilter",
    "SummaryReviewAdmin",
    "covered",
    "moment",
    "moments",
    "number_of",
    "told",
]
