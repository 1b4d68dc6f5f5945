"""What is known of models, for the operator to correct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import HttpRequest

from chatapp.llm.profiles import SMALLEST_WINDOW
from chatapp.models import ModelProfile
from chatapp.text import visible
from compression.admin import moment
from compression.tokens import HIGHEST_CALIBRATION, LOWEST_CALIBRATION

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[ModelProfile]
    ModelForm = forms.ModelForm[ModelProfile]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm

# The source that no server and no price list overrules.
OPERATOR = "operator"


class ModelProfileForm(ModelForm):
    """Figures that a request can be made with."""

    window = forms.IntegerField(validators=[MinValueValidator(SMALLEST_WINDOW)])
    max_output_tokens = forms.IntegerField(required=False, validators=[MinValueValidator(1)])
    calibration = forms.FloatField(
        validators=[MinValueValidator(LOWEST_CALIBRATION), MaxValueValidator(HIGHEST_CALIBRATION)]
    )

    class Meta:
        model = ModelProfile
        fields = [
            "name",
            "window",
            "max_output_tokens",
            "supports_tools",
            "supports_system_role",
            "supports_json_schema",
            "supports_usage",
            "input_price",
            "cached_input_price",
            "output_price",
            "calibration",
            "available",
        ]


@admin.register(ModelProfile)
class ModelProfileAdmin(ModelAdmin):
    """Windows, abilities and prices. What is set here stays, whatever a server says later."""

    form = ModelProfileForm
    list_display = (
        "shown_name",
        "window",
        "max_output_tokens",
        "calibration",
        "available",
        "updated",
    )
    list_filter = ("available",)
    search_fields = ("name",)
    ordering = ("name",)
    readonly_fields = ("sources", "updated")

    @admin.display(description="name", ordering="name")
    def shown_name(self, profile: ModelProfile) -> str:
        """The model's name, which its server chose."""
        return visible(profile.name)

    @admin.display(description="updated at", ordering="updated_at")
    def updated(self, profile: ModelProfile) -> str:
        """When it was changed, by a person or by what a server said."""
        return moment(profile.updated_at)

    def save_model(self, request: HttpRequest, obj: ModelProfile, form: Any, change: bool) -> None:
        """Mark each figure that was changed as the operator's."""
        for name in form.changed_data:
            if name not in {"name", "available"}:
                obj.sources[name] = OPERATOR
        super().save_model(request, obj, form, change)
