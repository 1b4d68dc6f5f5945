"""What compression works with: which models write summaries, in which order, of what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.llm.profiles import Profile
from chatapp.models import ModelProfile
from chatapp.turns.services import Services
from compression.exceptions import SummarizerError
from compression.ports import Summarizer
from compression.types import Draft, Item, Ledger
from tests.chatapp.stage import COUNTER, services_for, stored
from tests.chatapp.talking import new, row_of
from tests.fake_scripts import Json, Script, default_answer, failing
from tests.fake_upstream import FakeUpstream

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = Profile(name="chat-model", window=8192)
TOLD = "The harbour of Malmö opens at nine. "


def item(seq: int, role: Any, text: str) -> Item:
    return Item(seq=seq, role=role, text=text, tokens=COUNTER.count(text) + 4)


async def draft_of(summarizer: Summarizer, *items: Item) -> Draft:
    async def on_tokens(tokens: int) -> None:
        told.append(tokens)

    told: list[int] = []
    made = await summarizer.draft(items, Ledger(), focus="", on_tokens=on_tokens)
    assert told == sorted(told)
    return made


@pytest.mark.parametrize("summary_model", ["small-model", "chat-model", ""])
async def test_the_summary_model_is_asked_first_and_then_the_chat_model(
    tmp_path: Path, summary_model: str
) -> None:
    """The second rung is there only if the summary model is another.

    Breaks when: ``engine`` names one of the two only, or the same one twice.
    """

    def answer(request: Json) -> Script:
        return failing(401) if request["model"] == "small-model" else default_answer(request)

    async with FakeUpstream(handler=answer) as upstream:
        services = replace(services_for(upstream, tmp_path), summary_model=summary_model)
        first, *others = services.engine(CHAT).summarizers
        if summary_model == "small-model":
            with pytest.raises(SummarizerError):
                await draft_of(first, item(1, "user", TOLD))
            (first,) = others
            others = []
        assert others == []
        assert (await draft_of(first, item(1, "user", TOLD))).ledger.narrative
        asked = dict.fromkeys(one.json["model"] for one in upstream.chats)
        await services.client.aclose()
    assert list(asked) == list(dict.fromkeys([summary_model or "chat-model", "chat-model"]))


async def test_the_first_figures_of_a_process_are_of_what_is_stored(
    tmp_path: Path, alice: User
) -> None:
    """Before the model server has said anything; and what is stored is read once.

    Breaks when: the figures of a screen take the default window as long as nobody has answered.
    """
    code = await stored(lambda: new(alice))
    await stored(lambda: ModelProfile.objects.create(name="chat-model", window=4096))
    row = await stored(lambda: row_of(code))
    async with FakeUpstream() as upstream:
        services = services_for(upstream, tmp_path)
        assert (await services.acontext(row.pk)).window == 4096
        await stored(lambda: ModelProfile.objects.update(window=1))
        assert (await services.acontext(row.pk)).window == 4096
        assert upstream.requests == []
        await services.client.aclose()


async def test_a_summariser_sees_as_much_of_a_tools_result_as_is_set(
    tmp_path: Path, settings: Any
) -> None:
    """Breaks when: the setting does not reach the summariser."""
    settings.COMPRESSION = {**settings.COMPRESSION, "TOOL_RESULT_MAX_LENGTH": 100}
    result = "".join(f"{number:05d}" for number in range(1000))
    async with FakeUpstream() as upstream:
        services = services_for(upstream, tmp_path)
        (summarizer,) = services.engine(CHAT).summarizers
        await draft_of(summarizer, item(1, "user", TOLD), item(2, "tool", result))
        asked = str(upstream.chats[0].json["messages"])
        await services.client.aclose()
    assert result[:75] in asked
    assert result[:76] not in asked
    assert "4,900 characters" in asked


async def test_the_demo_models_summary_takes_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the indicator is seen; it is the method there, and nothing comes before it.

    Breaks when: the demo's extract is not paced, or a model is asked.
    """
    napped = without_waiting(monkeypatch)
    async with FakeUpstream() as upstream:
        services: Services = replace(services_for(upstream, tmp_path), demo=True)
        engine = services.engine(CHAT)
        assert engine.summarizers == ()
        assert engine.extract is not None
        made = await draft_of(engine.extract, item(1, "user", TOLD * 20))
        assert upstream.chats == []
        await services.client.aclose()
    assert TOLD.strip() in str(made.ledger)
    assert sum(napped()) == pytest.approx(2.0)


def without_waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[float]]:
    """Have nobody sleep; what has been slept since, in seconds."""
    real, napped = asyncio.sleep, list[float]()

    async def nap(seconds: float) -> None:
        napped.append(seconds)
        await real(0)

    monkeypatch.setattr("chatapp.turns.summarising.asyncio.sleep", nap)
    return lambda: [seconds for seconds in napped if seconds]
