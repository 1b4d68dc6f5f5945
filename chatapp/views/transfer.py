"""Conversations as files: out and in."""

from __future__ import annotations

import asyncio
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from chatapp import exporting, wiring
from chatapp.conversations import access
from chatapp.errors import ImportInvalid, InvalidInput, RequestTooLarge
from chatapp.importing import import_file
from chatapp.sizing import most_pinned
from chatapp.transfer.openai_messages import MAX_BYTES
from chatapp.views.answers import signed_in, user_id, wants_fragment, wants_json
from chatapp.views.pages import page_context, rendered


@signed_in("GET")
async def export(request: HttpRequest, code: str) -> HttpResponseBase:
    """The conversation as a file: ``format`` is markdown, or json, which can be imported again."""
    person = user_id(request)
    await access.aowned(person, code)
    form = request.GET.get("format") or "markdown"
    if form not in {"markdown", "json"}:
        raise InvalidInput.of("format", "Choose markdown or json.")
    file = await exporting.export(person, code, markdown=form == "markdown")
    response = StreamingHttpResponse(file.pieces, content_type=file.content_type)
    # Always saved, never shown: what is in it is other people's text.
    disposition = content_disposition_header(True, file.name)
    assert disposition is not None
    response.headers["Content-Disposition"] = disposition
    return response


@signed_in("POST")
async def import_(request: HttpRequest) -> HttpResponseBase:
    """``file``: our own export, ChatGPT's or Claude's, or a JSON list of messages.

    Answers what became of it: a page, a fragment, or JSON. The page of a file that is refused has
    the form again, which says what can be imported.
    """
    try:
        report = await _imported(request)
    except (InvalidInput, RequestTooLarge, ImportInvalid) as error:
        if wants_json(request) or wants_fragment(request):
            raise
        values = {**await page_context(request), "error": error.as_dict()}
        refused = await rendered(request, "imported.html", values)
        refused.status_code = error.status
        return refused
    if wants_json(request):
        return JsonResponse(report, status=201 if report["imported"] else 200)
    values = {"report": report, "left_out": report["left_out"]}
    if wants_fragment(request):
        return await rendered(request, "partials/imported.html", values)
    return await rendered(request, "imported.html", {**await page_context(request), **values})


async def _imported(request: HttpRequest) -> dict[str, Any]:
    """What became of the file, as JSON. Raises InvalidInput, RequestTooLarge and ImportInvalid."""
    # A form of a hundred megabytes takes a while to be taken apart.
    files = await asyncio.to_thread(lambda: request.FILES)
    file = files.get("file")
    if not isinstance(file, UploadedFile):
        raise InvalidInput.of("file", "Choose a file to import.")
    if (file.size or 0) > MAX_BYTES:
        raise RequestTooLarge(
            f"The file is larger than {MAX_BYTES // 1024**2} MB, the limit. Nothing was imported."
        )
    machinery = wiring.machinery()
    imported = await import_file(
        user_id(request),
        cast(BinaryIO, file.file),
        counter=machinery.counter,
        # What is imported is a conversation of the default model.
        most_pinned=most_pinned(machinery.catalogue.known_profile("")),
    )
    return imported.as_json()
