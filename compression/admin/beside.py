"""What the review screen shows: lines beside their messages, and what came before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.http import HttpRequest

from compression.admin.changes import SummaryChanges
from compression.admin.facts import by_extract, covered, share
from compression.admin.lines import (
    EXCERPT,
    MOST_CHIPS,
    Said,
    ShownLine,
    ShownSection,
    ShownSource,
    citing,
    comes_from,
    not_in,
    role_words,
    wanted,
)
from compression.admin.review import Fact, moment
from compression.ledger.comparison import Comparison, compare
from compression.ledger.ledger import from_json
from compression.ledger.lines import Line, lines_of
from compression.ledger.markdown import format_sources
from compression.types import Section, SummaryStatus

MOST_VERSIONS = 50
MOST_ACTS = 50


class SummaryBeside(SummaryChanges):
    """The context of the review screen."""

    def beside(self, request: HttpRequest, summary: Any) -> dict[str, Any]:
        """Lines, messages, what only these hold, the former version, and who did what."""
        ledger = from_json(summary.ledger, summary.narrative)
        lines = lines_of(ledger)
        may_read = self.may_read_messages(request)
        own = [line for line in lines if not self.elsewhere(summary, line)]
        said = self.said(summary, wanted(own)) if may_read else {}
        if said:
            self.on_messages(request, summary)
        shown = [self._line(line, line in own, said) for line in lines]
        sections = self._sections(lines, shown)
        versions = self._versions(summary)
        active = summary.status == SummaryStatus.ACTIVE
        changeable = self.has_change_permission(request, summary) and active
        compared = self._compared(summary)
        return {
            "reason": self.shown(summary.reason),
            # What only the messages have stands below the lines, to be added from there.
            "audit": self.audit_listings(request, summary, with_missing=False),
            "strip": self._strip(request, summary),
            "sections": sections,
            "sources": self._sources(request, summary, sections, said),
            "may_read": may_read,
            "may_review": self.has_change_permission(request, summary),
            "models": [(one, self.shown(one)) for one in self.models(request, summary)]
            if changeable and summary.through_seq
            else [],
            "headings": [(one.value, self.words("section", one.value)) for one in Section],
            "compared": compared,
            "comparison": [
                {"heading": self.words("section", one.section or ""), "lines": one.lines}
                for one in (compared.sections if compared else ())
            ],
            "versions": versions,
            "acts": self._acts([row.pk for row in versions]),
            "verdict": self.reviewed(summary),
            "verdict_by": self._by(summary),
            "verdict_at": moment(summary.reviewed_at),
            **self._chips(request, summary),
        }

    def _strip(self, request: HttpRequest, summary: Any) -> list[Fact]:
        """What one has to know of a version before reading it; the rest is on its own page."""
        by_person = self.shown(summary.author.get_username()) if summary.author else ""
        page = self.conversation_url(request, summary)
        facts = [
            Fact(label="Status", value=self.became(summary)),
            Fact(label="Cause", value=self.cause(summary)),
            Fact(label="Written by", value=by_person or self.maker(summary) or "the machine"),
            Fact(label="Stands for", value=covered(summary)),
            Fact(label="Details kept", value=self._kept(summary)),
            Fact(label="Made", value=moment(summary.created_at)),
            *([Fact(label="Conversation", value="All of it", url=page)] if page else []),
        ]
        extract = by_extract(summary)
        if extract != "no":
            facts.append(Fact(label="Extract, without a model", value=self.shown(extract)))
        return facts

    def _kept(self, summary: Any) -> str:
        """The share of the details that the version had when it was judged, and what came since."""
        if summary.retention is None:
            return "not known"
        missing = summary.audit.get("missing") if isinstance(summary.audit, Mapping) else ()
        since = len(not_in(missing, "")) - len(not_in(missing, summary.text))
        return share(summary.retention) + (f", and {since:,} added since" if since > 0 else "")

    def _line(self, line: Line, own: bool, said: Mapping[int, Said]) -> ShownLine:
        if line.section is None:
            sources: tuple[str, ...] = ("–".join(str(seq) for seq in line.sources),)
        else:
            sources = tuple(format_sources(line.sources).split(", "))
        return ShownLine(
            key=line.key,
            text=self.shown(line.text),
            raw=line.text,
            sources=tuple(one for one in sources if one),
            seqs=comes_from(line, said) if own else (),
            pinned=line.pinned,
            forgettable=line.section is not None and bool(line.sources) and own,
            elsewhere=not own,
        )

    def _sections(self, lines: Sequence[Line], shown: Sequence[ShownLine]) -> list[ShownSection]:
        found: list[ShownSection] = []
        last: object = ""
        for line, one in zip(lines, shown, strict=True):
            if line.section != last:
                found.append(ShownSection(heading=self.words("section", line.section or "")))
                last = line.section
            found[-1].lines.append(one)
        return found

    def _sources(
        self,
        request: HttpRequest,
        summary: Any,
        sections: Sequence[ShownSection],
        said: Mapping[int, Said],
    ) -> list[ShownSource]:
        lines = citing(sections)
        return [
            ShownSource(
                seq=one.seq,
                role=role_words(one.role),
                text=self.shown(one.text[:EXCERPT]),
                cut=len(one.text) > EXCERPT,
                url=self.message_url(request, summary, one.seq),
                lines=tuple(lines.get(one.seq, ())),
            )
            for one in said.values()
        ]

    def _chips(self, request: HttpRequest, summary: Any) -> dict[str, Any]:
        """Details that only the messages have; nothing without the permission to see them."""
        if not self.may_see_missing(request) or not isinstance(summary.audit, Mapping):
            return {"chips": [], "more_chips": 0}
        found = not_in(summary.audit.get("missing"), summary.text)
        chips = [(one, self.shown(one)) for one in found[:MOST_CHIPS]]
        return {"chips": chips, "more_chips": max(0, len(found) - MOST_CHIPS)}

    def _compared(self, summary: Any) -> Comparison | None:
        """The version compared with the one that it was made on; None if there is no such text."""
        before = self._of_conversation(summary).filter(version=summary.parent, version__gt=0)
        text = before.values_list("text", flat=True).first()
        if not text or not summary.text:
            return None
        found = compare(self.shown(text), self.shown(summary.text))
        return found if found.differs else None

    def _of_conversation(self, summary: Any) -> Any:
        return self.model._default_manager.filter(conversation_id=summary.conversation_id)

    def _versions(self, summary: Any) -> list[Any]:
        """The newest versions and attempts of the conversation, as rows with what the page says."""
        rows = self._of_conversation(summary).exclude(status=SummaryStatus.PARTIAL.value)
        rows = rows.select_related("author", "reviewer").defer(
            "text", "ledger", "narrative", "audit"
        )
        found = list(rows.order_by("-pk")[:MOST_VERSIONS])
        for row in found:
            row.said_cause = self.cause(row)
            row.said_status = self.became(row)
            row.said_maker = (
                self.shown(row.author.get_username()) if row.author else self.maker(row)
            )
            row.said_review = self.reviewed(row)
            row.said_by = self._by(row)
            row.made = moment(row.created_at)
            row.here = row.pk == summary.pk
            row.restorable = row.version > 0 and row.status == SummaryStatus.SUPERSEDED
        return found

    def _by(self, row: Any) -> str:
        """The reviewer of a row, by name."""
        return self.shown(row.reviewer.get_username()) if row.reviewer else ""

    def _acts(self, keys: Sequence[int]) -> list[dict[str, str]]:
        """Who did what in the admin, and when, the newest first."""
        entries = LogEntry.objects.filter(
            content_type=get_content_type_for_model(self.model), object_id__in=map(str, keys)
        )
        return [
            {
                "at": moment(entry.action_time),
                "who": self.shown(entry.user.get_username()),
                "what": self.shown(entry.get_change_message()),
            }
            for entry in entries.select_related("user").order_by("-pk")[:MOST_ACTS]
        ]
