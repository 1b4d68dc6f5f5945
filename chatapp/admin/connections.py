"""The admin's pages of connections to model servers: addresses, keys, models, people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from chatapp.actions.connections.managing import look
from chatapp.admin.acts import Recorded
from chatapp.conversations.connections.stored import forget_figures, place
from chatapp.errors import InvalidInput
from chatapp.models import Connection
from chatapp.text.safety import visible
from chatapp.tools import sealing
from chatapp.views.connections import fields as checked
from compression.admin import moment

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Connection]
    ModelForm = forms.ModelForm[Connection]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm

FIELDS = ["name", "address", "private_addresses", "enabled", "everyone", "people"]
MOVED = (
    "Requests go to another place now, so the stored key was deleted. Enter the key again, and "
    "list the models."
)


class ConnectionForm(ModelForm):
    """A form that takes a new key and never shows the stored one."""

    address = forms.CharField(
        max_length=checked.ADDRESS_LENGTH,
        widget=AdminTextInputWidget,
        help_text="Of a server with OpenAI's API, as in https://api.openai.com/v1.",
    )
    offered = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="The models that may be chosen, of those that the server listed last.",
    )
    key = forms.CharField(
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Stored encrypted and never shown again; empty: the stored one stays.",
    )
    remove_key = forms.BooleanField(required=False, help_text="Delete the stored key.")

    class Meta:
        model = Connection
        fields = FIELDS
        help_texts = {
            "name": "Its models are called after it: model @ name. It stays as it is.",
            "private_addresses": "The address may lead to this computer or into its network. Only "
            "superusers can say so.",
            "enabled": "Otherwise nobody can use it.",
            "everyone": "Otherwise only these people are offered its models:",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = self.fields["offered"]
        assert isinstance(offered, forms.MultipleChoiceField)
        offered.choices = [
            (one["name"], visible(one["name"])) for one in self.instance.models_listed
        ]
        self.initial["offered"] = self.instance.models_offered

    def clean_address(self) -> str:
        """An address with a scheme and a host, without a password in it."""
        return self._checked(checked.address, "address")

    def clean_key(self) -> str:
        """A key that a header can carry."""
        return self._checked(checked.key, "key")

    def _checked(self, check: Any, field: str) -> str:
        try:
            return str(check({field: str(self.cleaned_data[field])}))
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None


@admin.register(Connection)
class ConnectionAdmin(Recorded, ModelAdmin):
    """Model servers besides the one of the settings."""

    form = ConnectionForm
    change_form_template = "admin/chatapp/connection/change_form.html"
    list_display = ("name", "where", "enabled", "everyone", "offers", "state")
    search_fields = ("name",)
    ordering = ("name",)
    filter_horizontal = ("people",)

    @admin.display(description="where")
    def where(self, row: Connection) -> str:
        """Its address."""
        return visible(row.address)

    @admin.display(description="models offered")
    def offers(self, row: Connection) -> str:
        """How many of its models may be chosen."""
        return f"{len(row.models_offered)} of {len(row.models_listed)}"

    @admin.display(description="models last listed")
    def state(self, row: Connection) -> str:
        """When that was, and why it failed if it did."""
        when = moment(row.looked_at) if row.looked_at else "never"
        return f"{when}. {visible(row.problem)}" if row.problem else when

    @admin.display(description="key")
    def stored_key(self, row: Connection) -> str:
        """Whether one is stored; never the key itself."""
        if not row.sealed_key:
            return "none"
        try:
            sealing.unseal(row.sealed_key)
        except sealing.Unreadable:
            return "stored with another SECRET_KEY and unreadable: enter it again"
        return "stored, encrypted"

    def get_fields(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        """The form's fields, then what is stored."""
        shown = [*FIELDS, "key", "remove_key"]
        return [*shown, "offered", "stored_key", "state"] if obj else shown

    def get_readonly_fields(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        """What is stored; the name, since conversations name it; the network, for superusers."""
        fixed = ["stored_key", "state", *(["name"] if obj else [])]
        return fixed if request.user.is_superuser else [*fixed, "private_addresses"]

    def save_model(self, request: HttpRequest, obj: Connection, form: Any, change: bool) -> None:
        """Store it, with a new key encrypted. Another place never gets the key of the first."""
        before = Connection.objects.get(pk=obj.pk) if change else None
        moved = before is not None and place(before.address) != place(obj.address)
        if moved or form.cleaned_data.get("remove_key"):
            obj.sealed_key = ""
        if moved and not request.user.is_superuser:
            # Who may change the address could otherwise name any inside the network.
            obj.private_addresses = False
        if key := form.cleaned_data.get("key"):
            obj.sealed_key = sealing.seal(key)
        if change:
            obj.offered = form.cleaned_data.get("offered", [])
        super().save_model(request, obj, form, change)
        if moved and not key:
            self.message_user(request, MOVED, messages.WARNING)

    def delete_model(self, request: HttpRequest, obj: Connection) -> None:
        """Delete it, with what is known of its models."""
        forget_figures(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """The same for several."""
        for row in queryset:
            forget_figures(row)
        super().delete_queryset(request, queryset)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a connection, with a button that asks its server. Raises PermissionDenied."""
        if request.method == "POST" and "_look" in request.POST:
            row = self.get_object(request, unquote(object_id))
            if row is not None:
                if not self.has_change_permission(request, row):
                    raise PermissionDenied
                if problem := async_to_sync(look)(row):
                    self.message_user(request, visible(problem), messages.ERROR)
                else:
                    self.message_user(request, "The models were listed.")
                return HttpResponseRedirect(request.path)
        return super().change_view(request, object_id, form_url, extra_context)
