"""Undo of an import, and its report."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from chatapp.models import ImportJob
from tests.chatapp.transfer.test_files import claude_chat, node, said, tree
from tests.chatapp.views.test_transfer import upload
from tests.fake_upstream import FakeUpstream
from tests.inprocess import JSON, send, settle, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]


async def listed(client: AsyncClient) -> list[str]:
    found = (await client.get("/", headers=JSON)).json()["conversations"]
    return sorted(one["title"] for one in found)


async def brought(client: AsyncClient, *chats: Any) -> dict[str, Any]:
    """The report of an import of these, once it has ended; on a busy computer that is after the
    answer to the upload."""
    told = (await client.post("/import/", upload(list(chats)), headers=JSON)).json()
    while told["state"] in {"waiting", "running"}:
        told = (await client.get(f"/import/{told['job']}/", headers=JSON)).json()
    assert told["state"] == "finished", told
    return dict(told)


async def test_an_import_is_undone_and_brought_back(
    chat_client: AsyncClient, upstream: FakeUpstream
) -> None:
    """What was changed since stays, and both can be repeated.

    Breaks when: Undo deletes a conversation that its person went on with, or what was deleted
    before Undo comes back with the rest.
    """
    client = chat_client
    names = ("One", "Two", "Three")
    report = await brought(
        client, *(claude_chat(said(name), uuid=name, name=name) for name in names)
    )
    codes = {one["title"]: one["code"] for one in report["conversations"]}
    job = report["job"]
    await send(client, codes["Two"], "Let us go on.")
    await settle()
    await client.post(f"/c/{codes['Three']}/delete/", headers=JSON)
    for _ in range(2):
        answer = await client.post(f"/import/{job}/undo/", headers=JSON)
        assert answer.json() == {"done": True}
        assert await listed(client) == ["Two"]
    page = (await client.get(f"/import/{job}/")).content.decode()
    assert "This import was undone" in page
    assert "but for 1 that you have changed since" in page
    assert f"/c/{codes['One']}/" not in page, "no link leads to what is deleted"
    for _ in range(2):
        answer = await client.post(f"/import/{job}/bring-back/")
        assert answer["Location"] == f"/import/{job}/"
        assert await listed(client) == ["One", "Two"]
    assert (await client.get(f"/c/{codes['One']}/", headers=JSON)).status_code == 200


async def test_i19_nobody_else_undoes_it(chat_client: AsyncClient, bob: User) -> None:
    """I19: a stranger sees what a wrong code gives, and changes nothing.

    Breaks when: the job is looked up without its owner.
    """
    job = (await brought(chat_client, claude_chat(said("q"), name="Mine")))["job"]
    for person, status in ((await signed_in(bob), 404), (AsyncClient(), 401)):
        for act in ("undo", "bring-back"):
            for code in (job, "00000000-0000-4000-8000-000000000000"):
                answer = await person.post(f"/import/{code}/{act}/", headers=JSON)
                assert answer.status_code == status
    assert await listed(chat_client) == ["Mine"]


async def test_a_running_import_is_not_undone(chat_client: AsyncClient) -> None:
    """Breaks when: half of an import is deleted, and the other half comes after that."""
    job = (await brought(chat_client, claude_chat(said("q"), name="Mine")))["job"]
    await ImportJob.objects.aupdate(finished_at=None)
    answer = await chat_client.post(f"/import/{job}/undo/", headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "This import is still running. Cancel it first."
    await ImportJob.objects.aupdate(finished_at=timezone.now())
    assert await listed(chat_client) == ["Mine"]


async def test_the_report_says_from_when_to_when_and_why(chat_client: AsyncClient) -> None:
    """Breaks when: the dates are those of the import, or a person reads the words of a file."""
    old = tree(
        node("a", None, create_time=1_600_000_000),
        node("b", "a", text={"content_type": "image_asset_pointer"}, create_time=1_600_000_100),
        node("c", "b", "assistant", "r", create_time=1_600_000_200),
    )
    new = claude_chat(said("q"), created_at="2024-03-05T10:00:00Z")
    report = await brought(chat_client, old)
    page = (await chat_client.get(f"/import/{report['job']}/")).content.decode()
    assert "Of 13 September 2020" in page
    assert "1 picture" in page
    assert "Only text can be brought" in page
    more = tree(node("a", None, text="Another", create_time=1_600_000_000))
    report = await brought(chat_client, more, new)
    assert (report["first_at"][:10], report["last_at"][:10]) == ("2020-09-13", "2024-03-05")
    page = (await chat_client.get(f"/import/{report['job']}/")).content.decode()
    assert "From 13 September 2020 to 5 March 2024" in page


def talk(name: str, project: str) -> dict[str, Any]:
    """An export of Palimpsest: a conversation in a project."""
    return {
        "format": "palimpsest",
        "version": 1,
        "conversation": {"title": name, "project": project},
        "messages": [
            {"seq": 1, "role": "user", "text": f"This is {name}."},
            {"seq": 2, "role": "assistant", "text": "Yes."},
        ],
    }


async def projects_of(client: AsyncClient) -> dict[str, int]:
    """The person's projects, and how many conversations each shows."""
    found = (await client.get("/projects/", headers=JSON)).json()["projects"]
    return {one["name"]: one["conversations"] for one in found}


async def test_projects_that_an_import_made_go_and_come_back_with_it(
    chat_client: AsyncClient,
) -> None:
    """Unless something else is in one, something was written for it, or it was there before.

    Breaks when: an empty project is left behind, or a project that a person uses is deleted.
    """
    client = chat_client
    await client.post("/projects/", {"name": "Before"}, headers=JSON)
    names = ("Before", "Only imported", "Also used", "Has instructions")
    report = await brought(client, *(talk(f"In {name}", name) for name in names))
    assert await projects_of(client) == dict.fromkeys(names, 1)
    await client.post("/c/", {"project": "also_used"}, headers=JSON)
    change = {"instructions": "Be terse."}
    await client.post("/projects/has_instructions/settings/", change, headers=JSON)

    undone, back = (f"/import/{report['job']}/{act}/" for act in ("undo", "bring-back"))
    for _ in range(2):
        for _ in range(2):
            await client.post(undone, headers=JSON)
            assert await projects_of(client) == {
                "Before": 0,
                "Also used": 1,
                "Has instructions": 0,
            }
        told = (await client.get(f"/import/{report['job']}/", headers=JSON)).json()
        assert "removed_projects" not in told
        for _ in range(2):
            await client.post(back, headers=JSON)
            assert await projects_of(client) == {
                "Before": 1,
                "Only imported": 1,
                "Also used": 2,
                "Has instructions": 1,
            }
