"""The chat's branch of the error tree.

::

    UserFacingError                 (compression.exceptions)
    ├── ChatError
    │   ├── NotFound                not_found           404
    │   ├── SignedOut               signed_out          401
    │   ├── Forbidden               forbidden           403
    │   ├── InvalidInput            invalid_input       422   fields: name -> sentence
    │   ├── MessageTooLarge         too_large           413   fields: the figures
    │   ├── TurnOpen                turn_open           409
    │   ├── TooManyReplies          too_many_replies    429   fields: most
    │   ├── DailyLimit              daily_limit         429   fields: ends_at
    │   ├── MovedOn                 moved_on            409   fields: last_seq
    │   ├── Summarised              summarised          409   fields: seq, boundary
    │   ├── NothingToStop           nothing_to_stop     409
    │   ├── NothingToContinue       nothing_to_continue 409
    │   ├── NothingQueued           nothing_queued      409
    │   ├── ApprovalOver            approval_over       409
    │   ├── ApprovalChanged         approval_changed    409
    │   ├── BadRequest              bad_request         400
    │   ├── MethodNotAllowed        method_not_allowed  405
    │   ├── RequestTooLarge         request_too_large   413
    │   ├── ContextBlocked          blocked             422
    │   ├── ImportInvalid           import_invalid      422   fields: position
    │   ├── ImportRunning           import_running      409   fields: job
    │   ├── ImportBroken            import_broken       500
    │   ├── LinkExpired             link_expired        410
    │   ├── RateLimited             rate_limited        429
    │   ├── SearchTooSlow           search_too_slow     422
    │   ├── StorageUnavailable      storage_unavailable 503
    │   └── InternalError           internal            500
    └── LLMError                    (chatapp.llm.errors)

Do not raise :class:`ChatError` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from compression.exceptions import UserFacingError


class ChatError(UserFacingError):
    """Root of the chat's own errors."""


class NotFound(ChatError):
    """The thing does not exist, or is another person's; the two are not told apart."""

    code = "not_found"
    status = 404
    default_message = "There is nothing here, or it is not yours."


class SignedOut(ChatError):
    """No one is signed in, or the account was switched off."""

    code = "signed_out"
    status = 401
    default_message = "You are signed out. Sign in and try again."


class Forbidden(ChatError):
    """The person is known, but may not do this."""

    code = "forbidden"
    status = 403
    default_message = "You are not allowed to do that."


class InvalidInput(ChatError):
    """A form's field was not usable; ``fields`` maps its name to a sentence."""

    code = "invalid_input"
    status = 422
    default_message = "Something you entered is not valid. Check it and try again."

    @classmethod
    def of(cls, field: str, sentence: str) -> InvalidInput:
        """The error of one field, whose sentence is also the whole message."""
        return cls(sentence, fields={field: sentence})


class MessageTooLarge(ChatError):
    """The message does not fit into the model's window, even after a compression."""

    code = "too_large"
    status = 413
    default_message = "This message is too large for the model's context window."

    @classmethod
    def from_figures(
        cls,
        *,
        window: int,
        reserve: int,
        fixed: int,
        constraints: int,
        message: int,
    ) -> MessageTooLarge:
        """The error with its figures, all in calibrated tokens.

        ``fields`` holds the arguments, ``budget`` (window - reserve), and ``over``: by how much the
        message would have to be shorter.
        """
        budget = window - reserve
        over = fixed + constraints + message - budget
        figures: Mapping[str, int] = {
            "window": window,
            "budget": budget,
            "reserve": reserve,
            "fixed": fixed,
            "constraints": constraints,
            "message": message,
            "over": over,
        }
        room = budget - fixed - constraints
        words = (
            f"This message has about {message:,} tokens and the model has room for {room:,}. "
            f"Shorten it by about {max(0, over):,} tokens"
        )
        if room <= 0:
            # No message would fit, however short, so its size is not the reason.
            rules = " and the rules that hold" if constraints else ""
            words = (
                f"The instructions for the model{rules} have about {fixed + constraints:,} tokens, "
                f"this message {message:,}, and the model has room for {budget:,} in all. Shorten "
                f"the instructions by about {over:,} tokens"
            )
        return cls(
            f"{words}, or choose a model with a larger window. Nothing was sent.", fields=figures
        )


class TurnOpen(ChatError):
    """A reply is still being written in this conversation."""

    code = "turn_open"
    status = 409
    retryable = True
    default_message = "A reply is still being written. Wait for it or stop it first."


class TooManyReplies(ChatError):
    """The person has as many running replies as one person may have."""

    code = "too_many_replies"
    status = 429
    retryable = True
    default_message = (
        "You have reached the limit of replies at once. Wait for one to end or stop one, then "
        "send again. Nothing was sent."
    )


class DailyLimit(ChatError):
    """The person has used as much of the models as one person may in a day."""

    code = "daily_limit"
    status = 429
    reached = "You have reached your limit for today."
    default_message = f"{reached} A new day begins at midnight. Nothing was sent."

    @classmethod
    def until(cls, ends_at: datetime, now: datetime) -> DailyLimit:
        """The error with the time at which the next day begins."""
        minutes = -(-(ends_at - now).total_seconds() // 60)
        hours, rest = divmod(int(minutes), 60)
        wait = f"{hours} h {rest} min" if hours else f"{rest} min"
        return cls(
            f"{cls.reached} A new day begins at {ends_at:%H:%M %Z}, in {wait}. Nothing was sent.",
            fields={"ends_at": ends_at.isoformat()},
        )


class MovedOn(ChatError):
    """The sender had not seen the conversation's last message."""

    code = "moved_on"
    status = 409
    default_message = "This chat moved on in another tab. Have a look before you send."


class Summarised(ChatError):
    """The message is before the boundary: the model knows it only from the summary."""

    code = "summarised"
    status = 409
    default_message = (
        "This message is already summarised, so it cannot be changed here. "
        "Branch from here to continue from it in a new conversation."
    )


class NothingToStop(ChatError):
    """Stop was requested, but no turn is open."""

    code = "nothing_to_stop"
    status = 409
    default_message = "There is nothing to stop: no reply is being written."


class NothingToContinue(ChatError):
    """The model was asked to continue a reply that has no text."""

    code = "nothing_to_continue"
    status = 409
    default_message = (
        "There is nothing to continue: the last reply has no text. Regenerate it instead."
    )


class NothingQueued(ChatError):
    """The queued message was to be changed, but there is none any more."""

    code = "nothing_queued"
    status = 409
    default_message = "The waiting message was already sent or removed. Nothing was changed."


class ApprovalOver(ChatError):
    """A call was to be allowed or refused, but nobody waits for that any more."""

    code = "approval_over"
    status = 409
    default_message = (
        "This call no longer waits for an answer: it was decided on another page, nobody decided "
        "within ten minutes, or the reply has ended."
    )


class ApprovalChanged(ChatError):
    """The call has other arguments than those that were shown to the person who decided."""

    code = "approval_changed"
    status = 409
    default_message = (
        "The call has other arguments than those you were shown. Nothing was allowed. Look at it "
        "again."
    )


class BadRequest(ChatError):
    """The request itself is malformed; its fields were not checked."""

    code = "bad_request"
    status = 400
    default_message = "The request could not be read. Nothing was changed."


class MethodNotAllowed(ChatError):
    """The address exists, but does not accept this method."""

    code = "method_not_allowed"
    status = 405
    default_message = "This address does not take that kind of request."


class RequestTooLarge(ChatError):
    """The body has more bytes than any form here needs."""

    code = "request_too_large"
    status = 413
    default_message = "This is too large: at most 8 MB can be sent. Nothing was changed."


class ContextBlocked(ChatError):
    """No request fits; the message is stored, and the model was not asked."""

    code = "blocked"
    status = 422
    default_message = (
        "This conversation no longer fits into the model's window, even compressed. Nothing was "
        "sent to the model, and nothing was lost. Continue in a new conversation, which takes the "
        "summary along."
    )


class ImportInvalid(ChatError):
    """A file could not be imported; ``fields["position"]`` is the place of the mistake."""

    code = "import_invalid"
    status = 422
    default_message = "The file could not be imported. Nothing was changed."


class ImportRunning(ChatError):
    """The person's last import has not ended; ``fields["job"]`` is its code."""

    code = "import_running"
    status = 409
    retryable = True
    default_message = (
        "Another file of yours is being imported. Wait for it to end or cancel it, then send this "
        "one again. Nothing of it was imported."
    )


class ImportBroken(ChatError):
    """The server stopped an import before its end; the file is not at fault."""

    code = "import_broken"
    retryable = True
    default_message = (
        "The server stopped during the import. Import the file again: conversations that are "
        "already here are skipped."
    )

    @classmethod
    def after(cls, imported: int, total: int | None) -> ImportBroken:
        """The error with the number of imported conversations, and their total if known."""
        of = f" of {total:,}" if total is not None else ""
        noun = "conversation was" if imported == 1 and total is None else "conversations were"
        return cls(
            f"The server stopped during the import. {imported:,}{of} {noun} imported. Import the "
            "file again: conversations that are already here are skipped."
        )


class LinkExpired(ChatError):
    """A sign-in link is wrong, used or expired; the three are not told apart."""

    code = "link_expired"
    status = 410
    default_message = (
        "This sign-in link was already used or is too old: a link works once, within 15 minutes. "
        "Whoever runs this server can make a new one with: manage.py signin_link"
    )


class RateLimited(ChatError):
    """A limit of this program was reached, not one of the model server."""

    code = "rate_limited"
    status = 429
    retryable = True
    default_message = "Too many attempts at once. Wait a moment and try again."


class SearchTooSlow(ChatError):
    """The terms are in so many messages that the search was given up."""

    code = "search_too_slow"
    status = 422
    retryable = False
    default_message = (
        "This search takes too long: too many messages contain these words. Try rarer words."
    )


class StorageUnavailable(ChatError):
    """The database is away, full or read-only; it is not always known whether it stored."""

    code = "storage_unavailable"
    status = 503
    retryable = True
    default_message = (
        "This server cannot reach its database, or cannot write to it. Try again in a moment: "
        "nothing is stored twice."
    )


class InternalError(ChatError):
    """An unforeseen error; the log has the cause."""

    code = "internal"
    retryable = True
    default_message = "Something went wrong on this server. Its log has the details."
