"""The text that a person is writing to a conversation, stored until it is sent."""

from __future__ import annotations

from chatapp.conversations.ownership import owned
from chatapp.models import Conversation
from compression.database import in_database_thread


def save_draft(user_id: int, code: str, text: str) -> None:
    """Store the draft, unless the present one is queued to be sent, or held. Raises NotFound."""
    row = owned(user_id, code)
    if not (row.send_when_done or row.held):
        # Unless the text was queued in between.
        same = Conversation.objects.filter(
            pk=row.pk, send_when_done=False, draft_client_msg_id=row.draft_client_msg_id
        )
        same.update(draft=text, draft_client_msg_id=None)


asave_draft = in_database_thread(save_draft)
