"""The product with the fake model server, in the test's own loop; alice has one conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

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
async def client(upstream: FakeUpstream, alice: User) -> AsyncClient:
    """Alice's browser."""
    return await signed_in(alice)


@pytest.fixture
async def code(client: AsyncClient) -> str:
    """Alice's conversation, still empty."""
    return await new_conversation(client)
