"""One figure for one thing, wherever it is shown: a request, a summary, a message.

The same request was shown with 114 and 119 tokens, one summary with 407, 484 and 522.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.utils.html import escape

from chatapp import wiring
from chatapp.models import Conversation, Message, Summary
from chatapp.rendering.number_format import percent, short
from compression.database import in_database_thread
from tests.chatapp.long_conversations import import_now
from tests.fake_scripts import Usage, failing, saying
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, send, settle
from tests.reviewing import BASE, browser_of

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "Always keep in mind that the harbour of Malmö opens at nine and closes at five. " * 35


async def say(client: AsyncClient, code: str, text: str) -> dict[str, Any]:
    """Send, wait for the end; the turn with its manifest."""
    turn = (await send(client, code, text))["turn"]
    await settle()
    told = await client.get(f"/c/{code}/turns/{turn}/", headers=JSON)
    return dict(told.json())


async def plain(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    await say(client, code, "Hello there")


async def empty(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    """Nothing was said yet; the windows of models are known all the same."""
    listed = (await client.get("/models/", headers=JSON)).json()["models"]
    assert [(one["name"], one["window"]) for one in listed] == [("fake-model", 8192)]


async def failed(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    """A turn without a reply, for which the program puts a line into the next request."""
    for text in ("one", "two"):
        upstream.enqueue(failing(401, "no"))
        await say(client, code, text)
    await say(client, code, "three")


async def heavy(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    """The provider counts far more than the ruler."""
    upstream.enqueue(saying("Yes.", usage=Usage(prompt_tokens=1900)))
    await say(client, code, WORDS[:1500])


async def light(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    upstream.enqueue(saying("Yes.", usage=Usage(prompt_tokens=40)))
    await say(client, code, WORDS[:1500])


async def compressed(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    for number in range(5):
        await say(client, code, f"Question {number}. {WORDS}")
    answer = await client.post(f"/c/{code}/compact/", headers=JSON)
    assert answer.status_code == 202
    await settle()


async def compressed_and_gone_on(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    await compressed(client, code, upstream)
    await client.post(f"/c/{code}/messages/2/pin/", headers=JSON)
    upstream.enqueue(saying("Yes.", usage=Usage(prompt_tokens=3000)))
    await say(client, code, "And now?")


async def truncated(client: AsyncClient, code: str, upstream: FakeUpstream) -> None:
    for number in range(3):
        await say(client, code, f"Question {number}. {WORDS}")
    await in_database_thread(Conversation.objects.filter(code=code).update)(truncated_through=2)


STATES = [empty, plain, failed, heavy, light, compressed, compressed_and_gone_on, truncated]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
async def test_the_next_request_has_one_figure(
    client: AsyncClient, code: str, upstream: FakeUpstream, state: Callable[..., Any]
) -> None:
    """On the page, in its chip, in the drawer, in JSON, in what viewers are told, and as built.

    Breaks when: one of them counts by itself: without the overhead, rounded another way, or
    without what the program puts in.
    """
    await state(client, code, upstream)
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    seen = (await client.get(f"/c/{code}/context/", headers=JSON)).json()
    figures = page["context"]
    assert seen["context"] == figures
    row = await Conversation.objects.aget(code=code)
    told = await wiring.services().acontext(row.pk)
    assert told.as_json() == figures
    as_built = seen["manifest"]["tokens"]
    assert {name: figures[name] for name in as_built} == as_built
    assert seen["manifest"]["usage"] == figures["usage"]
    parts = {part["name"]: part["tokens"] for part in seen["parts"]}
    assert {name: figures[name] for name in parts} == parts
    assert sum(parts.values()) + figures["adjustment"] == figures["total"]
    # What is shown of a part is what is shown of the things in it.
    for part in seen["parts"]:
        if part["messages"]:
            assert sum(one["tokens"] for one in part["messages"]) == part["tokens"]
    html = (await client.get(f"/c/{code}/")).content.decode()
    valued = re.search(r'aria-valuetext="([\d,]+) of ([\d,]+) tokens', html)
    assert valued is not None
    assert int(valued[1].replace(",", "")) == figures["total"]
    assert int(valued[2].replace(",", "")) == figures["window"]
    drawer = (await client.get(f"/c/{code}/context/", headers=HTMX)).content.decode()
    share = escape(percent(figures["share"]))
    label = f"{short(figures['total'])} / {short(figures['window'])}"
    assert f'<span class="tokens">{label}</span><span class="share">' in html
    assert re.search(rf'<span class="share">(<svg.*?</svg>)?{share}</span>', html)
    assert f"<strong>{label} · {share}</strong>" in drawer
    legend = dict(
        re.findall(r'<li class="(\w+)"><span>[^<]*</span> <span class="figures">(\S+)<', drawer)
    )
    shown = {name: tokens for name, tokens in parts.items() if tokens}
    assert {name: legend[name] for name in shown} == {
        name: short(tokens) for name, tokens in shown.items()
    }
    with_model = await client.get(f"/c/{code}/context/?model=fake-model", headers=JSON)
    assert with_model.json()["context"] == figures


async def test_the_last_request_has_the_figure_that_was_shown_before_it_was_sent(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """The manifest's, that is: the next request of before, and the message that was sent.

    Breaks when: a turn counts its request otherwise than the screen did.
    """
    await failed(client, code, upstream)
    before = (await client.get(f"/c/{code}/", headers=JSON)).json()["context"]
    turn = await say(client, code, "And now?")
    message = await Message.objects.aget(conversation__code=code, seq=turn["message_seq"])
    sent = turn["manifest"]["tokens"]
    assert sent["tail"] == before["tail"] + message.token_count
    assert sent["system"] == before["system"]
    assert turn["manifest"]["counted"] == sent["system"] + sent["tail"]


async def test_a_summary_has_one_figure(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """The ruler's of its text: in the divider, the sheet, the versions, the drawer, the activity,
    the manifest of a reply, the export, and the admin.

    Breaks when: the drawer or a manifest shows it multiplied by the model's calibration, or with
    what stands around it.
    """
    await compressed_and_gone_on(client, code, upstream)
    row = await Conversation.objects.aget(code=code)
    stored = await Summary.objects.aget(conversation=row, status="active")
    tokens, source = stored.summary_tokens, stored.source_tokens
    assert tokens == wiring.services().counter.count(row.compressed_context)
    page = (await client.get(f"/c/{code}/", headers=JSON)).json()
    turn = (
        await client.get(f"/c/{code}/turns/{page['messages'][-1]['turn']}/", headers=JSON)
    ).json()
    sheet = (await client.get(f"/c/{code}/summaries/", headers=JSON)).json()
    answer = await client.get(f"/c/{code}/export/?format=json")
    assert isinstance(answer, StreamingHttpResponse)
    exported = json.loads(b"".join([piece async for piece in answer]))
    assert page["context"]["adjustment"] > 0, "the model counts otherwise"
    assert page["context"]["summary"] == tokens
    assert turn["manifest"]["tokens"]["summary"] == tokens
    for shown in (page["compression"], sheet["compression"]):
        assert (shown["tokens_before"], shown["tokens_after"]) == (source, tokens)
    for version in (sheet["versions"][0], exported["summaries"][0]):
        assert (version["source_tokens"], version["summary_tokens"]) == (source, tokens)
    shortly = f"{source / 1000:.1f}k → {tokens} tokens"
    for path, headers in (("", {}), ("summaries/", HTMX), ("activity/", {})):
        text = (await client.get(f"/c/{code}/{path}", headers=headers)).content.decode()
        assert shortly in text.replace("</td>", " tokens</td>")
    drawer = (await client.get(f"/c/{code}/context/", headers=HTMX)).content.decode()
    assert f'<h3>Summary <span class="figures">{tokens} tokens</span>' in drawer

    def in_the_admin() -> list[str]:
        root: Client = browser_of(User.objects.create_superuser("root"))
        return [
            root.get(f"{BASE}summary/{more}").content.decode()
            for more in ("", f"{stored.pk}/change/")
        ]

    for text in await in_database_thread(in_the_admin)():
        assert f"{tokens}" in text.replace(",", "")
        assert f"{source}" in text.replace(",", "")


async def test_a_compression_has_the_figures_of_the_requests_before_and_after_it(
    client: AsyncClient, code: str, upstream: FakeUpstream
) -> None:
    """In its bill, and on the page then and now: the frame around the first summary included.

    Breaks when: what stands around a summary is counted only once there is one.
    """
    for number in range(5):
        await say(client, code, f"Question {number}. {WORDS}")
    before = (await client.get(f"/c/{code}/", headers=JSON)).json()["context"]
    await client.post(f"/c/{code}/compact/", headers=JSON)
    await settle()
    after = (await client.get(f"/c/{code}/", headers=JSON)).json()["context"]
    stored = await Summary.objects.aget(conversation__code=code, status="active")
    bill = stored.audit["accounting"]
    assert (bill["tokens_before"], bill["tokens_after"]) == (before["total"], after["total"])
    assert stored.usage_after == pytest.approx(after["usage"], abs=0.0001)


async def test_an_imported_conversation_that_begins_with_the_assistant(
    client: AsyncClient, alice: User
) -> None:
    """Breaks when: what the program puts in so that roles alternate is not counted."""
    said = [
        {"role": "assistant", "content": "Welcome."},
        {"role": "assistant", "content": "Ask me."},
        {"role": "user", "content": "What?"},
    ]
    code = await in_database_thread(import_now)(alice, said)
    seen = (await client.get(f"/c/{code}/context/", headers=JSON)).json()
    assert seen["context"]["total"] == seen["manifest"]["tokens"]["total"]
    assert seen["context"]["tail"] > sum(
        [one["tokens"] for one in seen["parts"][-1]["messages"] if one["seq"]]
    )
