"""The stored profiles of models: figures from servers and price data, lessons from refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chatapp.llm.lessons import TRIAL, Lesson, Value, taught
from chatapp.llm.profiles import SMALLEST_WINDOW
from chatapp.llm.servers.names import SEPARATOR
from chatapp.models import ModelProfile
from compression.database import in_database_thread
from compression.planning.projection import Report
from compression.tokens import FIRST_CALIBRATION, calibrate

OPERATOR = "operator"
DEFAULT = "default"
# Measured figures, which a refusal does not teach for a limited time.
MEASURED = frozenset({"calibration"})
# Figures for which a refusal names a smaller value; refusals of others mean "not supported".
LIMITS = frozenset({"window", "max_output_tokens"})


def profile(name: str) -> ModelProfile | None:
    """The stored profile of a model."""
    return ModelProfile.objects.filter(name=name).first()


def profiles() -> list[ModelProfile]:
    """All stored profiles, in the order in which the models were first seen."""
    return list(ModelProfile.objects.order_by("pk"))


def names() -> list[str]:
    """The models that the chat's server listed last."""
    rows = _of_the_chat().filter(available=True)
    return list(rows.order_by("name").values_list("name", flat=True))


def _of_the_chat() -> QuerySet[ModelProfile]:
    """The models of the chat's own server: the names of all others say which server it is."""
    return ModelProfile.objects.exclude(name__contains=SEPARATOR)


def lessons(row: ModelProfile) -> dict[str, Lesson]:
    """All lessons about a model by the figure's name, including expired ones."""
    return {field: Lesson.from_json(stored) for field, stored in row.learned.items()}


def in_force(row: ModelProfile, *, window: int | None = None) -> dict[str, Value]:
    """The valid lessons that differ from the profile, which requests follow.

    ``window`` is the operator's setting, which has priority over the profile's own.
    """
    now = timezone.now()
    found = {}
    for field, lesson in lessons(row).items():
        given = window if field == "window" else None
        known = given or getattr(row, field)
        # A larger figure is worth learning only if the known one was a guess.
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
    """Store the figures found for each model; those set by the operator in the admin stay.

    ``complete``: these are all models of the chat's server; others are marked as unavailable.
    """
    if complete:
        gone = _of_the_chat().exclude(name__in=profiles).filter(available=True)
        gone.update(available=False)
    found = ModelProfile.objects.select_for_update().filter(name__in=profiles)
    rows = {row.name: row for row in found}
    for name, figures in profiles.items():
        row = rows.get(name) or ModelProfile(name=name)
        if _fill(row, figures) or row.pk is None or not row.available:
            row.available = True
            row.save()


def _fill(row: ModelProfile, figures: Mapping[str, Any]) -> bool:
    """Enter the found figures in a profile. Returns whether that changed anything."""
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
            # The server's figure has changed, so its earlier refusals no longer count.
            row.learned.pop(field, None)
        setattr(row, field, value)
        row.sources[field], row.dates[field] = source, now
        changed = True
    return changed


@transaction.atomic
def learn(name: str, field: str, value: Value | float, *, named: bool = True) -> None:
    """Store what a refusal taught about a model: its window, or what its server does not support.

    :mod:`chatapp.llm.lessons` decides how long that is valid. The value True ends an earlier
    lesson, since the server accepted the feature. ``named``: the server named this figure.
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
    """False for a window below the smallest possible, or below an answered request."""
    if field != "window":
        return True
    lately = row.longest_at is not None and timezone.now() - row.longest_at < TRIAL
    return value >= SMALLEST_WINDOW and not (lately and row.longest_prompt > value)


@transaction.atomic
def learn_usage(name: str, reports: Sequence[Report]) -> None:
    """Calibrate a model by the prompt tokens that its provider reported of answered requests.

    A learned window smaller than one of them is forgotten. Of an unknown model nothing is learned.
    """
    row = ModelProfile.objects.select_for_update().filter(name=name).first()
    if row is None:
        return
    now, longest = timezone.now(), max(one.reported for one in reports)
    row.calibration = calibrated(row.calibration, reports)
    row.dates["calibration"] = now.isoformat()
    if row.longest_at is None or longest >= row.longest_prompt or now - row.longest_at > TRIAL:
        row.longest_prompt, row.longest_at = longest, now
    window = lessons(row).get("window")
    if window is not None and longest > window.value:
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


def calibrated(factor: float, reports: Iterable[Report]) -> float:
    """A model's calibration after these reports, in their order."""
    for one in reports:
        factor = calibrate(factor, one.reported, one.counted)
    return factor


@transaction.atomic
def forget(profile_id: int) -> list[str]:
    """Delete the lessons about a model. Returns the figures' names. The operator's stay."""
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


aprofile = in_database_thread(profile)
aprofiles = in_database_thread(profiles)
anames = in_database_thread(names)
asave = in_database_thread(save)
alearn = in_database_thread(learn)
alearn_usage = in_database_thread(learn_usage, lane="background")
