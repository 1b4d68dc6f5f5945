"""Bad input of every kind: a sentence in the one shape, nothing stored, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import AsyncClient, RequestFactory

from chatapp.conversations import listing
from chatapp.errors import InvalidInput
from chatapp.models import Conversation, Message
from chatapp.views import pages
from chatapp.views.answers import fields_of
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON

pytestmark = pytest.mark.django_db(transaction=True)

FORM = "application/x-www-form-urlencoded"
ERROR_FIELDS = {"code", "message", "retryable", "retry_after", "fields", "partial_kept"}
ID = "6b25ad69-4f94-468a-8f23-78e178105f8a"


def error_of(answer: Any) -> dict[str, Any]:
    assert answer["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == ERROR_FIELDS
    assert body["error"]["message"].endswith((".", "?"))
    return dict(body["error"])


TEXTS: dict[str, dict[str, Any]] = {
    "missing": {},
    "empty": {"text": ""},
    "blank": {"text": " \r\n\t\u3000 "},
    "nothing to be seen": {"text": "\u200b \u2060"},
    "null": {"text": None},
    "over-long": {"text": "x" * 200_001},
    "NUL": {"text": "a\x00b"},
    "lone surrogate": {"text": "half \ud800 of a pair"},
    "list": {"text": ["a", "b"]},
    "object": {"text": {"a": 1}},
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_that_cannot_be_sent(
    client: AsyncClient, code: str, upstream: FakeUpstream, name: str
) -> None:
    await client.post(f"/c/{code}/draft/", {"text": "the draft"}, headers=JSON)
    body = json.dumps({**TEXTS[name], "client_msg_id": ID})
    answer = await client.post(
        f"/c/{code}/messages/", body, content_type="application/json", headers=JSON
    )
    assert answer.status_code == 422
    error = error_of(answer)
    assert error["code"] == "invalid_input"
    if name not in {"list", "object"}:
        assert set(error["fields"]) == {"text"}
    assert not await Message.objects.aexists()
    assert (await Conversation.objects.aget()).draft == "the draft"
    assert upstream.chats == []


@pytest.mark.parametrize(
    "id_", ["", "x", "123", ID[:-1], ID + "0", "\x00", "9" * 5000, True, 5, 1e400, [ID]]
)
async def test_a_client_msg_id_that_is_no_uuid(client: AsyncClient, code: str, id_: Any) -> None:
    body = json.dumps({"text": "Hello", "client_msg_id": id_})
    answer = await client.post(
        f"/c/{code}/messages/", body, content_type="application/json", headers=JSON
    )
    assert answer.status_code == 422
    error_of(answer)
    assert not await Message.objects.aexists()


BODIES = {
    "no JSON": b"{",
    "list": b"[]",
    "null": b"null",
    "number": b"5",
    "text": b'"x"',
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "huge number": b'{"text": ' + b"9" * 5000 + b"}",
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "a million lists": b'{"text": "a", "more": [' + b"[]," * 1_000_000 + b"[]]}",
    "a hundred thousand fields": b'{"text": "a"' + b',"b": 0' * 100_000 + b"}",
    "a string that goes on": b'{"text": "' + b'\\"' * 1_000_000,
    "empty object": b"{}",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", ["messages/", "settings/", "summary/edit/", "queue/", "branch/"])
async def test_a_body_that_is_no_json_object(
    client: AsyncClient, code: str, name: str, path: str
) -> None:
    answer = await client.generic(
        "POST",
        f"/c/{code}/{path}",
        BODIES[name],
        content_type="application/json",
        headers=JSON,
    )
    harmless = path == "settings/" and name in {"empty object", "nothing", "huge number"}
    assert answer.status_code in ({200, 422} if harmless else {422})
    if answer.status_code == 422:
        error_of(answer)
    assert not await Message.objects.aexists()


@pytest.mark.parametrize(
    "raw",
    [
        b"%ff%fe",
        b"half+%ed%a0%80+of+a+pair",
        b"%00",
        b"\xff",
        b"%c3%28",
        b"%ef%bf%bd+sent+%ff",
        b"%ff&title=%ef%bf%bd&title=x",
    ],
)
async def test_a_form_whose_bytes_are_no_text(client: AsyncClient, code: str, raw: bytes) -> None:
    """I28: what cannot be stored as it was sent is refused before the acknowledgement.

    Breaks when: ``fields_of`` lets Django put U+FFFD in place of broken bytes.
    """
    body = b"client_msg_id=" + ID.encode() + b"&text=" + raw
    answer = await client.generic(
        "POST", f"/c/{code}/messages/", body, content_type=FORM, headers=JSON
    )
    assert answer.status_code == 422
    error_of(answer)
    assert not await Message.objects.aexists()


async def test_a_replacement_character_that_was_sent_is_kept(
    client: AsyncClient, code: str
) -> None:
    for name, value in (("title", "a\ufffdb"), ("title", "100 %")):
        answer = await client.post(f"/c/{code}/settings/", {name: value}, headers=JSON)
        assert answer.status_code == 200
        form = {"title": value}
        plain = await client.generic(
            "POST",
            f"/c/{code}/settings/",
            "&".join(f"{key}={one.replace(' ', '+')}" for key, one in form.items()),
            content_type=FORM,
            headers=JSON,
        )
        assert plain.status_code == 200
        assert (await Conversation.objects.aget()).title == value


def test_i25_json_of_millions_of_values_is_not_taken_apart(rf: RequestFactory) -> None:
    """Whatever is in its strings is no matter: that is the text of a message.

    Breaks when: the decoder, which lets nobody else have a turn, is given all that fits into 8 MB.
    """
    text = '[],{}:"\\\n' * 100_000
    fields = {"text": text, "seq": 5, "on": True}
    request = rf.post("/", json.dumps(fields), content_type="application/json")
    assert fields_of(request) == {"text": text, "seq": "5", "on": "true"}
    for costly in ('{"a": [' + "[]," * 100_000 + "[]]}", "{" + '"a": "",' * 2_000 + '"b": ""}'):
        request = rf.post("/", costly, content_type="application/json")
        with pytest.raises(InvalidInput, match="too many fields"):
            fields_of(request)


@pytest.mark.parametrize("kind", ["application/json", FORM, "text/plain", ""])
async def test_r01_a_body_of_more_than_eight_megabytes(
    client: AsyncClient, code: str, kind: str
) -> None:
    """R01: one sentence, with every content type that is looked at.

    Breaks when: ``endpoint`` or ``handler400`` does not know ``RequestDataTooBig``.
    """
    body = b'{"text": "' + b"x" * (8 * 1024 * 1024 + 1) + b'"}'
    answer = await client.generic(
        "POST", f"/c/{code}/messages/", body, content_type=kind, headers=JSON
    )
    expected = (413, "request_too_large") if kind in {"application/json", FORM} else (422,)
    assert answer.status_code == expected[0]
    if len(expected) > 1:
        assert error_of(answer)["code"] == expected[1]
    assert not await Message.objects.aexists()


async def test_too_much_is_refused_alike_when_the_token_is_looked_for(
    alice: Any, upstream: FakeUpstream
) -> None:
    """The CSRF middleware reads a form before any view does."""
    client = AsyncClient(enforce_csrf_checks=True)
    await client.get("/accounts/login/")
    big = b"a=" + b"x" * (8 * 1024 * 1024 + 1)
    many = b"&".join(b"a=1" for _ in range(2000))
    for body, status, code in ((big, 413, "request_too_large"), (many, 400, "bad_request")):
        answer = await client.generic("POST", "/c/", body, content_type=FORM, headers=JSON)
        assert answer.status_code == status
        assert error_of(answer)["code"] == code


async def test_the_words_of_another_site_are_not_shown(alice: Any) -> None:
    """Breaks when: a form without its token has its text given back like any other."""
    answer = await AsyncClient(enforce_csrf_checks=True).post("/c/", {"text": "Call 0800 for help"})
    assert answer.status_code == 403
    assert "0800" not in answer.content.decode()


@pytest.mark.parametrize(
    ("kind", "body", "statuses"),
    [
        ("multipart/form-data", b"x", {400}),
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense", {400, 422}),
        ("application/x-www-form-urlencoded; charset=utf-7", b"text=a", {400}),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(2000)), {400}),
        ("text/plain", b"text=Hello", {422}),
        ("application/xml", b"<a/>", {422}),
        ("nonsense", b"\x00", {422}),
        ("", b"", {422}),
    ],
)
async def test_a_content_type_that_is_not_taken(
    client: AsyncClient, code: str, kind: str, body: bytes, statuses: set[int]
) -> None:
    answer = await client.generic(
        "POST", f"/c/{code}/messages/", body, content_type=kind, headers=JSON
    )
    assert answer.status_code in statuses
    error_of(answer)
    assert not await Message.objects.aexists()


NUMBERS = ["x", "-1", "1.5", "1e3", "0x1", "١", " 1 2", "9" * 20, "9" * 5000, "\x00", "NaN"]


@pytest.mark.parametrize("value", NUMBERS)
async def test_a_number_that_is_none(client: AsyncClient, code: str, value: str) -> None:
    for path, field in (
        ("branch/", "seq"),
        ("regenerate/", "seq"),
        ("compact/", "through_seq"),
        ("summary/restore/", "version"),
        ("settings/", "keep_turns"),
        ("settings/", "threshold"),
    ):
        if (field, value) == ("threshold", "1e3"):
            continue
        answer = await client.post(f"/c/{code}/{path}", {field: value}, headers=JSON)
        assert answer.status_code == 422, path
        assert set(error_of(answer)["fields"]) == {field}
    older = await client.get(f"/c/{code}/", {"before": value}, headers=JSON)
    assert older.status_code == 422


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "x" * 201),
        ("title", "\x00"),
        ("model", "x" * 201),
        ("system_prompt", "x" * 20_001),
        ("system_prompt", "\ud800"),
        ("threshold", "0.4"),
        ("threshold", "nan"),
        ("threshold", "inf"),
        ("threshold_percent", "0.6"),
        ("threshold_percent", "96"),
        ("keep_turns", "0"),
        ("keep_turns", "1001"),
        ("project", "\x00"),
    ],
)
async def test_a_setting_that_is_not_possible(
    client: AsyncClient, code: str, field: str, value: str
) -> None:
    body = json.dumps({field: value})
    answer = await client.post(
        f"/c/{code}/settings/", body, content_type="application/json", headers=JSON
    )
    assert answer.status_code == 422
    assert set(error_of(answer)["fields"]) == {field}
    missing = await client.post(f"/c/{code}/settings/", {"project": "nobodys"}, headers=JSON)
    assert missing.status_code == 404


async def test_errors_are_cards_to_htmx_and_pages_to_a_browser(
    client: AsyncClient, code: str
) -> None:
    fragment = await client.post(f"/c/{code}/messages/", {"text": ""}, headers=HTMX)
    assert fragment.status_code == 422
    assert b'data-code="invalid_input"' in fragment.content
    assert b"<html" not in fragment.content
    page = await client.post(f"/c/{code}/messages/", {"text": ""})
    assert page.status_code == 422
    assert b"The message is empty" in page.content
    assert b"<html" in page.content


@pytest.mark.parametrize("headers", [JSON, HTMX, {}])
async def test_what_nobody_foresaw_is_one_sentence_and_no_more(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    """S04: neither message nor stack of the exception leaves the server."""

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("password of the database")

    monkeypatch.setattr(listing, "alinks", fail)
    monkeypatch.setattr(pages, "_ashared_context", fail)
    answer = await client.get("/", headers=headers)
    assert answer.status_code == 500
    assert b"password of" not in answer.content
    assert b"Traceback" not in answer.content
    if headers is JSON:
        assert error_of(answer)["code"] == "internal"
