"""Websockets: who may follow a conversation, catching up, and passing events on. Nothing else."""

from chatapp.consumers.conversation import ConversationConsumer

__all__ = ["ConversationConsumer"]
