"""Reviewing the digests."""

from __future__ import annotations

from django.contrib import admin

from compression.admin import SummaryReviewAdmin
from tests.standalone.letters.compressing import Letters
from tests.standalone.letters.models import Digest


@admin.register(Digest)
class DigestAdmin(SummaryReviewAdmin):
    transcript = Letters()
