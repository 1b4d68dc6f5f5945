"""The product with the fake model server, in the test's own loop; alice has one conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from chatapp.models import Conversation
from tests.chatapp.viewing import Screen
from tests.fake_upstream import FakeUpstream
from tests.inprocess import fresh_product, new_conversation, settle, signed_in


@pytest.fixture
async def upstream(settings: Any, transactional_db: None) -> AsyncIterator[FakeUpstream]:
    """The model server that the product asks, with a window of 8,192 tokens."""
    async with FakeUpstream() as fake:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = fake.base_url, "a-key"
        async with fresh_product():
            yield fake
            await settle()


@pytest.fixture
async def chat_client(upstream: FakeUpstream, alice: User) -> AsyncClient:
    """Alice's browser; pytest-django's own ``client`` is nobody's."""
    return await signed_in(alice)


@pytest.fixture
async def code(chat_client: AsyncClient) -> str:
    """Alice's conversation, still empty."""
    return await new_conversation(chat_client)


@pytest.fixture
async def pk(code: str) -> int:
    """The key of that conversation's row."""
    return (await Conversation.objects.aget(code=code)).pk


@pytest.fixture
async def screen(chat_client: AsyncClient, code: str) -> AsyncIterator[Screen]:
    """A screen that follows the conversation and has been told how it is."""
    screen = Screen(chat_client, code)
    await screen.connect()
    await screen.until("state")
    yield screen
    await screen.disconnect()
