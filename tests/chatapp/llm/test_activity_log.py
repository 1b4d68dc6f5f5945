"""The recorder of calls and the lines they leave, before a model server that answers by script."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from chatapp.activity.log import ActivityLog
from chatapp.conversations.model_calls.storing import Indexed
from chatapp.conversations.model_calls.subjects import Subject
from chatapp.llm.activity_log import RecordedClient, about
from chatapp.llm.client import ChatRequest
from chatapp.llm.errors import LLMError
from chatapp.llm.openai_compatible.client import OpenAIClient
from chatapp.llm.openai_compatible.limits import Limits
from tests.chatapp.activity.log_lines import lines_of
from tests.fake_scripts import Done, Finish, Script, Text, Tool, Wait, calling, failing, saying
from tests.fake_upstream import FakeUpstream

SECRET = "sk-the-key-of-the-tests"
PATIENCE = 20
CODE = "6f1b43a6-6cb5-4a5b-8e9c-3a2f1d0c9b8a"


def asked(text: str = "Hello", model: str = "fake-model") -> ChatRequest:
    return ChatRequest(model=model, messages=({"role": "user", "content": text},), max_tokens=100)


class Index:
    """The database's part: one conversation, and a list of rows."""

    def __init__(self) -> None:
        self.rows: list[Indexed] = []
        self.away = False

    async def subject(self, conversation_id: int) -> Subject | None:
        if self.away:
            raise OSError("the database is away")
        if conversation_id != 7:
            return None
        return Subject(conversation_id=7, code=CODE, owner_id=1, project="naïve/../x")

    async def store(self, rows: Sequence[Indexed]) -> int:
        self.rows += rows
        return len(rows)


@pytest.fixture
def index() -> Index:
    return Index()


def log_in(folder: Path, index: Index, *, content: bool = True) -> ActivityLog:
    return ActivityLog(
        str(folder),
        content=content,
        secrets=lambda: (SECRET,),
        subject_of=index.subject,
        index=index.store,
    )


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


def client_of(upstream: FakeUpstream, log: ActivityLog) -> RecordedClient:
    address = upstream.base_url.replace("http://", "http://user:password-of-the-tests@")
    limits = Limits(retry_wait=0.01)
    inner = OpenAIClient(base_url=address, api_key=SECRET, limits=limits)
    return RecordedClient(inner, log, lambda model, usage: usage.prompt_tokens / 1000)


@pytest.fixture
async def client(
    upstream: FakeUpstream, tmp_path: Path, index: Index
) -> AsyncIterator[RecordedClient]:
    made = client_of(upstream, log_in(tmp_path / "log", index))
    yield made
    await made.aclose()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def talk(client: RecordedClient, text: str = "Hello", model: str = "fake-model") -> str:
    async with client.stream(asked(text, model)) as chunks:
        return "".join([getattr(chunk, "text", "") async for chunk in chunks])


async def test_i29_a_call_leaves_one_line(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path, index: Index
) -> None:
    """As sent, as answered, with its figures; and a row for the index, without the texts.

    Breaks when: nothing is written, or a line is written at the start and at the end.
    """
    upstream.enqueue(saying("Hello to you"))
    with about(conversation=7, turn=3), about(kind="title"):
        assert await talk(client) == "Hello to you"
    (line,) = lines_of(tmp_path / "log")
    assert line["request"] == upstream.chats[0].json
    assert line["response"] == {
        "text": "Hello to you",
        "reasoning": "",
        "tool_calls": [],
        "finish_reason": "stop",
    }
    usage = line["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert usage["cached_tokens"] == 0
    assert line["cost"] == usage["input_tokens"] / 1000
    assert (line["conversation"], line["turn"], line["kind"]) == (CODE, 3, "title")
    assert (line["model"], line["error"]) == ("fake-model", None)
    assert 0 <= line["first_token"] <= line["duration"]
    assert line["timestamp"].endswith("+00:00")
    await client.aclose()
    (row,) = index.rows
    assert row.line["call"] == line["call"]
    assert not {"request", "response"} & row.line.keys()


async def test_i29_each_request_that_goes_out_has_its_line(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """A retry is one of its own, and so is a request that was made anew without what is refused.

    Breaks when: ``_ask`` does not tell ``attempts``.
    """
    upstream.enqueue(failing(503, "busy"), failing(429, "later"), saying("at last"))
    assert await talk(client) == "at last"
    found = lines_of(tmp_path / "log")
    assert len(found) == len(upstream.chats) == 3
    assert [(one["error"] or {}).get("code") for one in found][2] is None
    assert all(one["error"] for one in found[:2])
    assert [one["usage"] is None for one in found] == [True, True, False]
    assert len({one["call"] for one in found}) == 3


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
    found = [((one["error"] or {}).get("code"), one["usage"]) for one in lines_of(tmp_path / "log")]
    assert found[:2] == [("llm_auth", None), ("llm_cut", None)]
    assert found[2:] == [("stopped", None), ("stopped", None)]
    texts = [one["response"] and one["response"]["text"] for one in lines_of(tmp_path / "log")]
    assert texts[:2] == [None, "cut "]
    assert texts[3].startswith("one")


async def test_calls_of_tools_are_in_the_line(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.enqueue(calling(Tool("search", '{"q": "harbour"}')))
    await talk(client)
    (line,) = lines_of(tmp_path / "log")
    assert line["response"]["finish_reason"] == "tool_calls"
    assert [one["name"] for one in line["response"]["tool_calls"]] == ["search"]


async def test_a_listing_of_models_is_no_call(client: RecordedClient, tmp_path: Path) -> None:
    assert await client.models()
    assert lines_of(tmp_path / "log") == []


HOSTILE = ("two\nlines", "\u2028\u2029\x85", "\x1b[31mred", "\ud800", "x" * 1_000_000, '"}{"')


async def test_j01_whatever_is_said_the_line_is_one_and_valid(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    for text in HOSTILE:
        upstream.enqueue(Script(steps=(Text(text[:1000]), Finish(f"stop{text[:50]}"), Done())))
        await talk(client, text.encode("utf-8", "replace").decode())
    raw = b"".join(path.read_bytes() for path in (tmp_path / "log").glob("*/*.jsonl"))
    assert raw.count(b"\n") == len(HOSTILE) == len(lines_of(tmp_path / "log"))
    assert raw.isascii()
    assert b"\x1b" not in raw


async def test_j02_no_secret_is_written(
    client: RecordedClient,
    upstream: FakeUpstream,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Keys of the program, and those that a person or a model wrote.

    Breaks when: a part of the line goes past ``without_secrets``.
    """
    pasted = "ghp_" + "a1B2" * 9
    told = "AKIAABCDEFGHIJKLMNOP"
    upstream.enqueue(saying(f"the words of the model, {told} and {SECRET}"))
    upstream.enqueue(failing(401, f"Bad key {SECRET} {pasted}"))
    with caplog.at_level(logging.DEBUG, logger="chatapp"):
        await talk(client, f"the words of the person: {pasted}, password=hunter22hunter {SECRET}")
        with pytest.raises(LLMError):
            await talk(client, "more")
    written = "".join(path.read_text() for path in (tmp_path / "log").glob("*/*.jsonl"))
    for secret in (SECRET, "password-of-the-tests", pasted, told, "hunter22", "Bearer"):
        assert secret not in written + caplog.text
    assert "the words of the person" in written
    assert "the words of the model" in written
    assert "the words of" not in caplog.text


async def test_j02_without_content_only_figures_are_written(
    upstream: FakeUpstream, tmp_path: Path, index: Index
) -> None:
    """So it is for a conversation that is gone, whose words must not come back.

    Breaks when: ``line_of`` keeps the request, or ``_write`` does not look for the subject.
    """
    for content, conversation in ((False, 7), (True, 8)):
        folder = tmp_path / f"log{conversation}"
        client = client_of(upstream, log_in(folder, index, content=content))
        upstream.enqueue(saying("words"), failing(401, "words of the server"))
        with about(conversation=conversation):
            await talk(client, "words of the person")
            with pytest.raises(LLMError):
                await talk(client, "words of the person")
        await client.aclose()
        found = lines_of(folder)
        assert "words" not in str(found)
        assert found[0]["request"] is None
        assert found[0]["response"]["finish_reason"] == "stop"
        assert found[0]["usage"]["total_tokens"] > 0
        assert found[1]["error"]["code"] == "llm_auth"


async def test_j03_a_log_that_cannot_be_written_disturbs_no_chat(
    upstream: FakeUpstream, tmp_path: Path, index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    """A file stands where the folder should be; told once, and again after it has worked.

    Breaks when: ``_store`` lets an OSError through.
    """
    (tmp_path / "log").write_text("in the way")
    client = client_of(upstream, log_in(tmp_path / "log", index))
    for _ in range(3):
        assert (await talk(client)).startswith("You said")
    told = [one for one in caplog.records if "activity log" in one.getMessage()]
    assert len(told) == 1
    assert str(tmp_path) not in told[0].getMessage()
    (tmp_path / "log").unlink()
    await talk(client)
    assert len(lines_of(tmp_path / "log")) == 1
    await client.aclose()


async def test_j03_without_the_database_lines_are_written_and_wait_for_the_index(
    client: RecordedClient, tmp_path: Path, index: Index
) -> None:
    """The conversation is the one that the database told last.

    Breaks when: a failure of ``subject_of`` leaves the call out.
    """
    with about(conversation=7):
        await talk(client)
        index.away = True
        await talk(client)
    assert [one["conversation"] for one in lines_of(tmp_path / "log")] == [CODE, CODE]


async def test_j04_names_of_others_make_no_paths(
    client: RecordedClient, upstream: FakeUpstream, tmp_path: Path
) -> None:
    upstream.enqueue(saying("so"))
    with about(conversation=7):
        await talk(client, model="../../../model\x00name")
    (path,) = (tmp_path / "log").glob("*/*.jsonl")
    assert path.parent.name == "na_ve____x"
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
    assert len(lines_of(tmp_path / "log")) == 1
