"""Alice's browser, by the name that pytest-django gives the one of nobody."""

from __future__ import annotations

import pytest
from django.test import AsyncClient


@pytest.fixture
def client(chat_client: AsyncClient) -> AsyncClient:
    """Signed in as alice."""
    return chat_client
