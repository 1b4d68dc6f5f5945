"""The instructions at the head of every request: the chat's, the person's, the conversation's."""

from __future__ import annotations

BASE = (
    "You are a helpful assistant in a long conversation. Answer in the user's language and in "
    "Markdown. Be accurate; say so when you do not know something."
)
OWN_HEAD = (
    "The user asks for the following in all conversations. What is asked for in this one has "
    "priority."
)

PROJECT_HEAD = (
    "The user asks for the following in the conversations of one project, of which this is one."
)


def own_part(own: str) -> str:
    """A person's own instructions as they are sent; empty for none."""
    return f"{OWN_HEAD}\n{own.strip()}" if own.strip() else ""


def project_part(shared: str) -> str:
    """A project's instructions as they are sent; empty for none."""
    return f"{PROJECT_HEAD}\n{shared.strip()}" if shared.strip() else ""


def parts(own: str, conversation: str, *, project: str = "") -> list[tuple[str, str]]:
    """Each instruction with its origin: ``chat``, ``own`` (for all conversations), ``project`` or
    ``conversation``. Blank ones are left out.
    """
    found = [("chat", BASE)]
    if own_part(own):
        found.append(("own", own_part(own)))
    if project_part(project):
        found.append(("project", project_part(project)))
    if conversation.strip():
        found.append(("conversation", conversation.strip()))
    return found


def joined(own: str, conversation: str, *, project: str = "") -> str:
    """The instructions as they are sent."""
    return "\n\n".join(text for _, text in parts(own, conversation, project=project))
