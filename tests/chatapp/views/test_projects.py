"""Projects over HTTP: their life, the lines that they keep, and the requests that carry them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient
from django.utils.html import strip_tags

from chatapp.models import Conversation, Project, ProjectVersion, Turn
from tests.chatapp.views.test_previews import get, long, post
from tests.chatapp.views.test_routes import FORMATS, PROJECTS, ask, stored
from tests.fake_upstream import FakeUpstream
from tests.inprocess import HTMX, JSON, new_conversation, send, settle, signed_in

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["long"]

LINES = "/projects/novel/lines/"
RULE = {"act": "add", "text": "No adverbs.", "section": "constraints"}


@pytest.fixture
async def novel(client: AsyncClient) -> str:
    """Alice's project."""
    status, made = await post(client, "/projects/", name="Novel")
    assert (status, made) == (201, {"slug": "novel"})
    return "novel"


async def lines_of(client: AsyncClient, slug: str = "novel") -> list[str]:
    found = (await get(client, f"/projects/{slug}/"))["lines"]
    return [one["text"] for one in found["lines"]]


async def test_a_project_is_made_changed_archived_and_deleted(
    client: AsyncClient, novel: str
) -> None:
    """Its conversations stay.

    Breaks when: deleting a project deletes what is in it, or its slug follows its name.
    """
    assert await post(client, "/projects/", name="novel!") == (201, {"slug": "novel_2"})
    status, refused = await post(client, "/projects/", name=" \u200b ")
    assert (status, refused["error"]["fields"]["name"]) == (422, "Give the project a name.")
    code = await new_conversation(client, project=novel)
    change = {"name": "The  novel", "colour": "moss", "instructions": "Be terse.", "model": "m"}
    status, told = await post(client, "/projects/novel/settings/", **change)
    assert (status, told) == (200, {**change, "name": "The novel"})
    shown = await get(client, "/projects/novel/")
    assert shown["project"]["colour"] == "moss"
    assert [one["code"] for one in shown["conversations"]] == [code]
    status, _ = await post(client, "/projects/novel/settings/", colour="url(x)")
    assert status == 422
    assert (await post(client, "/projects/novel/archive/"))[0] == 200
    listed = (await get(client, "/projects/"))["projects"]
    assert [(one["slug"], one["archived"], one["conversations"]) for one in listed] == [
        ("novel_2", False, 0),
        ("novel", True, 1),
    ]
    words = strip_tags((await client.get("/projects/")).content.decode())
    assert "1 conversation · archived" in words
    assert (await post(client, "/projects/novel/unarchive/"))[0] == 200
    assert (await post(client, f"{LINES}change/", **RULE))[0] == 200
    assert (await post(client, "/projects/novel/delete/"))[0] == 200
    assert (await get(client, f"/c/{code}/"))["conversation"]["project"] == ""
    assert not await ProjectVersion.objects.aexists()
    assert (await client.get("/projects/novel/", headers=JSON)).status_code == 404


async def test_i19_a_stranger_sees_no_project(client: AsyncClient, novel: str, bob: User) -> None:
    """I19: every address of a project answers a stranger as one that does not exist.

    Breaks when: a project is read without its owner.
    """
    await post(client, f"{LINES}change/", **RULE)
    mine = await new_conversation(client, project=novel)
    stranger, nobody = await signed_in(bob), AsyncClient()
    theirs = await new_conversation(stranger)
    before = await stored()
    for route in sorted(PROJECTS):
        method = "GET" if route.endswith("slug>/") else "POST"
        for headers in FORMATS.values():
            answers = []
            for slug in ("novel", "absent", "Novel", "novel_2"):
                path = f"/{route}".replace("<str:slug>", slug)
                fields = {"version": "x", "act": "x", "code": mine}
                answer = await ask(stranger, method, path, fields, headers)
                answers.append((answer.status_code, answer.content.replace(slug.encode(), b"")))
            assert {status for status, _ in answers} == {404}, route
            assert len(set(answers)) == 1 or headers == {}, route
            path = f"/{route}".replace("<str:slug>", "novel")
            refused = await ask(nobody, method, path, {}, headers)
            assert refused.status_code == (401 if headers else 302)
    for path, fields in (
        (f"/c/{theirs}/settings/", {"project": "novel"}),
        ("/c/", {"project": "novel"}),
        ("/c/", {"project": "novel", "text": "Hi", "client_msg_id": "0" * 32}),
    ):
        assert (await stranger.post(path, fields, headers=JSON)).status_code == 404
    other = await post(stranger, "/projects/", name="Mine")
    assert other == (201, {"slug": "mine"})
    await Project.objects.filter(slug="mine").adelete()
    assert await stored() == before
    # Nor can a suggestion name a conversation of somebody else.
    stolen = {"act": "keep", "text": "x", "section": "context", "code": theirs}
    assert (await post(client, "/projects/novel/suggestions/", **stolen))[0] == 404


async def test_lines_are_added_rewritten_struck_undone_and_redone(
    client: AsyncClient, novel: str
) -> None:
    """Breaks when: a second press makes a second version, or an outdated page changes something."""
    change = f"{LINES}change/"
    first = {"project": "novel", "version": 1, "line": "e1"}
    assert await post(client, change, **RULE) == (200, first)
    assert (await post(client, change, **RULE))[1]["version"] == 1, "pressed twice"
    await post(client, change, act="add", text="Mira is the heroine.")
    rewrite = {"act": "rewrite e1", "text": "Few adverbs."}
    status, told = await post(client, change, **rewrite, version=2)
    assert (status, told["version"]) == (200, 3)
    assert await lines_of(client) == ["Few adverbs.", "Mira is the heroine."]
    status, refused = await post(client, change, act="rewrite e2", text="Gone.", version=2)
    assert (status, refused["error"]["code"]) == (409, "stale_version")
    strike = {"act": f"strike {told['line']}", "version": 3}
    assert (await post(client, change, **strike))[1] == {
        "project": "novel",
        "version": 4,
        "line": "e2",
    }
    assert (await post(client, change, **strike))[1]["version"] == 4, "pressed twice"
    for _ in range(2):
        assert (await post(client, f"{LINES}undo/", version=4))[1]["version"] == 5
    assert await lines_of(client) == ["Few adverbs.", "Mira is the heroine."]
    assert (await post(client, f"{LINES}undo/", version=5))[1]["version"] == 6
    assert await lines_of(client) == ["No adverbs.", "Mira is the heroine."]
    for _ in range(2):
        assert (await post(client, f"{LINES}redo/", version=6))[1]["version"] == 7
    assert await lines_of(client) == ["Few adverbs.", "Mira is the heroine."]
    assert (await post(client, f"{LINES}redo/", version=7))[1]["version"] == 8
    assert await lines_of(client) == ["Mira is the heroine."]
    assert (await post(client, f"{LINES}redo/", version=8))[0] == 409
    for version in (8, 9, 10, 11):
        assert (await post(client, f"{LINES}undo/", version=version))[0] == 200
    assert await lines_of(client) == []
    assert (await post(client, f"{LINES}undo/", version=12))[0] == 409
    for wrong in ({"act": "pin e1", "version": 12}, {"act": "add", "text": " "}, {"act": "x"}):
        assert (await post(client, change, **wrong))[0] == 422
    assert (await post(client, change, act="add", text="x", section="nowhere"))[0] == 422


async def test_a_line_of_a_summary_reaches_another_conversation(
    client: AsyncClient, long: str, novel: str, upstream: FakeUpstream
) -> None:
    """Kept from a summary, quoted in the next request of a conversation that never said it.

    Breaks when: requests do not carry the project's lines, or what a model wrote is kept by itself.
    """
    await client.post(f"/c/{long}/compact/", headers=JSON)
    await settle()
    lines = await get(client, f"/c/{long}/summary/lines/")
    line = lines["sections"][-1]["lines"][-1]
    keep = f"/c/{long}/summary/keep/"
    assert (await post(client, keep, line=line["key"], version=1))[0] == 422, "in no project"
    status, told = await post(client, f"/c/{long}/settings/", project=novel)
    assert (status, told) == (200, {"project": novel})
    assert await lines_of(client) == [], "nothing is kept by itself"
    assert (await post(client, keep, line=line["key"], version=0))[0] == 409
    for _ in range(2):
        status, told = await post(client, keep, line=line["key"], version=1)
        assert (status, told["version"]) == (200, 1)
    assert await lines_of(client) == [line["text"]]
    lines = await get(client, f"/c/{long}/summary/lines/")
    marks = {one["key"]: one["kept"] for part in lines["sections"] for one in part["lines"]}
    assert [key for key, kept in marks.items() if kept] == [line["key"]]
    shown = (await client.get(f"/c/{long}/summary/lines/", headers=HTMX)).content.decode()
    assert shown.count("Kept for the project") == 1
    origin = (await get(client, "/projects/novel/"))["lines"]["lines"][0]["origin"]
    assert (origin["code"], bool(origin["seqs"])) == (long, True)

    await post(client, "/projects/novel/settings/", instructions="Answer in verse.")
    other = await new_conversation(client, project=novel)
    turn = (await send(client, other, "Hello"))["turn"]
    await settle()
    system = upstream.chats[-1].json["messages"][0]["content"]
    assert line["text"].split("\n")[0] in system
    assert "Answer in verse." in system
    manifest = (await Turn.objects.aget(pk=turn)).manifest["project"]
    assert (manifest["slug"], manifest["version"], manifest["left_out"]) == ("novel", 1, 0)
    budget = (await get(client, f"/c/{other}/context/"))["context"]["budget"]
    assert 0 < manifest["tokens"] <= 0.05 * budget
    parts = (await get(client, f"/c/{other}/context/"))["parts"][0]
    assert [one["origin"] for one in parts["messages"]] == ["chat", "project", "project-lines"]
    assert sum(one["tokens"] for one in parts["messages"]) == parts["tokens"]
    drawer = (await client.get(f"/c/{other}/context/", headers=HTMX)).content.decode()
    assert "Kept for the project" in drawer
    assert "/projects/novel/" in drawer
    await post(client, f"{LINES}undo/", version=1)
    await send(client, other, "Again")
    await settle()
    assert line["text"] not in upstream.chats[-1].json["messages"][0]["content"]


async def test_suggestions_are_kept_or_refused(client: AsyncClient, long: str, novel: str) -> None:
    """Breaks when: a refused line is suggested again, or undoing that does not bring it back."""
    await post(client, f"/c/{long}/settings/", project=novel)
    await client.post(f"/c/{long}/compact/", headers=JSON)
    await settle()
    change = f"/c/{long}/summary/lines/change/"
    for version, text in ((1, "Never use tabs."), (2, "Speak French.")):
        added = {"act": "add", "section": "constraints", "text": text, "version": version}
        assert (await post(client, change, **added))[0] == 200

    async def suggested() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await get(client, "/projects/novel/"))["suggestions"]
        return [one for one in found if one["text"] in {"Never use tabs.", "Speak French."}]

    tabs, french = await suggested()
    at = "/projects/novel/suggestions/"
    assert (await post(client, at, act="keep", **tabs))[0] == 200
    status, told = await post(client, at, act="refuse", **french)
    assert status == 200
    assert await suggested() == []
    assert await lines_of(client) == ["Never use tabs."]
    await post(client, f"{LINES}undo/", version=told["version"])
    assert await suggested() == [french]
    assert (await post(client, at, act="x", **french))[0] == 422


async def test_an_export_names_the_project_and_an_import_finds_it(
    client: AsyncClient, novel: str, bob: User
) -> None:
    code = await new_conversation(client, project=novel)
    await send(client, code, "Hello there")
    await settle()
    export = await client.get(f"/c/{code}/export/?format=json")
    body = b"".join([piece async for piece in export])  # type: ignore[attr-defined]
    assert b'"project": "Novel"' in body
    stranger = await signed_in(bob)
    for _ in range(2):
        file = SimpleUploadedFile("one.json", body)
        await stranger.post("/import/", {"file": file}, headers=JSON)
        await settle()
    row = await Conversation.objects.select_related("project").aget(owner=bob)
    assert row.project is not None
    assert (row.project.owner_id, row.project.name) == (bob.pk, "Novel")
    assert await Project.objects.filter(owner=bob).acount() == 1


async def test_pages_of_projects_hold_nothing_that_runs(client: AsyncClient) -> None:
    """Breaks when: a name, a line or instructions are shown unescaped."""
    bad = "<script>alert(1)</script>"
    _, made = await post(client, "/projects/", name=bad)
    at = f"/projects/{made['slug']}/"
    await post(client, f"{at}lines/change/", act="add", text=bad)
    await post(client, f"{at}settings/", instructions=bad)
    code = await new_conversation(client, project=made["slug"])
    for path in ("/projects/", at, f"/c/{code}/", f"/?new&project={made['slug']}", "/settings/"):
        page = (await client.get(path)).content.decode()
        assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)", ""), path
    begun = (await client.get(f"/?new&project={made['slug']}")).content.decode()
    assert f'name="project" value="{made["slug"]}"' in begun
    answer = await client.post(f"{at}lines/change/", {"act": "strike e1", "version": 1})
    assert answer["Location"] == f"{at}#kept"
