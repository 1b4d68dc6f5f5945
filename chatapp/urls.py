"""The URLs of pages and commands."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView, PasswordChangeDoneView
from django.urls import include, path

from chatapp.conversations.imports import undoing
from chatapp.views import (
    accounts,
    activity,
    conversations,
    health,
    installing,
    log,
    messages,
    outline,
    pages,
    person,
    searching,
    tools,
    transfer,
)
from chatapp.views.connections import pages as connections
from chatapp.views.projects import acts as project_acts
from chatapp.views.projects import pages as project_pages
from chatapp.views.sharing import links, shared
from chatapp.views.summaries import acts, previews

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
    path("compact/", acts.compact, name="compact"),
    path("compact/cancel/", acts.cancel, name="compact-cancel"),
    path("clear/", acts.clear, name="clear"),
    path("preview/", previews.preview, name="preview"),
    path("preview/make/", previews.make, name="preview-make"),
    path("preview/apply/", previews.apply, name="preview-apply"),
    path("preview/discard/", previews.discard, name="preview-discard"),
    path("summary/lines/", previews.lines, name="summary-lines"),
    path("summary/lines/change/", previews.change_line, name="summary-line-change"),
    path("summary/keep/", project_acts.keep, name="summary-keep"),
    path("summary/edit/", acts.edit, name="summary-edit"),
    path("summary/restore/", acts.restore, name="summary-restore"),
    path("summary/undo/", acts.undo, name="summary-undo"),
    path("summary/redo/", acts.redo, name="summary-redo"),
    path("calls/<str:call_id>/decide/", tools.decide, name="call-decide"),
    path("tools/", tools.conversation_tools, name="conversation-tools"),
    path("tools/change/", tools.change, name="tools-change"),
    path("context/", pages.context, name="context"),
    path("summaries/", pages.summaries, name="summary-versions"),
    path("outline/", outline.outline, name="outline"),
    path("find/", outline.find, name="find"),
    path("activity/", activity.activity, name="activity"),
    path("export/", transfer.export, name="export"),
    path("shares/", links.of_conversation, name="conversation-shares"),
    path("shares/make/", links.make, name="share-make"),
    path("shares/<int:share>/revoke/", links.revoke, name="share-revoke"),
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

_project = [
    path("", project_pages.project, name="project"),
    path("settings/", project_acts.settings, name="project-settings"),
    path(
        "archive/",
        project_acts.archived("project-archive", on=True),
        name="project-archive",
    ),
    path(
        "unarchive/",
        project_acts.archived("project-unarchive", on=False),
        name="project-unarchive",
    ),
    path("delete/", project_acts.delete, name="project-delete"),
    path("lines/change/", project_acts.change_line, name="project-line-change"),
    path("lines/undo/", project_acts.undo, name="project-undo"),
    path("lines/redo/", project_acts.redo, name="project-redo"),
    path("suggestions/", project_acts.suggestion, name="project-suggestion"),
]

_connections = [
    path("", connections.connections, name="connections"),
    path("<int:number>/change/", connections.change, name="connection-change"),
    path("<int:number>/look/", connections.look, name="connection-look"),
    path("<int:number>/key/", connections.key, name="connection-key"),
    path("<int:number>/delete/", connections.delete, name="connection-delete"),
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
    path("projects/", project_pages.projects, name="projects"),
    path("projects/<str:slug>/", include(_project)),
    path("import/", transfer.import_, name="import"),
    path("import/<str:code>/", transfer.import_job, name="import-job"),
    path("import/<str:code>/cancel/", transfer.import_cancel, name="import-cancel"),
    path("example/", messages.example, name="example"),
    path(
        "import/<str:code>/undo/",
        transfer.import_undo("import-undo", undoing.aundo),
        name="import-undo",
    ),
    path(
        "import/<str:code>/bring-back/",
        transfer.import_undo("import-bring-back", undoing.abring_back),
        name="import-bring-back",
    ),
    path("search/", searching.search, name="search"),
    path("log/", log.log, name="log"),
    path("log/export/", log.log_export, name="log-export"),
    path("log/<str:call>/", log.log_call, name="log-call"),
    path("connections/", include(_connections)),
    path("settings/", person.settings, name="user-settings"),
    path("shares/", links.mine, name="shares"),
    path("s/<str:token>/", shared.shared, name="shared"),
    path("models/", pages.models, name="models"),
    path("manifest.webmanifest", installing.manifest, name="manifest"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("accounts/", include(_accounts)),
    path("admin/", admin.site.urls),
]
