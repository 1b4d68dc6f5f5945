from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from chatapp.conversations import profiles
from chatapp.conversations.profiles import alearn, forget
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.errors import LLMError, ModelUnknown
from chatapp.llm.known_profiles import PROFILE_LIVES
from chatapp.llm.model_list import LIST_LIVES, SILENCE_LIVES
from chatapp.llm.openai_compatible.client import OpenAIClient
from chatapp.llm.profiles import PriceFigures, Profile
from chatapp.models import ModelProfile
from chatapp.profile_store import StoredProfiles
from tests.chatapp.stage import stored
from tests.fake_scripts import failing
from tests.fake_upstream import FakeUpstream

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


class Clock:
    """Seconds that pass when the test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


@pytest.fixture
async def client(upstream: FakeUpstream) -> AsyncIterator[OpenAIClient]:
    made = OpenAIClient(base_url=upstream.base_url, api_key="key-of-the-tests")
    yield made
    await made.aclose()


def catalogue_of(client: OpenAIClient, *, window: int | None = None, **options: Any) -> Catalogue:
    """As the program makes it: the operator's window goes to both."""
    return Catalogue(client, StoredProfiles(window=window), window=window, **options)


async def row_of(name: str) -> ModelProfile:
    row = await profiles.aprofile(name)
    assert row is not None
    return row


def listing(upstream: FakeUpstream, *names: str, window: int = 4096) -> None:
    upstream.models = tuple(
        {"id": name, "object": "model", "max_model_len": window} for name in names
    )


async def test_it_works(upstream: FakeUpstream, client: OpenAIClient) -> None:
    listing(upstream, "first", "second")
    catalogue = catalogue_of(client)
    assert catalogue.known_name() == ""
    assert await catalogue.default_name() == "first"
    profile = await catalogue.profile("")
    assert (profile.name, profile.window, profile.reserve) == ("first", 4096, 1024)
    assert await catalogue.names() == ["first", "second"]
    assert catalogue.known_profile("first") == profile
    assert len(upstream.requests) == 1


async def test_i16_who_asks_first_of_all_is_told_the_servers_window(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """I16: also who asks while the server's figures are being stored.

    Breaks when: a model counts as looked up before its figures are stored.
    """
    listing(upstream, "first")
    looked_up: list[str] = []

    def prices(names: Iterable[str]) -> dict[str, PriceFigures]:
        looked_up.extend(names)
        return {}

    catalogue = catalogue_of(client, prices=prices)
    profiles = await asyncio.gather(*(catalogue.profile("first") for _ in range(5)))
    assert {one.window for one in profiles} == {4096}
    assert looked_up == ["first"]


async def test_the_setting_names_the_default(upstream: FakeUpstream, client: OpenAIClient) -> None:
    listing(upstream, "first")
    catalogue = catalogue_of(client, chat_model="chosen", window=2000)
    assert await catalogue.default_name() == "chosen"
    assert (await catalogue.profile("")).window == 2000
    assert await catalogue.names() == ["chosen", "first"]


async def test_the_list_is_asked_for_again_after_a_while(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    clock = Clock()
    listing(upstream, "first")
    catalogue = catalogue_of(client, clock=clock)
    await catalogue.profile("first")
    listing(upstream, "second")
    clock.now += LIST_LIVES - 1
    assert await catalogue.default_name() == "first"
    clock.now += 2
    assert await catalogue.default_name() == "second"
    gone = await stored(lambda: ModelProfile.objects.get(name="first"))
    assert gone.available is False


async def test_a_silent_server_is_not_asked_at_every_turn(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    clock = Clock()
    upstream.models = failing(500, "down")
    catalogue = catalogue_of(client, clock=clock)
    with pytest.raises(LLMError):
        await catalogue.default_name()
    asked = len(upstream.requests)
    assert (await catalogue.profile("named")).window == 8192
    with pytest.raises(LLMError):
        await catalogue.default_name()
    assert len(upstream.requests) == asked
    await catalogue.warm()
    clock.now += SILENCE_LIVES + 1
    listing(upstream, "first")
    assert await catalogue.default_name() == "first"


async def test_what_was_stored_is_known_when_the_server_is_silent(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    listing(upstream, "first", window=5000)
    await catalogue_of(client).profile("first")
    upstream.models = failing(503, "down")
    another = catalogue_of(client)
    assert (await another.profile("first")).window == 5000
    assert await another.names() == ["first"]


async def test_what_was_stored_is_known_before_the_server_is_asked(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """Also of the default model; the operator's own window goes before it as ever.

    Breaks when: a process that has begun takes the defaults until the server has answered.
    """
    listing(upstream, "second", "first", window=4096)
    before = await catalogue_of(client).profile("")
    another = catalogue_of(client)
    assert another.known_profile("second").window == 8192, "nothing is read in the event loop"
    await stored(another.recall)
    assert another.known_profile("second") == another.known_profile("") == before
    operated = catalogue_of(client, window=2000)
    await stored(operated.recall)
    assert operated.known_profile("second").window == 2000


async def test_what_was_learned_meanwhile_is_not_forgotten(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    listing(upstream, "first")
    catalogue = catalogue_of(client)
    profile = await catalogue.profile("first")
    await catalogue.learn("first", "window", 3000)
    await stored(lambda: ModelProfile.objects.update(window=5000))
    await stored(catalogue.recall)
    assert (catalogue.known_profile("first").window, profile.window) == (3000, 4096)


async def test_screens_know_of_a_reset_without_a_request(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """As of an operator's change, and of what another process learned.

    Breaks when: a window that an administrator has reset is shown until the next reply.
    """
    listing(upstream, "first")
    clock = Clock()
    catalogue = catalogue_of(client, clock=clock)
    await catalogue.learn("first", "window", 3000)
    await stored(lambda: catalogue.reread("first"))
    row = await ModelProfile.objects.aget()
    await stored(lambda: forget(row.pk))
    await stored(lambda: catalogue.reread(""))
    assert catalogue.known_profile("first").window == 3000, "not with every page"
    clock.now += PROFILE_LIVES + 1
    revision = catalogue.revision
    await stored(lambda: catalogue.reread(""))
    assert catalogue.known_profile("first").window == 4096
    assert catalogue.revision == revision + 1
    assert len(upstream.requests) == 1


async def test_a_server_without_models_says_what_to_set(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    upstream.models = ()
    with pytest.raises(ModelUnknown, match="CHAT_MODEL"):
        await catalogue_of(client).default_name()


async def test_what_is_learned_holds_from_the_next_turn_on(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    listing(upstream, "first")
    catalogue = catalogue_of(client)
    profile = await catalogue.profile("first")
    await catalogue.learn("first", "window", 3000)
    assert (await catalogue.profile("first")).window == 3000
    await catalogue.calibrate(profile, reported=400, counted=200)
    assert (await catalogue.profile("first")).calibration > profile.calibration
    known = (await catalogue.profile("first")).calibration
    await catalogue.calibrate(profile, reported=0, counted=200)
    assert (await catalogue.profile("first")).calibration == known


async def test_what_a_report_teaches_holds_here_before_it_is_stored(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """And neither a look at the row nor storing it changes the figure.

    Breaks when: a stored row takes back what was not stored yet, or a report counts twice.
    """
    listing(upstream, "first")
    clock = Clock()
    catalogue = catalogue_of(client, clock=clock)
    profile = await catalogue.profile("first")
    for reported in (400, 300):
        await catalogue.calibrate(profile, reported=reported, counted=200)
    factor = catalogue.known_profile("first").calibration
    assert factor > profile.calibration
    assert (await row_of("first")).calibration == profile.calibration
    clock.now += PROFILE_LIVES + 1
    assert (await catalogue.profile("first")).calibration == factor
    await catalogue.store_usage()
    assert (await row_of("first")).calibration == factor
    await catalogue.store_usage()
    clock.now += PROFILE_LIVES + 1
    await stored(lambda: catalogue.reread("first"))
    assert catalogue.known_profile("first").calibration == factor


async def test_an_answer_to_more_than_the_window_is_stored_at_once(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """Breaks when: a window that was learned too small is kept until reports are stored."""
    listing(upstream, "first")
    catalogue = catalogue_of(client)
    await catalogue.learn("first", "window", 3000)
    await catalogue.calibrate(await catalogue.profile("first"), reported=3001, counted=3000)
    row = await row_of("first")
    assert "window" not in profiles.in_force(row)


async def test_what_a_refusal_teaches_counts_after_all_reports_before_it(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """Breaks when: earlier reports are stored over a factor that a refusal taught."""
    listing(upstream, "first")
    catalogue = catalogue_of(client)
    await catalogue.calibrate(await catalogue.profile("first"), reported=200, counted=200)
    await catalogue.learn("first", "calibration", 1.7)
    await catalogue.store_usage()
    assert (await row_of("first")).calibration == 1.7
    assert (await catalogue.profile("first")).calibration == 1.7


async def test_a_learned_window_bounds_the_operators(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    listing(upstream, "first")
    clock = Clock()
    catalogue = catalogue_of(client, window=32_000, clock=clock)
    assert (await catalogue.profile("first")).window == 32_000
    # By another process: it may take a moment to be seen.
    await alearn("first", "window", 6000)
    clock.now += 10
    assert (await catalogue.profile("first")).window == 6000
    small = catalogue_of(client, window=2000)
    assert (await small.profile("first")).window == 2000


def test_the_reserve_is_at_most_a_quarter() -> None:
    assert Profile(name="m", window=8000).reserve == 2000
    assert Profile(name="m", window=8000, max_output_tokens=500).reserve == 500
    assert Profile(name="m", window=8000, max_output_tokens=9000).reserve == 2000


def test_what_a_call_costs() -> None:
    priced = Profile(name="m", input_price=2.0, output_price=10.0, cached_input_price=0.5)
    assert priced.cost(1_000_000, 100_000) == pytest.approx(3.0)
    assert priced.cost(1_000_000, 0, 400_000) == pytest.approx(1.4)
    uncached = Profile(name="m", input_price=2.0, output_price=10.0)
    assert uncached.cost(1_000_000, 0, 400_000) == pytest.approx(2.0)
    assert Profile(name="m").cost(1, 1) is None
    free = Profile(name="m", input_price=0.0, output_price=0.0)
    assert free.cost(5, 5) == 0.0


async def test_the_windows_of_all_models_are_known_with_the_list(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """By the server's own word, else the price data's, asked once for all that say nothing.

    Breaks when: a model's window is looked up when it is first used.
    """
    listing(upstream, "first", "second", window=16_000)
    silent = [{"id": name, "object": "model"} for name in ("known", "unknown")]
    assert isinstance(upstream.models, tuple)
    upstream.models = (*upstream.models, *silent)
    asked = []

    def prices(names: Iterable[str]) -> dict[str, PriceFigures]:
        asked.append(list(names))
        return {"known": PriceFigures(window=128_000)}

    catalogue = catalogue_of(client, prices=prices)
    await catalogue.ask()
    windows = {name: catalogue.known_profile(name).window for name in await catalogue.names()}
    assert windows == {"first": 16_000, "second": 16_000, "known": 128_000, "unknown": 8192}
    assert asked == [["first", "second", "known", "unknown"]]
    assert len(upstream.requests) == 1
    # The figures of a process that has just begun are these as well.
    another = catalogue_of(client)
    await stored(another.recall)
    assert another.known_profile("known").window == 128_000


async def test_a_list_that_says_nothing_new_writes_nothing(
    upstream: FakeUpstream, client: OpenAIClient
) -> None:
    """Hundreds of models, every five minutes. Breaks when: each is stored anew with each list."""
    listing(upstream, "first", "second")
    clock = Clock()
    catalogue = catalogue_of(client, clock=clock)
    await catalogue.ask()
    before = await stored(lambda: list(ModelProfile.objects.values_list("updated_at", flat=True)))
    clock.now += LIST_LIVES + 1
    await catalogue.ask()
    assert len(upstream.requests) == 2
    after = await stored(lambda: list(ModelProfile.objects.values_list("updated_at", flat=True)))
    assert after == before
