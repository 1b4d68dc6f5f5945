"""Reviewing the digests."""

from __future__ import annotations

from django.contrib import admin

from compression.admin import SummaryReviewAdmin

from .compressing import Letters
from .models import Digest


@admin.register(Digest)
class DigestAdmin(SummaryReviewAdmin):
    transcript = Letters()
