"""View models: the values that pages, fragments and JSON have in common."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from typing import Any

from compression.planning.presets import Figures, preset_of


def as_json(value: Any) -> Any:
    """The value for JSON: times as ISO 8601 in UTC, dataclasses as objects, others unchanged."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, View):
        return value.as_json()
    if is_dataclass(value):
        return _fields_as_json(value)
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    return value


def _fields_as_json(value: Any) -> dict[str, Any]:
    return {name: as_json(getattr(value, name)) for name in value.__dataclass_fields__}


class View:
    """A value that can be sent as JSON."""

    def as_json(self) -> dict[str, Any]:
        """All fields, times as ISO 8601."""
        return _fields_as_json(self)


@dataclass(frozen=True, kw_only=True)
class ApprovalView(View):
    """The question whether a call of a tool may run."""

    call_id: str
    tool: str
    state: str
    """``waiting``, ``allowed``, ``refused``, ``expired`` or ``withdrawn``."""
    arguments: str
    """The exact arguments, as JSON."""
    fingerprint: str
    """Of the arguments; whoever decides sends it back."""
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class MessageView(View):
    """One message of the feed."""

    seq: int
    role: str
    text: str
    status: str
    event_no: int
    created_at: datetime
    turn: int | None = None
    reasoning: str = ""
    added_context: str = ""
    """Excerpts of older messages that came along with a user's message, as the model got them."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_call_id: str = ""
    tool_name: str = ""
    seconds: float | None = None
    """The time that a tool took for its result, or the model for its reasoning; None if unknown."""
    approvals: list[ApprovalView] = field(default_factory=list)
    """The questions about calls in ``tool_calls``, oldest first."""
    token_count: int = 0
    pinned: bool = False
    masked: bool = False
    """The model sees a description of this result, or of the long arguments of these calls."""
    superseded: bool = False
    replaces: bool = False
    """Superseded messages, an earlier text or what followed it, stand right before this one."""
    client_msg_id: str | None = None
    model: str = ""
    """The model that wrote the message; empty for other roles."""
    usage: dict[str, Any] = field(default_factory=dict)
    """For the reply that ended a turn, the turn's usage as in :class:`TurnView`; else empty."""


@dataclass(frozen=True, kw_only=True)
class TurnView(View):
    """One turn. While it is open, ``text`` is the text so far of its reply (message ``seq``)."""

    turn: int
    status: str
    event_no: int
    model: str
    message_seq: int | None
    reply_seq: int | None
    """The turn's first assistant message."""
    seq: int | None = None
    """The assistant message that is being written, or was written last."""
    text: str = ""
    reasoning: str = ""
    started_at: datetime | None = None
    first_token_at: datetime | None = None
    finished_at: datetime | None = None
    error: dict[str, Any] | None = None
    """The error with which the turn ended."""
    retry_notice: dict[str, Any] | None = None
    """Why the reply is late: the error after which the model server is asked again."""
    finish_reason: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    """prompt_tokens, completion_tokens, cached_tokens, cost (US dollars); None if unknown."""
    ruler_tokens: int = 0
    """Tokens of the reply by our own ruler, if the model server does not report them."""

    @property
    def open(self) -> bool:
        """Whether the turn has no terminal status yet."""
        return self.finished_at is None

    def as_json(self) -> dict[str, Any]:
        """All fields; clients read either error under one name, by whether the turn is open."""
        fields = super().as_json()
        notice = fields.pop("retry_notice")
        return {**fields, "error": notice if self.open else fields["error"]}


@dataclass(frozen=True, kw_only=True)
class CompressionView(View):
    """The active summary, and the present run if there is one."""

    running: bool = False
    trigger: str = ""
    locks_input: bool = False
    started_at: datetime | None = None
    messages_under_way: int = 0
    """Messages that the run covers; 0 if unknown."""
    tokens_written: int = 0
    """Tokens that the run has written, as far as known."""
    part: int = 1
    """Number of the part being written, from 1."""
    parts: int = 1
    part_first_seq: int = 0
    part_through_seq: int = 0
    """First and last message of this part; 0 if unknown."""
    seconds_left: int | None = None
    """Estimate until the run is done; None if there is none."""
    lines: list[str] = field(default_factory=list)
    """The newest lines of the part that was finished last, as far as known."""
    interrupted: bool = False
    """The last run was requested by the owner and ended with its process."""
    version: int = 0
    boundary: int = 0
    """``seq`` of the last message that the summary stands for; 0 for none."""
    summary: str = ""
    """Rendered Markdown of the active summary."""
    made_by: str = ""
    """The trigger of the active version; empty if there is none."""
    compressed_at: datetime | None = None
    message_count: int = 0
    """Messages that the active summary stands for."""
    tokens_before: int = 0
    tokens_after: int = 0
    model: str = ""
    edited: bool = False
    """A person edited the summary after the model wrote it."""
    degraded: bool = False
    extracted: list[dict[str, Any]] = field(default_factory=list)
    """The parts that an extract wrote: part, parts, first_seq, through_seq, reason of each."""
    can_undo: bool = False
    undoes: str = ""
    """The trigger of the version that Undo takes back."""
    can_redo: bool = False
    redoes: str = ""
    """The trigger of the version that Redo brings back."""
    truncated_through: int = 0
    truncated_count: int = 0
    """Messages after the boundary that the model does not see."""
    truncated_tokens: int = 0
    """Ruler tokens of these messages."""
    truncated_because: str = ""
    """The reason, as the end of a sentence."""
    mask_batch: int = 0
    """The newest batch of masks after the boundary, which can be undone; 0 for none."""
    masked_seqs: list[int] = field(default_factory=list)
    """Its messages that are still live and masked."""
    masked_results: int = 0
    """How many of them are results of tools; the others are calls whose arguments were cut."""
    masked_tokens: int = 0
    """Ruler tokens that their masks free."""
    preview: int = 0
    """The preview that waits to be applied or discarded; 0 for none."""
    preview_current: bool = False
    """It can be applied: the summary has not changed since it was written."""
    preview_messages: int = 0
    """Messages that it would summarise."""
    preview_tokens_before: int = 0
    preview_tokens_after: int = 0
    """Ruler tokens of these messages, and of its text."""
    off: bool = False
    """The conversation is compressed only when its owner asks for it."""


@dataclass(frozen=True, kw_only=True)
class Carried:
    """The part of a summary that came from the conversation that this one continues."""

    code: str = ""
    """Code of that conversation; empty if it was deleted or there is none."""
    lines: frozenset[str] = frozenset()
    """Lines as they were in the summary then; their sources are that conversation's messages."""


#: Share of the budget above which the definitions of tools deserve a warning.
MUCH_FOR_TOOLS = 0.1
#: Share of the budget from which the page warns that the conversation is nearly full.
NEARLY_FULL = 0.9


@dataclass(frozen=True, kw_only=True)
class ContextView(View):
    """Usage of the next request, by part: :func:`chatapp.context.request.tokens_by_part`."""

    model: str
    window: int
    reserve: int
    budget: int
    system: int
    summary: int
    pinned: int
    tail: int
    tools: int = 0
    adjustment: int = 0
    """Tokens by which the model's count differs from the ruler's, in total."""
    total: int
    usage: float
    """Share of the budget."""
    threshold: float
    estimated: bool = False
    """Counted without a tokenizer; shown with ``~``."""
    unavailable: str = ""
    """Why the model cannot be asked, as a sentence: its connection is gone, for instance."""

    @property
    def nearly_full(self) -> bool:
        """Whether a new conversation should be offered before nothing can be sent any more."""
        return self.usage >= NEARLY_FULL

    @property
    def share(self) -> float:
        """Share of the window: the percentage on the screen."""
        return round(self.total / max(1, self.window), 4)

    @property
    def limit(self) -> int:
        """Tokens of a request at which a summary is written."""
        return round(self.threshold * self.budget)

    def as_json(self) -> dict[str, Any]:
        """All fields, and the percentage on the screen as a share."""
        return {**super().as_json(), "share": self.share}

    @property
    def tools_share(self) -> float:
        """Share of the budget that the definitions of the tools offered last take."""
        return self.tools / self.budget

    @property
    def tools_take_much(self) -> bool:
        """Whether that deserves a warning."""
        return self.tools_share > MUCH_FOR_TOOLS


@dataclass(frozen=True, kw_only=True)
class ConversationView(View):
    """The conversation's own figures and settings."""

    code: str
    title: str
    model: str
    event_no: int
    created_at: datetime
    updated_at: datetime
    system_prompt: str = ""
    draft: str = ""
    queued: bool = False
    """The draft is sent when the open turn ends."""
    held: bool = False
    """The draft was queued when its reply was stopped: it waits for a decision."""
    pinned: bool = False
    archived: bool = False
    threshold: float | None = None
    keep_turns: int | None = None
    """Both None: the deployment's default."""
    compression_off: bool = False
    temperature: float | None = None
    reasoning_effort: str = ""
    answer_tokens: int | None = None
    """None and empty, here and in the two fields above: the model's own choice."""
    preview_first: bool = False
    """The owner looks at each summary before it is applied."""
    project: str = ""
    """The slug of its project; empty for none."""

    @property
    def preset(self) -> str:
        """The preset of compression with its settings; see :mod:`compression.planning.presets`."""
        return preset_of(
            Figures(
                threshold=self.threshold,
                keep_turns=self.keep_turns,
                compression_off=self.compression_off,
            )
        )

    @property
    def in_box(self) -> str:
        """The text that the message box begins with: a waiting message is shown above it."""
        return "" if self.queued or self.held else self.draft


@dataclass(frozen=True, kw_only=True)
class ConversationLink(View):
    """One line of the list of conversations."""

    code: str
    title: str
    updated_at: datetime
    pinned: bool = False
    archived: bool = False
    answering: bool = False
    unseen: bool = False
    """A reply has ended since the owner last looked."""
    begun_as: str = ""
    """``branch`` or ``continuation`` if the conversation was made from another one."""
    project: str = ""
    """The slug of its project; empty for none."""
    project_name: str = ""
    colour: str = ""
    """The project's."""
    part: int = 1
    """Its number among the parts that continue one another."""


@dataclass(frozen=True, kw_only=True)
class Origin(View):
    """The conversation that this one branched off or continues."""

    begun_as: str
    """As in :class:`ConversationLink`."""
    code: str
    title: str


@dataclass(frozen=True, kw_only=True)
class PartView(View):
    """The place of a conversation among the parts of a longer one."""

    part: int = 1
    of: str = ""
    """The title of the first part."""
    continued_in: list[str] = field(default_factory=list)
    """Codes of the parts that continue this one."""

    @property
    def previous(self) -> int:
        """The number of the part before this one."""
        return self.part - 1

    @property
    def following(self) -> int:
        """The number of the parts that continue this one."""
        return self.part + 1


@dataclass(frozen=True, kw_only=True)
class PageView(View):
    """Everything the page shows of one conversation, read in one unit of work."""

    conversation: ConversationView
    messages: list[MessageView]
    turn: TurnView | None
    """The open turn."""
    turns: list[TurnView]
    """The ended turns of ``messages`` that are not complete, and the last one."""
    compression: CompressionView
    context: ContextView
    has_older: bool = False
    has_newer: bool = False
    origin: Origin | None = None
    """None if it was made from no other conversation, or that one was deleted."""
    part: PartView = PartView()

    def turn_of(self, seq: int) -> TurnView | None:
        """The ended turn whose last message is ``seq``, if the page has anything to say of it."""
        return next((turn for turn in self.turns if turn.seq == seq), None)
