"""The chat keeps the contract that every host of compression keeps."""

from __future__ import annotations

from typing import ClassVar

import pytest
from django.test import TransactionTestCase

from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Conversation
from compression.contract import ContractTests
from compression.ports import Masks, Transcript
from tests.compression.hosting import add, new_conversation, supersede


@pytest.mark.storage
class TestTheChat(ContractTests, TransactionTestCase):
    """The contract, on conversations."""

    transcript: ClassVar[Transcript] = StoredTranscript()
    masks: ClassVar[Masks | None] = StoredMasks()

    def start(self) -> int:
        """A conversation."""
        return int(new_conversation().pk)

    def say(self, conversation_id: int, role: str, text: str) -> int:
        """A message."""
        return int(add(Conversation.objects.get(pk=conversation_id), role, text).seq)

    def take_back(self, conversation_id: int, seq: int) -> None:
        """A message is superseded."""
        supersede(Conversation.objects.get(pk=conversation_id), seq)
