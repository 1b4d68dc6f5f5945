"""The stored profiles of models: figures of servers and price data, and lessons from refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from chatapp.llm.lessons import TRIAL, Lesson, Value, taught
from chatapp.llm.profiles import SMALLEST_WINDOW
from chatapp.models import ModelProfile
from compression.database import across
from compression.tokens import FIRST_CALIBRATION, calibrate

OPERATOR = "operator"
DEFAULT = "default"
# What is measured rather than said: no refusal teaches it for a time.
MEASURED = frozenset({"calibration"})
# Figures of which a refusal names a smaller one; of the others, that the server refuses them.
LIMITS = frozenset({"window", "max_output_tokens"})


def profile(name: str) -> ModelProfile | None:
    """The stored profile of a model."""
    return ModelProfile.objects.filter(name=name).first()


def profiles() -> list[ModelProfile]:
    """All stored profiles, in the order in which their models were first heard of."""
    return list(ModelProfile.objects.order_by("pk"))


def names() -> list[str]:
    """The models that the server listed when last asked."""
    return list(
        ModelProfile.objects.filter(available=True).order_by("name").values_list("name", flat=True)
    )


def lessons(row: ModelProfile) -> dict[str, Lesson]:
    """The lessons on a model, still believed or not, by the figure's name."""
    return {field: Lesson.from_json(stored) for field, stored in row.learned.items()}


def in_force(row: ModelProfile, *, window: int | None = None) -> dict[str, Value]:
    """The lessons that requests are made by now, where they say otherwise than the profile.

    ``window`` is the operator's, which goes before the profile's own.
    """
    now = timezone.now()
    found = {}
    for field, lesson in lessons(row).items():
        given = window if field == "window" else None
        known = given or getattr(row, field)
        # Where nobody had said a figure, a larger one is news as well.
        larger = field in LIMITS and known and lesson.value > known
        if larger and (given or not _guessed(row, field)):
            continue
        if lesson.holds(now) and lesson.value != known:
            found[field] = lesson.value
    return found


def _guessed(row: ModelProfile, field: str) -> bool:
    return bool(row.sources.get(field, DEFAULT) == DEFAULT)


@transaction.atomic
def save(profiles: Mapping[str, Mapping[str, Any]], *, complete: bool = False) -> None:
    """Store what was found out of each model; what the operator set in the admin stays.

    ``complete``: these are all models of the server, others are no longer available.
    """
    if complete:
        ModelProfile.objects.exclude(name__in=profiles).filter(available=True).update(
            available=False
        )
    found = ModelProfile.objects.select_for_update().filter(name__in=profiles)
    rows = {row.name: row for row in found}
    for name, figures in profiles.items():
        row = rows.get(name) or ModelProfile(name=name)
        if _fill(row, figures) or row.pk is None or not row.available:
            row.available = True
            row.save()


def _fill(row: ModelProfile, figures: Mapping[str, Any]) -> bool:
    """Put what was found out into a profile; whether that changes anything."""
    sources = figures.get("sources", {})
    now = timezone.now().isoformat()
    changed = False
    for field, value in figures.items():
        if field == "sources" or row.sources.get(field) == OPERATOR:
            continue
        source = sources.get(field, "")
        if field in row.dates and (getattr(row, field), row.sources.get(field)) == (value, source):
            continue
        if field in row.dates and getattr(row, field) != value:
            # The server says otherwise than before: what it refused then counts no more.
            row.learned.pop(field, None)
        setattr(row, field, value)
        row.sources[field], row.dates[field] = source, now
        changed = True
    return changed


@transaction.atomic
def learn(name: str, field: str, value: Value | float, *, named: bool = True) -> None:
    """Note what a refusal taught of a model: its window, or what its server does not know.

    :mod:`chatapp.llm.lessons` says for how long that counts. True for something that was thought
    to be refused ends that: the server took it. ``named``: the server said this very figure.
    """
    row = ModelProfile.objects.select_for_update().filter(name=name).first()
    row = row or ModelProfile(name=name)
    now = timezone.now()
    if field in MEASURED:
        setattr(row, field, value)
        row.dates[field] = now.isoformat()
    elif value is True:
        row.learned.pop(field, None)
    elif _plausible(row, field, value):
        before = lessons(row).get(field)
        row.learned[field] = taught(
            before, int(value) if field in LIMITS else bool(value), now, named=named
        ).as_json()
    row.save()


def _plausible(row: ModelProfile, field: str, value: float) -> bool:
    """No window is smaller than a request that has just been answered, nor than can be."""
    if field != "window":
        return True
    lately = row.longest_at is not None and timezone.now() - row.longest_at < TRIAL
    return value >= SMALLEST_WINDOW and not (lately and row.longest_prompt > value)


@transaction.atomic
def learn_usage(name: str, *, reported: int, counted: int) -> float | None:
    """Calibrate a model by the prompt tokens that its provider reported; the new factor.

    A window that is smaller than a request which was answered is forgotten.
    """
    row = ModelProfile.objects.select_for_update().filter(name=name).first()
    if row is None:
        return None
    now = timezone.now()
    row.calibration = calibrate(row.calibration, reported, counted)
    row.dates["calibration"] = now.isoformat()
    if row.longest_at is None or reported >= row.longest_prompt or now - row.longest_at > TRIAL:
        row.longest_prompt, row.longest_at = reported, now
    window = lessons(row).get("window")
    if window is not None and reported > window.value:
        del row.learned["window"]
    row.save(
        update_fields=[
            "calibration",
            "dates",
            "longest_prompt",
            "longest_at",
            "learned",
            "updated_at",
        ]
    )
    return row.calibration


@transaction.atomic
def forget(profile_id: int) -> list[str]:
    """Reset what was learned of a model; the names of the figures. The operator's stay."""
    row = ModelProfile.objects.select_for_update().get(pk=profile_id)
    forgotten = sorted(row.learned)
    row.learned = {}
    row.longest_prompt, row.longest_at = 0, None
    if row.sources.get("calibration") != OPERATOR and row.calibration != FIRST_CALIBRATION:
        row.calibration = FIRST_CALIBRATION
        row.dates.pop("calibration", None)
        forgotten.append("calibration")
    row.save()
    return forgotten


aprofile = across(profile)
aprofiles = across(profiles)
anames = across(names)
asave = across(save)
alearn = across(learn)
alearn_usage = across(learn_usage)
