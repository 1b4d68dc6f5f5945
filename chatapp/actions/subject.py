"""The subject of a person's action: one of their conversations, and the model it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chatapp.actions.limits import profile_of, sizes_of
from chatapp.context.request import ConversationSnapshot
from chatapp.conversations.messages.reading import aowned_snapshot_without_tail, asnapshot_with_tail
from chatapp.conversations.ownership import aowned
from chatapp.llm.profiles import Profile
from compression.types import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A conversation that belongs to the person who asked."""

    snapshot: ConversationSnapshot
    profile: Profile

    @property
    def conversation_id(self) -> int:
        """The key of its row."""
        return self.snapshot.conversation_id

    @property
    def sizes(self) -> Sizes:
        """The tokens of its next request besides its messages."""
        return sizes_of(self.snapshot, self.profile)

    async def with_tail(self) -> Subject:
        """The same with the messages after the boundary. Raises NotFound when it is gone."""
        return replace(self, snapshot=await asnapshot_with_tail(self.conversation_id))


async def subject(user_id: int, code: str) -> Subject:
    """The person's conversation without its tail. Raises NotFound."""
    snapshot = await aowned_snapshot_without_tail(user_id, code)
    return Subject(snapshot=snapshot, profile=await profile_of(snapshot.model))


async def conversation_of(user_id: int, code: str) -> int:
    """The key of the person's conversation, where no more of it is needed. Raises NotFound."""
    return (await aowned(user_id, code)).pk
