"""Masked messages for their owner: what the model sees of them, and taking the masks off."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncClient

from chatapp.conversations.messages.masks import StoredMasks
from chatapp.models import Message
from tests.chatapp.stage import stored
from tests.chatapp.talking import row_of
from tests.chatapp.turns.test_fitting import with_tools
from tests.inprocess import HTMX, JSON

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def masked(code: str) -> str:
    """Alice's conversation, in which the result that is message 3 is masked."""
    await stored(lambda: with_tools(code))
    change = await stored(lambda: StoredMasks().put_on(row_of(code).pk, {3: 30}))
    assert change is not None
    return code


async def undo(client: AsyncClient, code: str, headers: dict[str, str], batch: Any = 1) -> Any:
    return await client.post(f"/c/{code}/masks/undo/", {"batch": batch}, headers=headers)


async def is_masked() -> bool:
    return (await Message.objects.aget(seq=3)).masked_at is not None


async def test_it_works(client: AsyncClient, masked: str) -> None:
    """Breaks when: the page, its JSON or the figures do not tell of masks, or Undo leaves any."""
    page = (await client.get(f"/c/{masked}/", headers=JSON)).json()
    told = page["compression"]
    assert (told["mask_batch"], told["masked_seqs"], told["masked_results"]) == (1, [3], 1)
    shown = (await client.get(f"/c/{masked}/")).content.decode()
    assert "1 tool result masked," in shown
    answer = await undo(client, masked, JSON)
    assert (answer.status_code, answer.json()) == (200, {"batch": 1, "seqs": [3]})
    assert not await is_masked()
    after = (await client.get(f"/c/{masked}/", headers=JSON)).json()
    assert after["compression"]["mask_batch"] == 0
    assert after["context"]["tail"] == page["context"]["tail"] + told["masked_tokens"]


@pytest.mark.parametrize(("headers", "status"), [({}, 302), (HTMX, 200)])
async def test_a_plain_form_and_htmx_can_undo(
    client: AsyncClient, masked: str, headers: dict[str, str], status: int
) -> None:
    assert (await undo(client, masked, headers)).status_code == status
    assert not await is_masked()


@pytest.mark.parametrize(("batch", "status"), [(2, 409), (0, 409), ("x", 422), ("", 422)])
async def test_another_number_undoes_nothing(
    client: AsyncClient, masked: str, batch: Any, status: int
) -> None:
    answer = await undo(client, masked, JSON, batch)
    assert answer.status_code == status
    assert await is_masked()


async def test_a_batch_is_undone_once(client: AsyncClient, masked: str) -> None:
    await undo(client, masked, JSON)
    again = await undo(client, masked, JSON)
    assert again.json()["error"]["code"] == "nothing_to_undo"


async def test_what_the_model_sees_of_them_is_shown(client: AsyncClient, masked: str) -> None:
    """Breaks when: the reader is shown the original there, or the model's line in the feed."""
    line = "[look result masked: 12,000 bytes]"
    listed = (await client.get(f"/c/{masked}/context/?masked", headers=JSON)).json()["messages"]
    assert [(one["seq"], one["role"], one["tokens"]) for one in listed] == [(3, "tool", 30)]
    assert listed[0]["text"].startswith(line)
    for headers in ({}, HTMX):
        page = (await client.get(f"/c/{masked}/context/?masked", headers=headers)).content
        assert line in page.decode()
    parts = (await client.get(f"/c/{masked}/context/", headers=JSON)).json()
    tail = parts["parts"][-1]["messages"]
    assert [one["seq"] for one in tail if one["masked"]] == [3] == parts["manifest"]["masked"]
    feed = (await client.get(f"/c/{masked}/messages/3/", headers=JSON)).json()
    assert feed["text"] == "found " * 2000
    exported: Any = await client.get(f"/c/{masked}/export/?format=json")
    pieces = [piece async for piece in exported.streaming_content]
    assert "found found" in b"".join(pieces).decode()
