"""A process kills itself at every commit, and is killed at every step that can be seen.

Another process over the same database goes on; the person comes back there and sends again what
was not answered.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from chatapp.context.wire import NO_RESULT
from tests.fake_scripts import (
    Script,
    Text,
    Tool,
    Wait,
    calling,
    is_summary_request,
    quoted_messages,
)
from tests.fake_upstream import FakeUpstream
from tests.faults.following import Follower
from tests.faults.world import (
    LONG,
    World,
    answer,
    ended,
    holds,
    send,
    talk,
    until,
    until_compressed,
)
from tests.json_client import JsonClient
from tests.servers import RunningServer

soak = pytest.mark.soak
# What stores while a message is sent and answered, in the order in which it happens.
TURN_POINTS = [
    pytest.param("sending.accept:before", marks=soak),
    "sending.accept:commit",
    "sending.accept:after",
    pytest.param("progress.checkpoint:commit", marks=soak),
    "progress.checkpoint:after",
    pytest.param("progress.finish:before", marks=soak),
    "progress.finish:commit",
    pytest.param("progress.finish:after", marks=soak),
]
READY_POINTS = [
    pytest.param("drafts.save_ready:before", marks=soak),
    "drafts.save_ready:commit",
    pytest.param("drafts.save_ready:after", marks=soak),
    pytest.param("drafts.apply_ready:before", marks=soak),
    "drafts.apply_ready:commit",
    pytest.param("drafts.apply_ready:after", marks=soak),
]
# Whether a summary is prepared as soon as there is anything to summarise, or put in place.
PREPARING = {"COMPRESSION_SOFT_THRESHOLD": "0.1", "COMPRESSION_THRESHOLD": "0.95"}
APPLYING = {"COMPRESSION_SOFT_THRESHOLD": "0.1", "COMPRESSION_THRESHOLD": "0.5"}
COMPRESSION_POINTS = [
    pytest.param("leases.claim:before", marks=soak),
    "leases.claim:after",
    pytest.param("drafts.apply:before", marks=soak),
    "drafts.apply:commit",
    pytest.param("drafts.apply:after", marks=soak),
]


async def dying(
    world: World, person: JsonClient, point: str = "", env: Mapping[str, str] | None = None
) -> tuple[RunningServer, JsonClient]:
    """A process that will not live, and the person at it."""
    server = await asyncio.to_thread(lambda: world.start(env=env, TESTS_FAILPOINT=point))
    return server, world.at(server.base_url, server, person.code)


@pytest.mark.parametrize("point", TURN_POINTS)
async def test_i1_i2_i5_killed_at_a_commit_of_a_turn(
    world: World, upstream: FakeUpstream, person: JsonClient, point: str
) -> None:
    """D02 too: who got no answer sends again, to another process, and nothing is doubled.

    Breaks when: the message, its turn and the reply are stored by more than one transaction; or a
    repeated ``client_msg_id`` starts a second turn.
    """
    server, there = await dying(world, person, point)
    follower = Follower(there)
    text, identity = "slowly 60", str(uuid.uuid4())
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        first = await send(there, text, identity)
        assert await until(lambda: server.process.poll()) == -9
        follower.client = person
        again = await send(person, text, identity)
        assert again is not None
        if first is not None:
            assert again["turn"] == first["turn"]
        page = await holds(
            world,
            person,
            upstream,
            acknowledged={identity: text},
            follower=follower,
        )
    await there.close()
    assert len(page["messages"]) == 2
    answered = [chat for chat in upstream.chats if not is_summary_request(chat.json)]
    assert len(answered) <= 1
    # Whoever was not stored is answered by the process that lives; whoever had ended, has ended.
    whole = point in {"sending.accept:before", "sending.accept:commit", "progress.finish:after"}
    turn = await person.get(f"turns/{again['turn']}/")
    assert turn["status"] == ("complete" if whole else "interrupted")


@pytest.mark.parametrize("point", COMPRESSION_POINTS)
async def test_i9_i10_c03_killed_at_a_commit_of_a_compression(
    world: World, upstream: FakeUpstream, person: JsonClient, point: str
) -> None:
    """Old or new, never mixed; the next compression works once the lease has expired.

    Breaks when: the summary and the boundary are stored by two transactions, or a lease that was
    never given back is held for ever.
    """
    await talk(person)
    before = (await person.get())["messages"]
    server, there = await dying(world, person, point)
    with suppress(aiohttp.ClientError, OSError):  # it may have begun before the death, or not
        await there.post("compact/")
    assert await until(lambda: server.process.poll()) == -9
    await there.close()
    assert await send(person, "Hello", str(uuid.uuid4()))
    page = await ended(person)
    assert page["messages"][: len(before)] == before, "I12"
    if page["compression"]["version"] == 0:
        await until_compressed(person)
    await holds_all(world, person, upstream)


@pytest.mark.parametrize("point", READY_POINTS)
async def test_i9_i10_c03_killed_at_a_commit_of_a_prepared_summary(
    world: World, upstream: FakeUpstream, person: JsonClient, point: str
) -> None:
    """Put aside or not, put in place or not: never half, and a send is answered all the same.

    Breaks when: a draft becomes the active one in another transaction than the one that moves the
    boundary.
    """

    def kept(status: str) -> int:
        of = "(SELECT id FROM chatapp_conversation WHERE code = %s)"
        query = f"SELECT count(*) FROM chatapp_summary WHERE conversation_id = {of} AND status = %s"
        return int(world.rows(query, person.code, status)[0][0])

    # More than half of the window, and less than what the survivor prepares at.
    await talk(person, turns=4)
    preparing = point if "save_ready" in point else ""
    server, there = await dying(world, person, preparing, PREPARING)
    sent = await send(there, LONG, str(uuid.uuid4()))
    assert sent is not None
    if preparing:
        assert await until(lambda: server.process.poll()) == -9
        assert kept("ready") == (1 if point.endswith(":after") else 0)
    else:
        assert await until(lambda: kept("ready")) == 1
        await asyncio.to_thread(server.kill)
    await there.close()
    before = (await ended(person))["messages"]
    if not preparing:
        server, there = await dying(world, person, point, APPLYING)
        assert await send(there, "slowly 20", str(uuid.uuid4()))
        assert await until(lambda: server.process.poll()) == -9
        await there.close()
        assert kept("active") == (1 if point.endswith(":after") else 0)
        assert kept("ready") + kept("active") == 1
    await ended(person)
    assert await send(person, "Hello", str(uuid.uuid4()))
    page = await ended(person)
    assert page["messages"][-1]["status"] == "complete"
    assert page["messages"][: len(before)] == before, "I12"
    if page["compression"]["version"] == 0:
        await until_compressed(person)
    await holds_all(world, person, upstream)


async def holds_all(world: World, person: JsonClient, upstream: FakeUpstream) -> None:
    """The invariants, with every message of the conversation acknowledged."""
    async with asyncio.timeout(30):
        while (await person.get())["compression"]["running"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    rows = world.rows(
        "SELECT client_msg_id, text FROM chatapp_message WHERE client_msg_id IS NOT NULL AND"
        " conversation_id = (SELECT id FROM chatapp_conversation WHERE code = %s)",
        person.code,
    )
    await holds(world, person, upstream, acknowledged={str(row[0]): row[1] for row in rows})


TURNS = (
    "SELECT finished_at FROM chatapp_turn WHERE conversation_id ="
    " (SELECT id FROM chatapp_conversation WHERE code = %s)"
)
REPLY = (
    "SELECT text FROM chatapp_message WHERE role = 'assistant' AND conversation_id ="
    " (SELECT id FROM chatapp_conversation WHERE code = %s)"
)


@soak
@pytest.mark.parametrize("step", ["acknowledged", "asked", "shown", "kept", "ended"])
async def test_i5_i7_killed_at_a_step_that_can_be_seen(
    world: World, upstream: FakeUpstream, person: JsonClient, step: str
) -> None:
    """``kept``: killed once some of the text is stored, which is there afterwards.

    Breaks when: the text is stored at the end only, or a process sweeps at its start only.
    """
    server, there = await dying(world, person)
    follower = Follower(there)
    text, identity, kept = "slowly 300", str(uuid.uuid4()), ""
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        sent = await send(there, text, identity)
        assert sent is not None
        if step == "asked":
            await asyncio.wait_for(upstream.came(1), 30)
        elif step == "shown":
            await follower.until(lambda mirror: (mirror.messages.get(2) or {}).get("text"))
        elif step == "kept":
            kept = await until(lambda: world.rows(REPLY, person.code)[0][0])
        elif step == "ended":
            await follower.until(
                lambda mirror: mirror.messages.get(2, {}).get("status") == "complete"
            )
        await asyncio.to_thread(server.kill)
        follower.client = person
        page = await holds(
            world, person, upstream, acknowledged={identity: text}, follower=follower
        )
    await there.close()
    assert page["messages"][1]["text"].startswith(kept)
    turn = await person.get(f"turns/{sent['turn']}/")
    assert turn["status"] == ("complete" if step == "ended" else "interrupted")


async def test_t04_killed_while_a_tool_runs(
    world: World, upstream: FakeUpstream, person: JsonClient, tmp_path: Path
) -> None:
    """The turn ends interrupted, the tool is not run again by anybody, and the next request says
    that nobody knows what the call did.

    Breaks when: whoever sweeps a turn runs what it had called, or leaves it open.
    """
    runs = tmp_path / "runs"
    tooled = {"DJANGO_SETTINGS_MODULE": "tests.faults.tool_settings", "TESTS_TOOL_RUNS": str(runs)}
    upstream.enqueue(calling(Tool("hang", '{"city": "Malmö"}')))
    server, there = await dying(world, person, env=tooled)
    beside, there_too = await dying(world, person, env=tooled)
    text, identity = "How is it?", str(uuid.uuid4())
    sent = await send(there, text, identity)
    assert sent is not None
    assert await until(lambda: runs.exists() and runs.read_text("utf-8")) == "Malmö\n"
    await asyncio.to_thread(server.kill)
    await there.close()
    page = await holds(world, person, upstream, acknowledged={identity: text})
    turn = await person.get(f"turns/{sent['turn']}/")
    assert turn["status"] == "interrupted"
    assert [one["role"] for one in page["messages"]] == ["user", "assistant"]
    assert page["messages"][1]["tool_calls"]
    again = str(uuid.uuid4())
    assert await send(there_too, "And now?", again)
    assert (await ended(person))["messages"][-1]["status"] == "complete"
    results = [one for one in upstream.chats[-1].json["messages"] if one["role"] == "tool"]
    assert [one["content"] for one in results] == [NO_RESULT]
    await asyncio.to_thread(beside.kill)
    await there_too.close()
    await holds(world, person, upstream, acknowledged={identity: text, again: "And now?"})
    assert runs.read_text("utf-8") == "Malmö\n"


@pytest.mark.parametrize("step", ["begun", pytest.param("applied", marks=soak)])
async def test_c03_killed_while_the_summary_is_written(
    world: World, upstream: FakeUpstream, person: JsonClient, step: str
) -> None:
    """A send is answered, and the next compression begins, once the lease has expired.

    Breaks when: a lease that nobody renews keeps a turn waiting for ever.
    """
    await talk(person)
    gate = asyncio.Event()
    asked = asyncio.Event()

    def handler(request: dict[str, object]) -> Script:
        if is_summary_request(request) and step == "begun" and not gate.is_set():
            asked.set()
            return Script(steps=(Text("{"), Wait(gate)))
        return answer(request)

    upstream.handler = handler
    server, there = await dying(world, person)
    status, _ = await there.post("compact/")
    assert status < 300
    if step == "begun":
        await asyncio.wait_for(asked.wait(), 30)
    else:
        async with asyncio.timeout(30):
            while (await person.get())["compression"]["version"] == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    await asyncio.to_thread(server.kill)
    await there.close()
    gate.set()
    assert await send(person, "Hello", str(uuid.uuid4()))
    assert (await ended(person))["messages"][-1]["status"] == "complete"
    if step == "begun":
        await until_compressed(person)
    await holds_all(world, person, upstream)


async def test_i12_c03_parts_that_were_finished_outlive_the_process(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Killed at the third part: the next run asks for what is behind the second.

    Breaks when: finished parts are kept in memory only, or not looked for.
    """
    # Several windows full, of which none is summarised before it is asked for.
    assert (await person.post("settings/", compression_off="true"))[0] < 300
    for number in range(4):
        assert await send(person, f"{number}: {LONG}" + "word " * 1500, str(uuid.uuid4()))
        await ended(person)
    gate, third = asyncio.Event(), asyncio.Event()
    shown: list[list[int]] = []

    def handler(request: dict[str, object]) -> Script:
        if is_summary_request(request):
            shown.append([seq for seq, _, _ in quoted_messages(request)])
            if len(shown) == 3:
                third.set()
                return Script(steps=(Text("{"), Wait(gate)))
        return answer(request)

    upstream.handler = handler
    server, there = await dying(world, person)
    status, _ = await there.post("compact/")
    assert status < 300
    await asyncio.wait_for(third.wait(), 30)
    told = (await person.get())["compression"]
    assert (told["part"], told["part_first_seq"]) == (3, shown[2][0])
    assert told["parts"] > 3
    await asyncio.to_thread(server.kill)
    await there.close()
    gate.set()
    await until_compressed(person)
    assert shown[3][0] == shown[2][0]
    assert [seqs[0] for seqs in shown] == sorted(seqs[0] for seqs in shown)
    of = "(SELECT id FROM chatapp_conversation WHERE code = %s)"
    query = f"SELECT status, audit FROM chatapp_summary WHERE conversation_id = {of}"
    assert [status for status, _ in world.rows(query, person.code)] == ["active"]
    await holds_all(world, person, upstream)


async def test_i31_what_waits_in_a_deleted_conversation_is_not_sent(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Deleted, and its process killed in the middle of a reply: only beside it, where nothing was
    deleted, the message that waits is sent by another process.

    Breaks when: what waits is sent without a look at whether its conversation was deleted.
    """
    server, there = await dying(world, person)
    kept = await world.person()
    beside_it = world.at(server.base_url, server, kept.code)
    for client in (there, beside_it):
        assert await send(client, "slowly 3000", str(uuid.uuid4()))
        waits = await send(client, "Hello", str(uuid.uuid4()))
        assert waits == {"queued": True}
    assert (await person.post("delete/"))[0] < 400
    await asyncio.to_thread(server.kill)
    # Whoever sweeps looks at both conversations, and at the older one first.
    await until(lambda: len(world.rows(TURNS, kept.code)) == 2)
    await ended(kept)
    ((ended_at,),) = world.rows(TURNS, person.code)
    assert ended_at is not None
    async with person._http.get(f"/c/{person.code}/") as page:
        assert page.status == 404
    for client in (there, beside_it, kept):
        await client.close()
