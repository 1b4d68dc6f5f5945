"""What a conversation must look like, kept beside it by whoever acts on it.

Every message carries a marker (``m1``, ``m2`` …) that nothing else carries, so that each copy of
it that reaches a model can be counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chatapp.context.request import BuiltRequest, ConversationSnapshot
from chatapp.conversations.messages import reading
from chatapp.models import Conversation, Message, Summary
from compression import store
from compression.judging.judge import MOST_SHARE
from compression.judging.standing_rules import KEPT_SHARE, is_standing
from compression.ledger.bounding import HEADINGS
from compression.ledger.ledger import evict
from compression.ledger.markdown import line_of, render
from compression.planning.planner import CAP_SHARE
from compression.ports import TokenCounter
from compression.store import Version
from compression.testing import MARKER
from compression.tokens import CharacterCounter
from compression.types import EntryState, Origin, Section, Trigger

RULE = re.compile(r"Rule r\d+ holds, always\.")
LIFT = re.compile(r"Forget rule (r\d+)")
#: The most tokens of a model that a ruler token is in these tests.
MOST_CALIBRATION = 1.4
PEOPLES = {Trigger.EDIT, Trigger.RESTORE, Trigger.CLEAR}


@dataclass(slots=True)
class Said:
    """One message as it was said."""

    role: str
    text: str
    live: bool = True
    tool: bool = False

    @property
    def marker(self) -> str:
        return MARKER.findall(self.text)[0] if self.text else ""


@dataclass(slots=True)
class Shown:
    """What one version must stand for."""

    markers: list[str]
    boundary: int
    known: Version | None = None


@dataclass(slots=True)
class Oracle:
    """One conversation as it must be."""

    code: str
    messages: dict[int, Said] = field(default_factory=dict)
    versions: dict[int, Shown] = field(default_factory=lambda: {0: Shown([], 0)})
    pinned: set[int] = field(default_factory=set)
    last: tuple[object, tuple[dict[str, Any], ...]] | None = None
    """The last request, and all that may legitimately change its beginning."""
    changes: int = 0
    """Edits and regenerations: each may change a request anywhere."""

    def say(self, seq: int, role: str, text: str, *, tool: bool = False) -> None:
        self.messages[seq] = Said(role, text, tool=tool)

    def supersede(self, from_seq: int) -> None:
        self.changes += 1
        for seq, message in self.messages.items():
            if seq >= from_seq:
                message.live = False

    def live(self, after: int = 0, through: int | None = None) -> list[tuple[int, Said]]:
        return [
            (seq, one)
            for seq, one in sorted(self.messages.items())
            if one.live and seq > after and (through is None or seq <= through)
        ]

    def markers(self, after: int = 0, through: int | None = None) -> list[str]:
        return [one.marker for _, one in self.live(after, through) if one.text]

    # --- what is stored ------------------------------------------------------------------------

    def check_rows(self, row: Conversation) -> None:
        """I3, I12: every message ever stored is there, once, as it was said, live or not."""
        stored = Message.objects.filter(conversation=row).order_by("seq")
        found = {one.seq: (one.role, one.text, one.superseded_at is None) for one in stored}
        assert found == {seq: (one.role, one.text, one.live) for seq, one in self.messages.items()}
        assert list(found) == list(range(1, row.next_seq))

    def check_versions(self, row: Conversation) -> None:
        """I9, I11, I13, I14, I18 of everything that became a version since the last look."""
        for version in reversed(store.versions(row.pk)):
            if version.version not in self.versions:
                self._check_new(version)
        assert row.compression_version == max(self.versions)
        shown = self.versions[row.compression_version]
        assert row.compressed_through == shown.boundary
        assert row.compressed_context == (shown.known.text if shown.known else "")
        active = Summary.objects.filter(conversation=row, status="active")
        assert [one.version for one in active] == ([max(self.versions)] if shown.known else [])
        assert not store.compression_state(row).running

    def _check_new(self, version: Version) -> None:
        parent = self.versions[version.parent]
        if version.trigger is Trigger.CLEAR:
            expected = []
        elif version.trigger is Trigger.RESTORE:
            expected = self.versions[version.restored_from or 0].markers
        elif version.trigger is Trigger.EDIT:
            expected = parent.markers
        else:
            assert version.first_seq > parent.boundary
            assert version.through_seq > parent.boundary
            new = self.markers(parent.boundary, version.through_seq)
            gone = self._left_out(parent.known, version)
            expected = parent.markers + [one for one in new if one not in gone]
            self._check_kept(parent.known, version)
        assert Counter(MARKER.findall(version.text)) == Counter(expected), version
        self.versions[version.version] = Shown(expected, version.through_seq, version)

    def _left_out(self, parent: Version | None, version: Version) -> set[str]:
        """I14: new lines for which there was no room are listed, and there was none."""
        known = {entry.id for entry in parent.ledger.entries} if parent else set()
        left_out = [
            entry
            for entry in version.ledger.entries
            if entry.id not in known
            and entry.state is EntryState.EVICTED
            and MARKER.search(entry.text)
        ]
        if not left_out:
            return set()
        count = CharacterCounter().count
        lasting = HEADINGS + count(render(evict(version.ledger, 0, count)[0]))
        budget = version.audit["accounting"]["tokens_after"] / version.usage_after
        for entry in left_out:
            weak = entry.section is Section.CONSTRAINTS and not is_standing(entry.text)
            share = CAP_SHARE * KEPT_SHARE if weak else MOST_SHARE
            assert lasting + count(line_of(entry)) > share * budget / MOST_CALIBRATION, entry
            assert f"left out, there is no room: {entry.text:.120}" in version.audit["notes"]
        return {marker for entry in left_out for marker in MARKER.findall(entry.text)}

    def _check_kept(self, parent: Version | None, version: Version) -> None:
        """I13, I18: what a person wrote and what the user ruled, from one version to the next."""
        if parent is None:
            return
        after = {entry.id: entry for entry in version.ledger.entries}
        lifted = {
            name
            for _, one in self.live(parent.through_seq, version.through_seq)
            if one.role == "user"
            for name in LIFT.findall(one.text)
        }
        for entry in parent.ledger.entries:
            if entry.origin is Origin.PERSON:
                assert after[entry.id] == entry
            elif entry.section is Section.CONSTRAINTS and entry.state is EntryState.LIVE:
                name = entry.text.split()[1]
                state = after[entry.id].state
                assert state is EntryState.LIVE or (state is EntryState.LIFTED and name in lifted)
                assert (state is EntryState.LIVE) == (entry.text in version.text)
        lines = {line for line in parent.ledger.narrative if line.origin is Origin.PERSON}
        assert lines <= set(version.ledger.narrative)

    # --- what the model is sent ----------------------------------------------------------------

    def check_request(
        self,
        snapshot: ConversationSnapshot,
        request: BuiltRequest,
        *,
        counter: TokenCounter,
        calibration: float,
        fits: bool,
    ) -> None:
        """I8, I14, I15, I16 (when it was made to fit), I18 of one request."""
        shown = self.versions[snapshot.version]
        after = max(shown.boundary, snapshot.truncated_through)
        pins = [
            one.marker
            for seq, one in self.live(through=shown.boundary)
            if seq in self.pinned and one.text
        ]
        system, tail = request.messages[0], request.messages[1:]
        assert Counter(MARKER.findall(system["content"])) == Counter(shown.markers + pins)
        if not request.manifest["shortened"]:
            # A mask may quote the beginning of a result, once, twice or not at all.
            masked = {self.messages[seq].marker for seq in request.manifest["masked"]}
            sent = [one for one in markers_of(tail) if one not in masked]
            expected = [one for one in self.markers(after) if one not in masked]
            assert Counter(sent) == Counter(expected)
        gone = {one.marker for one in self.messages.values() if not one.live and one.text}
        assert not gone & set(markers_of(request.messages))
        for text in self._rules_in_force(shown):
            assert text in system["content"]
        check_form(request.messages)
        if fits:
            assert request.usage.total <= request.usage.budget
            tokens = sum(counter.count(one["content"] or "") for one in request.messages)
            assert tokens * calibration <= request.usage.budget

    def check_prefix(self, key: object, messages: tuple[dict[str, Any], ...]) -> None:
        """I17: unless something in ``key`` changed, this request begins with the last one."""
        key = (key, self.changes)
        if self.last is not None and self.last[0] == key:
            before = self.last[1]
            assert messages[: len(before)] == before
        self.last = (key, messages)

    @staticmethod
    def _rules_in_force(shown: Shown) -> list[str]:
        entries = shown.known.ledger.entries if shown.known else ()
        return [
            entry.text
            for entry in entries
            if entry.section is Section.CONSTRAINTS and entry.state is EntryState.LIVE
        ]

    def branch(self, code: str, seq: int) -> Oracle:
        """What a branch from message ``seq`` must look like."""
        kept = {n: one for n, one in self.versions.items() if one.boundary <= seq}
        return Oracle(
            code=code,
            messages={
                n: Said(one.role, one.text, one.live, one.tool)
                for n, one in self.messages.items()
                if n <= seq
            },
            versions=kept,
            pinned={n for n in self.pinned if n <= seq},
        )


def markers_of(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Every marker in these messages, calls included."""
    return MARKER.findall(json.dumps(list(messages), ensure_ascii=False).replace("\\n", "\n"))


def check_form(messages: tuple[dict[str, Any], ...]) -> None:
    """I15: one system message, then turns that begin with the user; every result has its call."""
    assert [one["role"] for one in messages].count("system") == 1
    assert messages[0]["role"] == "system"
    tail = messages[1:]
    assert not tail or tail[0]["role"] == "user"
    calls: list[str] = []
    spoke = "system"
    for one in tail:
        if one["role"] == "tool":
            assert one["tool_call_id"] in calls
            calls.remove(one["tool_call_id"])
            continue
        assert not calls
        assert one["role"] != spoke or one["role"] == "assistant"
        calls = [call["id"] for call in one.get("tool_calls", [])]
        spoke = one["role"] if not calls else "tool"
    assert not calls


def snapshot_of(code: str) -> ConversationSnapshot:
    """What the next request of a conversation is made of."""
    return reading.snapshot_with_tail(
        Conversation.objects.values_list("pk", flat=True).get(code=code)
    )
