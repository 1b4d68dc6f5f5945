"""Reviewing summaries in Django's admin: bases that a host registers for its own two models."""

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
