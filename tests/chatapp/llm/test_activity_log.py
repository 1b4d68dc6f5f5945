from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatapp.llm.activity_log import ActivityLog, RecordedClient, about
from chatapp.llm.client import ChatRequest
from chatapp.llm.errors import LLMError
from chatapp.llm.openai_compatible.client import OpenAIClient
from tests.fake_scripts import Done, Finish, Script, Text, Wait, failing, saying
from tests.fake_upstream import FakeUpstream

SECRET = "sk-the-key-of-the-tests"
PATIENCE = 20


def asked(text: str = "Hello", model: str = "fake-model") -> ChatRequest:
    return ChatRequest(model=model, messages=({"role": "user", "content": text},), max_tokens=100)


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


@pytest.fixture
async def client(upstream: FakeUpstream, tmp_path: Path) -> AsyncIterator[RecordedClient]:
    address = upstream.base_url.replace("http://", "http://user:password-of-the-tests@")
    inner = OpenAIClient(base_url=address, api_key=SECRET)
    made = RecordedClient(inner, ActivityLog(str(tmp_path / "log")))
    yield made
    await made.aclose()


def lines(folder: Path) -> list[dict[str, Any]]:
    """Every line of every file; each must be valid by itself."""
    return [
        json.loads(line)
        for path in sorted((folder / "log").glob("activity-*.jsonl"))
        for line in path.read_bytes().split(b"\n")
        if line
    ]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def talk(client: RecordedClient, text: str = "Hello", model: str = "fake-model") -> str:
    async with client.stream(asked(text, model)) as chunks:
        return "".join([getattr(chunk, "text", "") async for chunk in chunks])


async def test_i29_a_call_leaves_one_line(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Breaks when: nothing is written, or a line is written at the start and at the end."""
    upstream.enqueue(saying("Hello to you"))
    with about(conversation=7, turn=3), about(purpose="chat"):
        assert await talk(client) == "Hello to you"
    (line,) = lines(tmp_path)
    assert line["call"] == "chat"
    assert (line["conversation"], line["turn"], line["purpose"]) == (7, 3, "chat")
    assert (line["model"], line["messages"]) == ("fake-model", 1)
    assert (line["status"], line["finish_reason"]) == ("finished", "stop")
    assert line["prompt_tokens"] > 0
    assert line["completion_tokens"] > 0
    assert 0 <= line["first_token_seconds"] <= line["seconds"]
    assert line["at"].endswith("+00:00")


async def test_i29_failures_and_stops_leave_a_line_too(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Breaks when: the line is written after the last chunk instead of at the end of the call."""
    upstream.enqueue(failing(401, "no"), Script(steps=(Text("cut "),)))
    for _ in range(2):
        with pytest.raises(LLMError):
            await talk(client)
    upstream.enqueue(Script(steps=(Text("so far"), Wait(asyncio.Event()))))
    task = asyncio.create_task(talk(client))
    await asyncio.wait_for(upstream.came(3), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    upstream.enqueue(saying("one two three"))
    async with client.stream(asked()) as chunks:
        async for _ in chunks:
            break
    upstream.models = failing(500, "down")
    with pytest.raises(LLMError):
        await client.models()
    found = [(line["call"], line["status"], line.get("error")) for line in lines(tmp_path)]
    assert found[:2] == [("chat", "failed", "llm_auth"), ("chat", "failed", "llm_cut")]
    assert found[2:4] == [("chat", "cancelled", None), ("chat", "closed", None)]
    assert found[4][:2] == ("models", "failed")


async def test_i29_asking_for_the_models_leaves_a_line(
    client: RecordedClient, tmp_path: Path
) -> None:
    """Breaks when: ``models`` goes past the log."""
    listed = await client.models()
    (line,) = lines(tmp_path)
    assert (line["call"], line["status"], line["models"]) == ("models", "finished", len(listed))


HOSTILE = ("two\nlines", "\u2028\u2029\x85", "\x1b[31mred", "\ud800", "x" * 1_000_000, '"}{"')


async def test_j01_whatever_is_said_the_line_is_one_and_valid(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    for text in HOSTILE:
        upstream.enqueue(Script(steps=(Text(text[:1000]), Finish(f"stop{text[:50]}"), Done())))
        safe = text.encode("utf-8", "replace").decode()
        with about(note=text):
            await talk(client, safe)
    raw = b"".join(path.read_bytes() for path in (tmp_path / "log").iterdir())
    assert raw.count(b"\n") == len(HOSTILE) == len(lines(tmp_path))
    assert raw.isascii()
    assert b"\x1b" not in raw
    assert [line["note"] for line in lines(tmp_path)] == list(HOSTILE)


async def test_j02_no_secret_and_no_word_of_anyone_is_written(
    client: RecordedClient,
    upstream: FakeUpstream,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Breaks when: a record holds what was asked or what the model said."""
    upstream.enqueue(saying("the words of the model"), failing(401, f"Bad key {SECRET}"))
    with caplog.at_level(logging.DEBUG, logger="chatapp"):
        await talk(client, "the words of the person")
        with pytest.raises(LLMError):
            await talk(client, "the words of the person")
    written = "".join(path.read_text() for path in (tmp_path / "log").iterdir()) + caplog.text
    for secret in (SECRET, "password-of-the-tests", "the words of", "Authorization", "Bearer"):
        assert secret not in written


async def test_j03_a_log_that_cannot_be_written_disturbs_no_chat(
    upstream: FakeUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file stands where the folder should be; told once, and again after it has worked.

    Breaks when: ``_append`` lets an OSError through.
    """
    (tmp_path / "log").write_text("in the way")
    client = RecordedClient(
        OpenAIClient(base_url=upstream.base_url), ActivityLog(str(tmp_path / "log"))
    )
    for _ in range(3):
        assert (await talk(client)).startswith("You said")
    told = [one for one in caplog.records if "activity log" in one.getMessage()]
    assert len(told) == 1
    assert str(tmp_path) not in told[0].getMessage()
    (tmp_path / "log").unlink()
    await talk(client)
    assert len(lines(tmp_path)) == 1
    await client.aclose()


async def test_j03_two_logs_on_one_file_keep_lines_whole(tmp_path: Path) -> None:
    logs = [ActivityLog(str(tmp_path / "log")) for _ in range(2)]
    records = [{"number": number, "filling": "x" * 3000} for number in range(100)]
    await asyncio.gather(
        *[logs[record["number"] % 2].write(record) for record in records]  # type: ignore[operator]
    )
    assert sorted(line["number"] for line in lines(tmp_path)) == list(range(100))


async def test_j03_a_file_that_is_rotated_away_is_made_anew(tmp_path: Path) -> None:
    log = ActivityLog(str(tmp_path / "log"))
    await log.write({"number": 1})
    (path,) = (tmp_path / "log").iterdir()
    path.rename(path.with_suffix(".old"))
    await log.write({"number": 2})
    assert [line["number"] for line in lines(tmp_path)] == [2]


async def test_j04_names_of_others_make_no_paths(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.enqueue(saying("so"))
    with about(user="../../etc/passwd"):
        await talk(client, model="../../../model\x00name")
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("activity-")
    assert path.suffix == ".jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["log"]


async def test_an_empty_folder_turns_it_off(
    upstream: FakeUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    client = RecordedClient(OpenAIClient(base_url=upstream.base_url), ActivityLog(""))
    await talk(client)
    await client.aclose()
    assert names(tmp_path) == []


async def test_a_whole_answer_leaves_one_line(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.enqueue(saying("whole"))
    pieces: list[int] = []

    async def note(number: int) -> None:
        pieces.append(number)

    assert (await client.complete(asked(), note)).text == "whole"
    assert pieces
    assert len(lines(tmp_path)) == 1
