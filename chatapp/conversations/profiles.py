"""What is stored of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from chatapp.models import ModelProfile
from compression.database import across
from compression.tokens import calibrate


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


@transaction.atomic
def save(profiles: Mapping[str, Mapping[str, Any]], *, complete: bool = False) -> None:
    """Store what was found out of each model; what the operator set in the admin stays.

    ``complete``: these are all models of the server, others are no longer available.
    """
    if complete:
        ModelProfile.objects.exclude(name__in=profiles).update(available=False)
    for name, figures in profiles.items():
        row = ModelProfile.objects.select_for_update().filter(name=name).first()
        row = row or ModelProfile(name=name)
        sources = dict(figures.get("sources", {}))
        for field, value in figures.items():
            if field == "sources" or row.sources.get(field) in {"operator", "learned"}:
                continue
            setattr(row, field, value)
            row.sources[field] = sources.get(field, "")
        row.available = True
        row.save()


@transaction.atomic
def learn(name: str, field: str, value: Any) -> None:
    """Remember what a server taught us of a model: its window, or what it refuses."""
    row = ModelProfile.objects.select_for_update().filter(name=name).first()
    row = row or ModelProfile(name=name)
    setattr(row, field, value)
    row.sources[field] = "learned"
    row.save()


@transaction.atomic
def learn_usage(name: str, *, reported: int, counted: int) -> float | None:
    """Calibrate a model by the prompt tokens that its provider reported; the new factor."""
    row = ModelProfile.objects.select_for_update().filter(name=name).first()
    if row is None:
        return None
    row.calibration = calibrate(row.calibration, reported, counted)
    row.save(update_fields=["calibration", "updated_at"])
    return row.calibration


aprofile = across(profile)
anames = across(names)
asave = across(save)
alearn = across(learn)
alearn_usage = across(learn_usage)
