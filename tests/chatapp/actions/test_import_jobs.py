"""Imports as jobs: one a person, in portions that nobody sees or waits for, with a true end."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import IntegrityError, connections
from django.db.models.signals import post_save
from django.http import HttpRequest
from django.test import AsyncClient
from django.utils import timezone

from chatapp import wiring
from chatapp.actions import importing
from chatapp.actions.import_jobs import ORPHANED_AFTER
from chatapp.conversations.imports.storing import VERSIONS_AT_ONCE
from chatapp.errors import ImportRunning
from chatapp.models import Conversation, ImportJob, Message, Summary, Turn
from chatapp.views import transfer
from compression.database import in_database_thread
from tests.chatapp.stage import PATIENCE
from tests.chatapp.transfer.test_files import CHAT, VERSION, WHOLE_FILES, claude_chat, said
from tests.chatapp.views.test_transfer import upload, waiting_files
from tests.inprocess import HTMX, JSON, fresh_product, signed_in
from tests.json_client import JsonClient
from tests.servers import RunningServer, manage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

LONG = [{"role": ("user", "assistant")[n % 2], "content": f"word {n}"} for n in range(1_000)]
acount = in_database_thread(lambda: (Conversation.objects.count(), Message.objects.count()))


@pytest.fixture
async def client(alice: User) -> AsyncIterator[AsyncClient]:
    """alice's browser, with the product in this event loop."""
    async with fresh_product():
        yield await signed_in(alice)


@pytest.fixture
def at_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """No import is done within a moment, and each takes many portions."""
    monkeypatch.setattr(transfer, "MOMENT", 0.0)
    monkeypatch.setattr(importing, "FIRST_WEIGHT", 10.0)
    monkeypatch.setattr(importing, "MOST_WEIGHT", 10.0)


@pytest.fixture
def hurry(at_length: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The same with long rests between the portions, until this is called.

    It ends the rest under way too: after a portion that a busy computer was slow with, that would
    last for minutes.
    """
    unit, hurried = importing.Pace.unit, asyncio.Event()

    async def interruptible(pace: importing.Pace, *work: Any) -> Any:
        with suppress(TimeoutError):
            await asyncio.wait_for(hurried.wait(), max(0.0, pace._free_at - time.monotonic()))
        pace._free_at = 0.0
        return await unit(pace, *work)

    def hurry() -> None:
        monkeypatch.setattr(importing, "REST", 0.0)
        hurried.set()

    monkeypatch.setattr(importing.Pace, "unit", interruptible)
    monkeypatch.setattr(importing, "REST", 20.0)
    return hurry


async def begin(client: AsyncClient, value: Any) -> dict[str, Any]:
    answer = await client.post("/import/", upload(value, "mine.json"), headers=JSON)
    assert answer.status_code == 202, answer.content
    return dict(answer.json())


async def told(client: AsyncClient, job: str) -> dict[str, Any]:
    answer = await client.get(f"/import/{job}/", headers=JSON)
    assert answer.status_code == 200
    return dict(answer.json())


async def until(client: AsyncClient, job: str, so: Callable[[dict[str, Any]], bool]) -> Any:
    async with asyncio.timeout(PATIENCE):
        found = await told(client, job)
        while not so(found):
            await asyncio.sleep(0.01)
            found = await told(client, job)
    return found


async def ended(client: AsyncClient, job: str) -> dict[str, Any]:
    return dict(await until(client, job, lambda one: one["state"] not in {"waiting", "running"}))


@pytest.mark.usefixtures("at_length")
async def test_an_import_outlives_its_request(client: AsyncClient) -> None:
    """202 with the job, and in the end the report that was ever answered.

    Breaks when: the request waits for the import, or the report of a job is another.
    """
    begun = await begin(client, [CHAT, claude_chat(said("q")), {"mapping": {}}])
    assert begun["state"] in {"waiting", "running"}
    found = await ended(client, begun["job"])
    assert (found["state"], found["done"], found["total"]) == ("finished", 3, 3)
    assert (found["imported"], found["already"], found["messages"]) == (2, 0, 3)
    assert [one["number"] for one in found["refused"]] == [3]
    assert (found["file_name"], found["error"]) == ("mine.json", None)
    assert [one["messages"] for one in found["conversations"]] == [2, 1]
    assert waiting_files() == []
    listed = (await client.get("/import/", headers=JSON)).json()["imports"]
    assert [one["job"] for one in listed] == [begun["job"]]
    page = (await client.get("/import/")).content.decode()
    assert "2 imported, 1 not read" in page
    assert (
        "2 conversations imported"
        in (await client.get(f"/import/{begun['job']}/")).content.decode()
    )


async def test_what_fails_says_so_for_ever(client: AsyncClient) -> None:
    """Breaks when: the error of a job is told in its first answer only."""
    answer = await client.post("/import/", upload(b"hello"), headers=JSON)
    assert answer.status_code == 422
    job = await ImportJob.objects.aget()
    found = await told(client, str(job.code))
    assert (found["state"], found["error"]["code"]) == ("failed", "import_invalid")
    page = await client.get(f"/import/{job.code}/")
    assert 'role="alert"' in page.content.decode()


async def test_nothing_of_a_conversation_is_seen_before_all_of_it_is_there(
    client: AsyncClient, hurry: Callable[[], None]
) -> None:
    """I30: no door opens to a part: list, page, search, export, undelete, socket.

    Breaks when: a conversation is not marked as deleted till its end, or ``owned`` finds one that
    is being imported.
    """
    begun = await begin(client, LONG)
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    row = await Conversation.objects.aget()
    assert row.importing
    assert 0 < await row.messages.acount() < len(LONG)
    for path in ("", "export/", "context/", "summaries/", "activity/"):
        assert (await client.get(f"/c/{row.code}/{path}", headers=JSON)).status_code == 404
    for path in ("undelete", "archive", "regenerate", "compact", "branch"):
        answer = await client.post(f"/c/{row.code}/{path}/", {"seq": "1"}, headers=JSON)
        assert answer.status_code == 404
    assert (await client.get("/", headers=JSON)).json()["conversations"] == []
    found = (await client.get("/search/?q=word", headers=JSON)).json()
    assert (found["messages"], found["titles"]) == ([], [])
    with pytest.raises(IntegrityError):
        await Conversation.objects.filter(pk=row.pk).aupdate(deleted_at=None)
    hurry()
    assert (await ended(client, begun["job"]))["imported"] == 1
    page = (await client.get(f"/c/{row.code}/", headers=JSON)).json()
    assert page["messages"][-1]["seq"] == len(LONG)
    turns = Turn.objects.filter(conversation=row, user_message__isnull=False)
    assert await turns.acount() == len(LONG) // 2


@pytest.mark.usefixtures("at_length")
async def test_one_import_a_person_at_a_time(client: AsyncClient, bob: User) -> None:
    """A second file is refused with the name of the job that runs; another person's is not.

    Breaks when: nothing but the view looks whether an import runs.
    """
    begun = await begin(client, LONG)
    second = await client.post("/import/", upload([CHAT]), headers=JSON)
    assert second.status_code == 409
    error = second.json()["error"]
    assert (error["code"], error["fields"]["job"]) == ("import_running", begun["job"])
    page = await client.post("/import/", upload([CHAT]))
    assert (page.status_code, begun["job"] in page.content.decode()) == (409, True)
    assert len(waiting_files()) == 1
    importer = wiring.importer()
    alice_id = (await ImportJob.objects.aget()).owner_id
    with pytest.raises(ImportRunning):
        await importer.take(alice_id, BOTH, file_name="", size=0)
    other = await signed_in(bob)
    assert (await ended(other, (await begin(other, [CHAT]))["job"]))["imported"] == 1
    await client.post(f"/import/{begun['job']}/cancel/", headers=JSON)
    await ended(client, begun["job"])


def deleted(person: User) -> None:
    """As the admin does it."""
    request = HttpRequest()
    request.user = person
    admin.site._registry[User].delete_model(request, person)


BOTH = "00000000-0000-4000-8000-000000000000"


async def test_a_cancelled_import_keeps_whole_conversations_only(
    client: AsyncClient, hurry: Callable[[], None]
) -> None:
    """What was whole stays, and of the rest nothing; the same file again brings what is missing.

    Breaks when: a cancelled job is told as failed, or the sweep leaves half a conversation.
    """
    both = {"conversations": [CHAT, claude_chat(*(said(f"word {n}") for n in range(300)))]}
    begun = await begin(client, both)
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    answer = await client.post(f"/import/{begun['job']}/cancel/", headers=HTMX)
    assert answer.status_code == 200
    found = await ended(client, begun["job"])
    assert (found["state"], found["done"], found["total"]) == ("cancelled", 1, 2)
    assert (found["imported"], found["messages"]) == (1, 2)
    assert "was cancelled" in (await client.get(f"/import/{begun['job']}/")).content.decode()
    await wiring.importer()._sweep()
    assert await acount() == (1, 2)
    assert not await Turn.objects.exclude(conversation__importing=False).aexists()
    hurry()
    again = await ended(client, (await begin(client, both))["job"])
    assert (again["imported"], again["already"]) == (1, 1)
    unchanged = await client.post(f"/import/{begun['job']}/cancel/", headers=JSON)
    assert unchanged.json()["state"] == "cancelled"


@pytest.mark.usefixtures("at_length")
async def test_i30_a_cancelled_import_counts_what_was_just_being_stored(
    client: AsyncClient,
) -> None:
    """I30: a unit of work runs to its end, whoever waits for it.

    Breaks when: ``_end`` stores the report as it stood before that.
    """
    inside, let_go = threading.Event(), threading.Event()

    def hold(instance: Conversation, **_: Any) -> None:
        if instance.title == "The second":
            inside.set()
            let_go.wait(PATIENCE)

    post_save.connect(hold, sender=Conversation)
    try:
        named = [claude_chat(said("q"), name=one) for one in ("The second", "The third")]
        begun = await begin(client, [CHAT, *named])
        await asyncio.to_thread(inside.wait, PATIENCE)
        importer = wiring.importer()
        (job,) = importer._jobs.values()
        importer.cancel(job.id)
        # Not before the task knows: it ends behind what it was doing.
        await acount()
    finally:
        let_go.set()
        post_save.disconnect(hold, sender=Conversation)
    await importer.wait(begun["job"], PATIENCE)
    found = await told(client, begun["job"])
    assert found["state"] == "cancelled"
    assert (found["imported"], found["messages"]) == await acount() == (2, 3)
    assert found["done"] == len(found["conversations"]) == 2


@pytest.mark.usefixtures("at_length")
async def test_i19_an_import_is_its_persons_own(client: AsyncClient, bob: User) -> None:
    """I19: to see it and to cancel it; a stranger learns no more than of a wrong code.

    Breaks when: a job is fetched by its code alone.
    """
    begun = await begin(client, LONG)
    stranger = await signed_in(bob)
    for code in (begun["job"], BOTH, "1"):
        for ask in (
            stranger.get(f"/import/{code}/", headers=JSON),
            stranger.post(f"/import/{code}/cancel/", headers=JSON),
        ):
            answer = await ask
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    nobody, page = AsyncClient(), f"/import/{begun['job']}/"
    for headers, status in ((JSON, 401), ({}, 302)):
        assert (await nobody.get(page, headers=headers)).status_code == status
        assert (await nobody.post(f"{page}cancel/", headers=headers)).status_code == status
    assert (await told(client, begun["job"]))["state"] == "running"
    assert not await ImportJob.objects.filter(cancel_requested_at__isnull=False).aexists()
    assert (await ended(client, begun["job"]))["state"] == "finished"


@pytest.mark.usefixtures("at_length")
async def test_an_orderly_end_says_how_far_the_import_came(client: AsyncClient) -> None:
    """Breaks when: ``shutdown`` leaves the job open, or waits for the import to end."""
    begun = await begin(client, {"conversations": [CHAT, claude_chat(*(said("x"),) * 3_000)]})
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    await wiring.importer().shutdown()
    found = await told(client, begun["job"])
    assert (found["state"], found["imported"]) == ("failed", 1)
    assert found["error"]["code"] == "import_broken"
    assert "1 of 2 conversations were imported" in found["error"]["message"]
    assert waiting_files() == []


async def test_the_job_of_a_dead_process_ends_with_a_true_report(
    client: AsyncClient, alice: User
) -> None:
    """I30: when its lease is over any process says how many conversations are there.

    Breaks when: ``sweep`` trusts the report that was noted last, or leaves the hidden rest.
    """
    code = (await client.post("/import/", upload([CHAT]), headers=JSON)).json()["job"]
    job = await ImportJob.objects.aget(code=code)
    # As a process leaves it that is killed after its first conversation and in its second.
    await ImportJob.objects.aupdate(
        state="running",
        finished_at=None,
        report={},
        done=0,
        total=2,
        lease_token="another",
        lease_expires_at=timezone.now() + timedelta(seconds=30),
    )
    half = await Conversation.objects.acreate(
        owner=alice, importing=True, deleted_at=timezone.now(), import_job=job
    )
    await Message.objects.abulk_create(
        Message(conversation=half, seq=n, role="user", text="x", created_at=timezone.now())
        for n in range(1, 500)
    )
    await wiring.importer()._sweep()
    assert (await told(client, code))["state"] == "running"
    assert await acount() == (2, 501)
    await ImportJob.objects.aupdate(lease_expires_at=timezone.now() - timedelta(seconds=1))
    await wiring.importer()._sweep()
    found = await told(client, code)
    assert (found["state"], found["imported"], found["messages"]) == ("failed", 1, 2)
    assert "1 of 2 conversations were imported" in found["error"]["message"]
    assert await acount() == (1, 2)


async def test_a_process_that_lost_its_job_stores_nothing_more(
    client: AsyncClient, hurry: Callable[[], None]
) -> None:
    """I27: Breaks when: ``_heartbeat`` goes on with a job whose lease another process has ended."""
    begun = await begin(client, LONG)
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    await ImportJob.objects.aupdate(state="failed", finished_at=timezone.now(), lease_token="")
    hurry()
    importer = wiring.importer()
    await importer._heartbeat()
    await importer.wait(begun["job"], PATIENCE)
    await importer._sweep()
    assert await acount() == (0, 0)
    assert (await told(client, begun["job"]))["state"] == "failed"


async def test_files_that_belong_to_nothing_are_removed(client: AsyncClient) -> None:
    """An upload that broke off an hour ago; not one that is just coming.

    Breaks when: ``_remove_orphans`` looks at no file's age, or at none at all.
    """
    importer = wiring.importer()
    old, new = importer.path_of("old"), importer.path_of("new")
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (0, time.time() - ORPHANED_AFTER - 1))
    await importer._sweep()
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()


async def test_the_file_of_a_job_stays_as_long_as_the_job(client: AsyncClient, alice: User) -> None:
    """However long it waits, and whichever of several processes has it; and no longer.

    Breaks when: a process removes the old files of all jobs but its own, or leaves that of a
    process that died for an hour.
    """
    importer = wiring.importer()
    job = await ImportJob.objects.acreate(
        owner=alice,
        lease_token="another",
        lease_expires_at=timezone.now() + timedelta(seconds=30),
    )
    path = importer.path_of(str(job.code))
    path.write_bytes(b"x")
    os.utime(path, (0, time.time() - ORPHANED_AFTER - 1))
    await importer._sweep()
    assert path.exists()
    os.utime(path)
    await ImportJob.objects.aupdate(lease_expires_at=timezone.now() - timedelta(seconds=1))
    await importer._sweep()
    assert not path.exists()


async def test_n10_the_file_is_for_nobody_else_to_read(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """N10: under any umask. Breaks when: file or folder is made with the process's own rights."""
    importer = wiring.importer()
    importer._folder = tmp_path / "imports"
    seen: list[int] = []
    taken = importer.take

    async def take(owner_id: int, code: str, **about: Any) -> None:
        path = importer.path_of(code)
        seen.extend(stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent))
        await taken(owner_id, code, **about)

    monkeypatch.setattr(importer, "take", take)
    before = os.umask(0)
    try:
        await client.post("/import/", upload([CHAT]), headers=JSON)
    finally:
        os.umask(before)
    assert seen == [0o600, 0o700]


@pytest.mark.parametrize(
    "value", [LONG, [CHAT] + [claude_chat(said("q"), uuid=str(n)) for n in range(300)]]
)
async def test_the_account_may_go_while_its_import_runs(
    client: AsyncClient,
    alice: User,
    at_length: None,
    caplog: pytest.LogCaptureFixture,
    value: Any,
) -> None:
    """C10: nobody has anything to mend then.

    Breaks when: rows of a conversation that is gone are stored, the deletion does not wait for
    those that are just being stored, or the task dies loudly.
    """
    begun = await begin(client, value)
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    await in_database_thread(deleted)(alice)
    await wiring.importer().wait(begun["job"], PATIENCE)
    assert await acount() == (0, 0)
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_n03_others_write_while_a_file_is_imported(
    client: AsyncClient, bob: User, hurry: Callable[[], None]
) -> None:
    """N03: no lock is held from the first message of a conversation to its last.

    Breaks when: a conversation is stored in one transaction.
    """
    made = await client.post("/c/", headers=JSON)
    begun = await begin(client, LONG)
    await until(client, begun["job"], lambda one: one["stored"] > 20)
    other = await signed_in(bob)
    for _ in range(10):
        stored = await Message.objects.acount()
        assert (await other.post("/c/", headers=JSON)).status_code == made.status_code
        async with asyncio.timeout(PATIENCE):
            while await Message.objects.acount() <= stored:
                assert (await told(client, begun["job"]))["state"] == "running"
    assert stored < len(LONG)
    hurry()
    await client.post(f"/import/{begun['job']}/cancel/", headers=JSON)
    await ended(client, begun["job"])


async def test_n03_the_versions_of_a_summary_come_in_portions_too(client: AsyncClient) -> None:
    """N03: 10,000 of them were one transaction of seconds, in which nobody else could write.

    Breaks when: the versions of a file are stored in one unit, whatever their number.
    """
    count = 3 * VERSIONS_AT_ONCE + 1
    file = {**WHOLE_FILES[-1]}
    file["summaries"] = [{**VERSION, "version": n, "parent": n - 1} for n in range(1, count + 1)]
    file["conversation"] = {**file["conversation"], "summary_version": count}
    seen: list[int] = []

    def look(instance: Summary, **_: Any) -> None:
        if instance.version == VERSIONS_AT_ONCE + 1:
            with ThreadPoolExecutor(1) as other:
                seen.append(other.submit(committed).result())

    def committed() -> int:
        try:
            return Summary.objects.count()
        finally:
            connections.close_all()

    post_save.connect(look, sender=Summary)
    try:
        answer = await client.post("/import/", upload(file), headers=JSON)
    finally:
        post_save.disconnect(look, sender=Summary)
    assert (answer.status_code, answer.json()["conversations"][0]["summaries"]) == (201, count)
    assert seen == [VERSIONS_AT_ONCE]
    row = await Conversation.objects.aget(deleted_at=None)
    assert (row.compression_version, await row.summaries.acount()) == (count, count)


async def test_n03_a_portion_takes_its_time_from_nobody() -> None:
    """N03: after each unit of work others have as long for themselves.

    Breaks when: ``Pace`` does not pause, or the portions of an import are not bounded.
    """
    pace = importing.Pace()
    begun: list[tuple[float, float]] = []

    async def work() -> None:
        start = time.monotonic()
        await asyncio.sleep(0.02)
        begun.append((start, time.monotonic()))

    for _ in range(5):
        await pace.unit(work, pace.weight)
    pauses = [later[0] - earlier[1] for earlier, later in pairwise(begun)]
    took = [end - start for start, end in begun]
    assert all(pause >= taken * 0.9 for pause, taken in zip(pauses, took[:-1], strict=True))
    before = pace.weight
    await pace.unit(lambda: asyncio.sleep(20 * importing.PORTION_SECONDS), before)
    assert pace.weight == before / 2


async def test_f09_an_import_whose_process_is_killed(
    serve: Callable[..., RunningServer], tmp_path: Path
) -> None:
    """F09, I30: the next process says how far it came, leaves nothing half, and brings the rest.

    Breaks when: a job of a dead process stays open, or what it had begun is not taken away.
    """
    value = {"conversations": [CHAT, claude_chat(*(said("x"),) * 20_000)]}
    data = json.dumps(value).encode()
    server = serve()
    person = JsonClient(server.base_url)
    await person.sign_in(server.signin_link)
    begun = await sent(person, data)
    async with asyncio.timeout(PATIENCE):
        found = begun
        while found["stored"] < 100:
            found = await asked(person, begun["job"])
    await person.close()
    server.kill()
    server = serve(port=server.port)
    person = JsonClient(server.base_url)
    await person.sign_in(server.signin_link)
    async with asyncio.timeout(PATIENCE):
        while (found := await asked(person, begun["job"]))["state"] == "running":
            assert found["imported"] == 1
    assert (found["state"], found["imported"]) == ("failed", 1)
    assert "1 of 2 conversations were imported" in found["error"]["message"]
    begun = await sent(person, json.dumps([CHAT]).encode())
    assert (begun["imported"], begun["already"]) == (0, 1)
    assert await asyncio.to_thread(messages_left, server) == "2"
    await person.close()


async def sent(person: JsonClient, data: bytes) -> dict[str, Any]:
    kind = {"Content-Type": "application/json"}
    async with person._http.post("/import/", data=io.BytesIO(data), headers=kind) as answer:
        return dict(await answer.json())


async def asked(person: JsonClient, job: str) -> dict[str, Any]:
    async with person._http.get(f"/import/{job}/") as answer:
        return dict(await answer.json())


def messages_left(server: RunningServer) -> str:
    """How many messages there are once the sweep has taken away what was half there."""
    count = (
        "import time; from chatapp.models import Conversation, Message\n"
        "while Conversation.objects.filter(importing=True).exists(): time.sleep(0.1)\n"
        "print('left', Message.objects.count())"
    )
    return manage(server, "shell", "-c", count).split()[-1]
