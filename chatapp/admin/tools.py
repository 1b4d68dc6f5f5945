"""The admin's pages of tool servers: addresses, keys, who may use them, approved definitions."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AdminTextInputWidget
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatapp import wiring
from chatapp.admin.acts import Recorded
from chatapp.conversations.tools import definitions, servers
from chatapp.conversations.tools.servers import access_to
from chatapp.models import PersonalKey, ToolDefinition, ToolServer
from chatapp.text.safety import visible
from chatapp.tools import sealing
from chatapp.tools.mcp.definitions import flaw, parsed
from compression.admin import moment

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[ToolServer]
    ModelForm = forms.ModelForm[ToolServer]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm

_HEADER_NAME = r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z"
_BUTTONS = ("_read", "_approve", "_withdraw")
MOVED = (
    "Requests go to another place now, so the keys that were stored for this server were deleted, "
    "and the approvals of its tools were taken back. Enter the keys again, and read the tools."
)


class ToolServerForm(ModelForm):
    """A form that takes a new key and never shows the stored one."""

    address = forms.CharField(
        required=False,
        max_length=500,
        widget=AdminTextInputWidget,
        help_text="Of a server that speaks streamable HTTP, as in https://tools.example.org/mcp.",
    )
    command = forms.CharField(
        required=False,
        widget=AdminTextInputWidget,
        help_text=(
            "Instead of an address: a program on this computer with its arguments, which speaks "
            "MCP over standard input and output. Only superusers can set it."
        ),
    )
    credential_name = forms.RegexField(
        _HEADER_NAME,
        initial="Authorization",
        help_text="The header that carries the key; for a command, an environment variable.",
    )
    key = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="For everybody, as in “Bearer …”. Stored encrypted and never shown again; empty: "
        "the stored one stays.",
    )
    remove_key = forms.BooleanField(required=False, help_text="Delete the stored key.")

    class Meta:
        model = ToolServer
        fields = [
            "name",
            "address",
            "command",
            "private_addresses",
            "enabled",
            "on_by_default",
            "everyone",
            "people",
            "credential_name",
            "personal_keys",
        ]
        help_texts = {
            "name": "Its tools are named after it: name__tool.",
            "private_addresses": "The address may lead to this computer or into its network.",
            "enabled": "Otherwise nobody can use it.",
            "on_by_default": "In conversations whose owner has not chosen.",
            "everyone": "Otherwise only these people:",
            "personal_keys": "Each person enters their own key, under Tools in a conversation.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "command" in self.fields:
            self.initial["command"] = shlex.join(map(str, self.instance.command))

    def clean_address(self) -> str:
        """An address with a scheme and a host, without a password in it."""
        address = str(self.cleaned_data["address"]).strip()
        if not address:
            return ""
        try:
            parts = urlsplit(address)
            usable = (
                parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
            )
            # Raises for a port that is none.
            usable = usable and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise forms.ValidationError("Enter an address like https://tools.example.org/mcp.")
        return address

    def clean_command(self) -> list[str]:
        """The program and its arguments, split as a shell would."""
        try:
            return shlex.split(str(self.cleaned_data["command"]))
        except ValueError:
            raise forms.ValidationError("A quotation mark is missing.") from None

    def clean_key(self) -> str:
        """A key that a header can carry."""
        key = str(self.cleaned_data["key"]).strip()
        if key and not (key.isascii() and key.isprintable()):
            raise forms.ValidationError("A key has letters, digits and signs on one line.")
        return key

    def clean(self) -> dict[str, Any]:
        """Either an address or a command."""
        cleaned = super().clean() or self.cleaned_data
        command = cleaned.get("command", self.instance.command)
        if not self.errors and bool(cleaned.get("address")) == bool(command):
            raise forms.ValidationError("Enter either an address or a command.")
        return cleaned


@admin.register(ToolServer)
class ToolServerAdmin(Recorded, ModelAdmin):
    """MCP servers. Their tools are offered once an administrator has approved the definitions."""

    form = ToolServerForm
    change_form_template = "admin/chatapp/toolserver/change_form.html"
    list_display = ("name", "where", "enabled", "waiting", "read")
    search_fields = ("name",)
    ordering = ("name",)

    @admin.display(description="where")
    def where(self, server: ToolServer) -> str:
        """Its address, or the program that is started."""
        return visible(server.address or str(server.command[0] if server.command else ""))

    @admin.display(description="waiting for approval")
    def waiting(self, server: ToolServer) -> str:
        """The number of definitions that are new or changed."""
        rows = server.definitions.defer("reported", "approved")
        return str(sum(not one.offered and not one.missing for one in rows) or "")

    @admin.display(description="definitions last read")
    def read(self, server: ToolServer) -> str:
        """When that was, and why it failed if it did."""
        when = moment(server.read_at) if server.read_at else "never"
        return f"{when}. {visible(server.problem)}" if server.problem else when

    @admin.display(description="key")
    def stored_key(self, server: ToolServer) -> str:
        """Whether one is stored; never the key itself."""
        if not server.sealed_key:
            return "none"
        try:
            sealing.unseal(server.sealed_key)
        except sealing.Unreadable:
            return "stored with another SECRET_KEY and unreadable: enter it again"
        return "stored, encrypted"

    @admin.display(description="tools")
    def tools(self, server: ToolServer) -> SafeString | str:
        """The definitions, each with what was approved if it is something else."""
        if server.pk is None:
            return "Save the server, then read its tools."
        rows = list(server.definitions.all())
        return format_html_join("\n", "{}", ((_definition(one),) for one in rows)) or "none yet"

    def get_fields(self, request: HttpRequest, obj: ToolServer | None = None) -> Any:
        """The form's fields, then what is stored."""
        shown = [*ToolServerForm.Meta.fields, "key", "remove_key"]
        return [*shown, *(["stored_key", "read", "tools"] if obj else [])]

    def get_readonly_fields(self, request: HttpRequest, obj: ToolServer | None = None) -> Any:
        """What is stored; and for all but superusers the command, which runs on this computer."""
        fields = ("stored_key", "read", "tools")
        return fields if request.user.is_superuser else (*fields, "command")

    def has_change_permission(self, request: HttpRequest, obj: ToolServer | None = None) -> bool:
        """Django's permission; only superusers change a server that is a command."""
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or not obj.command or request.user.is_superuser)

    def save_model(self, request: HttpRequest, obj: ToolServer, form: Any, change: bool) -> None:
        """Store it, with a new key encrypted.

        What was entrusted to a server ends when requests go elsewhere, or name the key otherwise:
        whoever may change the address could otherwise have the keys sent to their own computer.
        """
        before = ToolServer.objects.get(pk=obj.pk) if change else None
        moved = before is not None and _place(before) != _place(obj)
        if moved or form.cleaned_data.get("remove_key"):
            obj.sealed_key = ""
        if key := form.cleaned_data.get("key"):
            obj.sealed_key = sealing.seal(key)
        super().save_model(request, obj, form, change)
        if moved:
            servers.distrust(obj.pk)
            self.message_user(request, MOVED, messages.WARNING)
        if moved or before is None or before.name != obj.name:
            # They were given to whatever had this name until now.
            servers.forget_permissions(obj.name)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of a server, with buttons for its definitions. Raises PermissionDenied."""
        if request.method == "POST" and any(name in request.POST for name in _BUTTONS):
            server = self.get_object(request, unquote(object_id))
            if server is not None:
                if not self.has_change_permission(request, server):
                    raise PermissionDenied
                self._act(request, server)
                return HttpResponseRedirect(request.path)
        return super().change_view(request, object_id, form_url, extra_context)

    def _act(self, request: HttpRequest, server: ToolServer) -> None:
        # "name" after the hash of what was shown, so that nothing unseen is approved.
        chosen = [one.partition(" ") for one in request.POST.getlist("definition")]
        seen = {name: sha256 for sha256, _, name in chosen}
        if "_read" in request.POST:
            self._read(request, server)
        elif "_approve" in request.POST:
            able = _able(server, seen)
            approved = definitions.approve(server.pk, able, request.user.get_username())
            self._tell(request, server, "Approved", approved)
        else:
            definitions.withdraw(server.pk, list(seen))
            self._tell(request, server, "Took back the approval of", list(seen))

    def _read(self, request: HttpRequest, server: ToolServer) -> None:
        mine = PersonalKey.objects.filter(server=server, person=request.user.pk).first()
        access = access_to(server, mine.sealed_key if mine else "")
        problem = async_to_sync(wiring.mcp_tools().read)(access)
        if problem:
            self.message_user(request, visible(problem), messages.ERROR)
        else:
            self.message_user(request, "The tools were read.")

    def _tell(self, request: HttpRequest, server: ToolServer, act: str, names: list[str]) -> None:
        assert isinstance(request.user, User)
        if not names:
            self.message_user(request, "Nothing was changed.", messages.INFO)
            return
        sentence = f"{act} {visible(', '.join(names))}."
        self.log_change(request, server, sentence)
        self.message_user(request, sentence)


def _place(server: ToolServer) -> tuple[object, ...]:
    """What a key is sent to, and as what: another path of the same host is no other place."""
    parts = urlsplit(server.address)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port, server.command, server.credential_name


def _able(server: ToolServer, seen: dict[str, str]) -> dict[str, str]:
    """Those of the chosen definitions that can be offered at all."""
    rows = server.definitions.filter(name__in=list(seen))
    return {one.name: seen[one.name] for one in rows if not flaw(parsed(one.reported))}


def _state(one: ToolDefinition) -> str:
    if one.missing:
        return "no longer listed by the server"
    if wrong := flaw(parsed(one.reported)):
        return f"cannot be offered. {wrong}"
    if one.offered:
        return f"approved by {visible(one.approved_by)}"
    return "CHANGED since it was approved; not offered" if one.approved else "new; not offered"


def _definition(one: ToolDefinition) -> SafeString:
    """One definition with its box, its raw object, and the approved one if that is another."""
    before: SafeString | str = ""
    if one.approved and not one.offered:
        before = format_html("<p>As approved:</p><pre>{}</pre>", _lines(one.approved))
    return format_html(
        '<details><summary><label><input type="checkbox" name="definition" value="{} {}"> {}'
        "</label>: {}</summary><pre>{}</pre>{}</details>",
        one.reported_sha256,
        one.name,
        visible(one.name),
        _state(one),
        _lines(one.reported),
        before,
    )


def _lines(stored: str) -> str:
    """A stored object on several lines, with hidden characters shown."""
    return visible(json.dumps(parsed(stored), indent=2, ensure_ascii=False))
