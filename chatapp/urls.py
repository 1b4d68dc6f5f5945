"""The URLs of pages and commands."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView, PasswordChangeDoneView
from django.urls import include, path

from chatapp.views import (
    accounts,
    activity,
    conversations,
    health,
    messages,
    pages,
    person,
    searching,
    summaries,
    tools,
    transfer,
)

handler400 = "chatapp.views.failures.bad_request"
handler404 = "chatapp.views.failures.not_found"
handler500 = "chatapp.views.failures.server_error"

_conversation = [
    path("", pages.conversation, name="conversation"),
    path("messages/", messages.send, name="message-send"),
    path("messages/<int:seq>/", pages.message, name="message"),
    path("messages/<int:seq>/replaced/", pages.replaced, name="message-replaced"),
    path("messages/<int:seq>/edit/", messages.edit, name="message-edit"),
    path("messages/<int:seq>/pin/", messages.pin("message-pin", on=True), name="message-pin"),
    path(
        "messages/<int:seq>/unpin/", messages.pin("message-unpin", on=False), name="message-unpin"
    ),
    path("masks/undo/", messages.unmask, name="masks-undo"),
    path("branch/", messages.branch, name="branch"),
    path("continue-in-new/", messages.continue_in_new, name="continue-in-new"),
    path("turns/<int:turn>/", pages.turn, name="turn"),
    path("stop/", messages.stop, name="turn-stop"),
    path("regenerate/", messages.regenerate, name="turn-regenerate"),
    path("continue/", messages.continue_reply, name="turn-continue"),
    path("draft/", messages.draft, name="draft"),
    path("queue/", messages.queue, name="queue"),
    path("compact/", summaries.compact, name="compact"),
    path("compact/cancel/", summaries.cancel, name="compact-cancel"),
    path("clear/", summaries.clear, name="clear"),
    path("summary/edit/", summaries.edit, name="summary-edit"),
    path("summary/restore/", summaries.restore, name="summary-restore"),
    path("summary/undo/", summaries.undo, name="summary-undo"),
    path("summary/redo/", summaries.redo, name="summary-redo"),
    path("calls/<str:call_id>/decide/", tools.decide, name="call-decide"),
    path("tools/", tools.conversation_tools, name="conversation-tools"),
    path("tools/change/", tools.change, name="tools-change"),
    path("context/", pages.context, name="context"),
    path("summaries/", pages.summaries, name="summary-versions"),
    path("activity/", activity.activity, name="activity"),
    path("export/", transfer.export, name="export"),
    path("seen/", conversations.seen, name="conversation-seen"),
    path("settings/", conversations.settings, name="conversation-settings"),
    *(
        path(
            f"{name}/",
            conversations.flag(f"conversation-{name}", field, on=on),
            name=f"conversation-{name}",
        )
        for name, field, on in (
            ("archive", "archived_at", True),
            ("unarchive", "archived_at", False),
            ("pin", "pinned_at", True),
            ("unpin", "pinned_at", False),
            ("delete", "deleted_at", True),
            ("undelete", "deleted_at", False),
        )
    ),
]

# Django's own paths and names, and the sign-in link.
_accounts = [
    path("login/", accounts.SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("password_change/", accounts.PasswordChange.as_view(), name="password_change"),
    path(
        "password_change/done/",
        PasswordChangeDoneView.as_view(),
        name="password_change_done",
    ),
    path("link/<str:uidb64>/<str:token>/", accounts.signin_link, name="signin-link"),
]

urlpatterns = [
    path("", pages.home, name="home"),
    path("c/", messages.create, name="conversation-create"),
    path("c/<str:code>/", include(_conversation)),
    path("import/", transfer.import_, name="import"),
    path("import/<str:code>/", transfer.import_job, name="import-job"),
    path("import/<str:code>/cancel/", transfer.import_cancel, name="import-cancel"),
    path("search/", searching.search, name="search"),
    path("settings/", person.settings, name="user-settings"),
    path("models/", pages.models, name="models"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("accounts/", include(_accounts)),
    path("admin/", admin.site.urls),
]
