"""The admin's pages of models' figures, which the operator can correct."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatapp.admin.acts import Recorded
from chatapp.conversations.profiles import OPERATOR, forget, in_force, lessons
from chatapp.llm.lessons import Lesson
from chatapp.llm.profiles import SMALLEST_WINDOW
from chatapp.llm.servers.names import server_of
from chatapp.models import ModelProfile
from chatapp.profile_store import TAUGHT
from chatapp.text.safety import visible
from compression.admin import moment
from compression.tokens import HIGHEST_CALIBRATION, LOWEST_CALIBRATION

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[ModelProfile]
    ModelForm = forms.ModelForm[ModelProfile]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm

FIGURES = (*TAUGHT, "input_price", "cached_input_price", "output_price", "calibration")


class ModelProfileForm(ModelForm):
    """A form for figures that a request can be made with."""

    window = forms.IntegerField(validators=[MinValueValidator(SMALLEST_WINDOW)])
    max_output_tokens = forms.IntegerField(required=False, validators=[MinValueValidator(1)])
    calibration = forms.FloatField(
        validators=[MinValueValidator(LOWEST_CALIBRATION), MaxValueValidator(HIGHEST_CALIBRATION)]
    )

    class Meta:
        model = ModelProfile
        fields = ["name", *FIGURES, "reasoning_back", "available"]


def _label(field: str) -> str:
    return field.replace("_", " ")


def _told(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _figure(field: str) -> Callable[[ModelProfile], str]:
    """A column of the list: a figure in the form that the model's page shows."""

    @admin.display(description=_label(field), ordering=field)
    def column(profile: ModelProfile) -> str:
        return _told(getattr(profile, field))

    # Django names the column's cells after the function.
    column.__name__ = field
    return column


@admin.register(ModelProfile)
class ModelProfileAdmin(Recorded, ModelAdmin):
    """Windows, features and prices. What is set here stays, whatever a server says later.

    Lessons from refusals are shown too, and can be reset, for one model or several.
    """

    form = ModelProfileForm
    change_form_template = "admin/chatapp/modelprofile/change_form.html"
    list_display = (
        "shown_name",
        _figure("window"),
        "taught",
        _figure("max_output_tokens"),
        _figure("calibration"),
        "available",
        "updated",
    )
    actions = ("reset_learned",)
    list_filter = ("available",)
    search_fields = ("name",)
    ordering = ("name",)
    readonly_fields = ("figures", "updated")

    @admin.display(description="name", ordering="name")
    def shown_name(self, profile: ModelProfile) -> str:
        """The model's name, which is the server's text."""
        return visible(profile.name)

    @admin.display(description="updated", ordering="updated_at")
    def updated(self, profile: ModelProfile) -> str:
        """Time of the last change, by a person or by a server's figure."""
        return moment(profile.updated_at)

    @admin.display(description="learned")
    def taught(self, profile: ModelProfile) -> str:
        """The lessons that requests follow."""
        window = None if server_of(profile.name) else settings.CONTEXT_WINDOW
        found = in_force(profile, window=window)
        return ", ".join(f"{_label(name)}: {_told(value)}" for name, value in sorted(found.items()))

    @admin.display(description="where each figure comes from")
    def figures(self, profile: ModelProfile) -> SafeString | str:
        """Each figure with its source and date, and what refusals taught about it."""
        if profile.pk is None:
            return ""
        taught = lessons(profile)
        rows = format_html_join(
            "\n",
            "<tr><th scope='row'>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (
                    _label(name),
                    _told(getattr(profile, name)),
                    visible(str(profile.sources.get(name) or "not known")),
                    _moment(profile.dates.get(name)),
                    _lesson(taught[name]) if name in taught else "",
                )
                for name in FIGURES
            ),
        )
        return format_html(
            "<table><thead><tr><th scope='col'>Figure</th><th scope='col'>Value</th>"
            "<th scope='col'>Says who</th><th scope='col'>Since</th>"
            "<th scope='col'>Learned from refusals</th></tr></thead><tbody>{}</tbody></table>",
            rows,
        )

    @admin.action(description="Reset what was learned", permissions=["change"])
    def reset_learned(self, request: HttpRequest, profiles: QuerySet[ModelProfile]) -> None:
        """Delete what refusals and reports taught about these models; the operator's stays."""
        for profile in profiles:
            self._reset(request, profile)

    def _reset(self, request: HttpRequest, profile: ModelProfile) -> None:
        forgotten = ", ".join(_label(name) for name in forget(profile.pk))
        name = visible(profile.name)
        if forgotten:
            self.log_change(request, profile, f"Reset what was learned: {forgotten}.")
            self.message_user(request, f"What was learned of {name} is reset: {forgotten}.")
        else:
            self.message_user(request, f"Nothing was learned of {name}.", messages.INFO)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one model, with a button to reset lessons. Raises PermissionDenied."""
        if request.method == "POST" and "_reset_learned" in request.POST:
            profile = self.get_object(request, unquote(object_id))
            if profile is not None:
                if not self.has_change_permission(request, profile):
                    raise PermissionDenied
                self._reset(request, profile)
                return HttpResponseRedirect(request.path)
        return super().change_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: ModelProfile, form: Any, change: bool) -> None:
        """Mark each changed figure as the operator's, whatever was learned about it."""
        for name in form.changed_data:
            if name not in {"name", "reasoning_back", "available"}:
                obj.sources[name], obj.dates[name] = OPERATOR, timezone.now().isoformat()
                obj.learned.pop(name, None)
        super().save_model(request, obj, form, change)


def _moment(stored: str | None) -> str:
    return moment(datetime.fromisoformat(stored)) if stored else ""


def _lesson(lesson: Lesson) -> SafeString:
    """The learned figure, how often it was confirmed, and whether requests follow it."""
    times = "confirmed" if lesson.confirmed else "seen once"
    holds = "in force" if lesson.holds(timezone.now()) else "to be tried anew"
    last = moment(lesson.last)
    return format_html("{}: {}, last {}, {}", _told(lesson.value), times, last, holds)
