"""Export and import of conversations as files."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import content_disposition_header

from chatapp import wiring
from chatapp.actions import exporting, preferences
from chatapp.conversations import ownership
from chatapp.conversations.imports import jobs, undoing
from chatapp.errors import ImportInvalid, ImportRunning, InvalidInput, RequestTooLarge
from chatapp.text.lengths import NAME_LENGTH
from chatapp.text.safety import clean, visible
from chatapp.transfer.openai_messages import MAX_BYTES
from chatapp.views.answers import accepted, endpoint, user_id, wants_fragment, wants_json
from chatapp.views.pages import page_context, rendered

# Seconds within which an import's report is the answer itself.
MOMENT = 2.0
# Content types of bodies that are the file itself.
RAW = frozenset({"application/json", "application/zip", "application/octet-stream"})
PIECE = 256 * 1024
Handler = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
# The report of a job that has not stored one yet.
NO_REPORT: dict[str, Any] = {
    "imported": 0,
    "already": 0,
    "messages": 0,
    "first_at": None,
    "last_at": None,
    "conversations": [],
    "refused": [],
    "left_out": {},
}


@endpoint("GET")
async def export(request: HttpRequest, code: str) -> HttpResponseBase:
    """Download the conversation: ``format`` is markdown, or json, which can be imported again."""
    person = user_id(request)
    await ownership.aowned(person, code)
    form = request.GET.get("format") or "markdown"
    if form not in {"markdown", "json"}:
        raise InvalidInput.of("format", "Choose markdown or json.")
    file = await exporting.export(person, code, markdown=form == "markdown")
    response = StreamingHttpResponse(file.pieces, content_type=file.content_type)
    # Always a download, never a page: the file holds other people's text.
    disposition = content_disposition_header(True, file.name)
    assert disposition is not None
    response.headers["Content-Disposition"] = disposition
    return response


@endpoint("GET", "POST")
async def import_(request: HttpRequest) -> HttpResponseBase:
    """GET lists past imports. POST imports a ``file``: our export, ChatGPT's, Claude's, or a list.

    The body may also be the file itself, as JSON or ZIP. An import that is done within a moment is
    answered with its report, as a page, a fragment, or JSON. Any other goes on as a job, 202, whose
    page shows its progress. For a refused file, the page shows the form again with what can be
    imported.
    """
    person = user_id(request)
    if request.method != "POST":
        past = await jobs.apast(person)
        if wants_json(request):
            return JsonResponse({"imports": [_as_json(one) for one in past]})
        values = {**await page_context(request), "imports": past, "section": "settings"}
        return await rendered(request, "imports.html", values)
    try:
        code = await _begun(request, person)
        error = await wiring.importer().wait(code, MOMENT)
        if error is not None:
            raise error
    except (InvalidInput, RequestTooLarge, ImportInvalid, ImportRunning) as error:
        if wants_json(request) or wants_fragment(request):
            raise
        values = {**await page_context(request), "error": error.as_dict(), "section": "settings"}
        return await rendered(request, "imported.html", values, status=error.status)
    job = await jobs.aview(person, code, whole=wants_json(request))
    if wants_json(request):
        made = 201 if job.report.get("imported") else 200
        return JsonResponse(_as_json(job), status=202 if job.open else made)
    if job.open and not wants_fragment(request):
        return HttpResponseRedirect(reverse("import-job", args=[code]))
    return await _page(request, job)


@endpoint("GET")
async def import_job(request: HttpRequest, code: str) -> HttpResponseBase:
    """The progress of an import, and finally its report."""
    job = await jobs.aview(user_id(request), code, whole=wants_json(request))
    return JsonResponse(_as_json(job)) if wants_json(request) else await _page(request, job)


@endpoint("POST")
async def import_cancel(request: HttpRequest, code: str) -> HttpResponseBase:
    """Cancel an import; what it has stored stays. An ended import does not change."""
    person = user_id(request)
    wiring.importer().cancel(await jobs.arequest_cancel(person, code))
    await wiring.importer().wait(code, MOMENT)
    job = await jobs.aview(person, code, whole=wants_json(request))
    if wants_json(request):
        return JsonResponse(_as_json(job))
    if wants_fragment(request):
        return await _page(request, job)
    return HttpResponseRedirect(reverse("import-job", args=[code]))


def import_undo(name: str, act: Callable[[int, str], Awaitable[None]]) -> Handler:
    """The view that deletes what an import made, or brings it back."""

    @endpoint("POST")
    async def view(request: HttpRequest, code: str) -> HttpResponseBase:
        await act(user_id(request), code)
        return accepted(request, name, {"done": True}, to=reverse("import-job", args=[code]))

    return view


def _as_json(job: jobs.ImportView) -> dict[str, Any]:
    """A job with its report, in the form that import answers have always had."""
    values = job.as_json()
    return {**NO_REPORT, **values.pop("report"), **values}


async def _page(request: HttpRequest, job: jobs.ImportView) -> HttpResponseBase:
    values: dict[str, Any] = {"job": job, "report": job.report}
    if job.undone_at is not None:
        values["kept"] = await undoing.akept(user_id(request), job.job)
    if wants_fragment(request):
        return await rendered(request, "partials/imported.html", values)
    values |= {**await page_context(request), "section": "settings"}
    return await rendered(request, "imported.html", values)


async def _begun(request: HttpRequest, person: int) -> str:
    """Begin a job with the request's file. Returns its code.

    Raises InvalidInput, RequestTooLarge and ImportRunning.
    """
    importer = wiring.importer()
    other = await jobs.arunning(person)
    if other is not None:
        raise ImportRunning(fields={"job": other})
    model = await preferences.default_model(person)
    code = str(uuid.uuid4())
    path = importer.path_of(code)
    # Parsing the form and copying a hundred megabytes take a while.
    name, size = await asyncio.to_thread(_received, request, path)
    await importer.take(person, code, file_name=name, size=size, model=model)
    return code


def _received(request: HttpRequest, path: Path) -> tuple[str, int]:
    """Store the request's file at ``path``. Returns name and size. Raises as :func:`_begun`."""
    if request.content_type in RAW:
        name, source = request.GET.get("name", ""), cast(BinaryIO, request)
    else:
        file = request.FILES.get("file")
        if not isinstance(file, UploadedFile):
            raise InvalidInput.of("file", "Choose a file to import.")
        name, source = file.name or "", cast(BinaryIO, file.file)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    size = 0
    try:
        with os.fdopen(descriptor, "wb") as kept:
            while piece := source.read(PIECE):
                size += len(piece)
                if size > MAX_BYTES:
                    raise RequestTooLarge(
                        f"The file is larger than {MAX_BYTES // 1024**2} MB, the limit. Nothing "
                        "was imported."
                    )
                kept.write(piece)
    except BaseException:
        path.unlink()
        raise
    return visible(clean(name))[-NAME_LENGTH:], size
