"""Models that write summaries well or badly, each in one way; and a conversation to summarise."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compression.summarizers.prompt import PromptSummarizer
from compression.types import Completion
from tests.benchmarks._host import RULER
from tests.fake_scripts import Json, quoted_messages

QUALITIES = ("perfect", "drops lines", "invents", "copies", "contradicts")
EMPTY = ("says nothing", "one word", "unknown ids")
"""Qualities of models whose answers are valid and say nothing; nothing of theirs is applied."""
FACT = re.compile(r"For the record, the (\w+ of \w+) is ([A-Z]{2}-\d+)\.")
RULE = re.compile(r"Always call harbour \d+ by the name \w+, never otherwise\.")
#: What only an inventing or contradicting model ever says.
FORGED = "ZZ-"

_NOTE = re.compile(r"^\[(\d+)\] (\w+): (.*)$", re.M)
_PLACES = ("Malmö", "Bergen", "Odense", "Turku", "Riga", "Tallinn", "Gdansk", "Kiel")
_THINGS = ("berth", "crane", "gate", "depot", "pilot")
_WORDS = tuple(
    re.findall(
        r"\w+",
        "lantern module river ticket orbit garden signal copper window meadow engine quarter "
        "silver market paper bridge winter thunder village library harbour morning barrel anchor",
    )
)


def fact(number: int) -> tuple[str, str]:
    """A sentence with a fact, and the code that tells whether the fact is known."""
    place, thing = _PLACES[number % 8], _THINGS[number // 8]
    code = f"{'KLMNPQRS'[number % 8]}X-{4000 + 37 * number}"
    return f"For the record, the {thing} of {place} is {code}.", code


def rule(number: int) -> str:
    """A rule of the user's; each is another."""
    return f"Always call harbour {number} by the name {_WORDS[number]}, never otherwise."


def prose(tokens: int, chance: random.Random) -> str:
    """About so many ruler tokens of nothing in particular."""
    sentences = []
    for _ in range(max(1, tokens // 11)):
        one, two, three = chance.sample(_WORDS, 3)
        sentences.append(f"The {one} near the {two} was as quiet as a {three}.")
    return " ".join(sentences)


@dataclass(slots=True)
class ScriptedModel:
    """Implements :class:`compression.ports.Complete`: reads the prompt, answers in one quality."""

    quality: str
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        """The delta for the quoted messages, as JSON."""
        text = json.dumps(self._delta(user), ensure_ascii=False)
        return Completion(
            text=text,
            finish_reason="stop",
            model=self.quality,
            prompt_tokens=RULER.count(system) + RULER.count(user),
            completion_tokens=RULER.count(text),
        )

    def _delta(self, user: str) -> Json:
        quoted = quoted_messages({"messages": [{"role": "user", "content": user}]})
        add: list[Json] = []
        for seq, role, text in quoted:
            if role == "user":
                add += [_entry("constraints", one, seq) for one in RULE.findall(text)]
            add += [_entry("context", f"{a} = {b}", seq) for a, b in FACT.findall(text)]
        delta: Json = {
            "narrative": f"They talked about harbours, {', '.join(_topics(quoted))}.",
            "add": add,
            "resolve": [],
            "supersede": [],
            "lift": [],
        }
        if self.quality in EMPTY:
            narrative = {"says nothing": "ok", "one word": "Conversation."}.get(self.quality, "")
            unknown = [90_001, 90_002] if self.quality == "unknown ids" else []
            return delta | {"narrative": narrative, "add": [], "resolve": unknown}
        if quoted:
            self._spoil(delta, quoted, _NOTE.findall(user))
        return delta

    def _spoil(
        self, delta: Json, quoted: list[tuple[int, str, str]], notes: list[tuple[str, str, str]]
    ) -> None:
        last = quoted[-1][0]
        if self.quality == "drops lines":
            delta["add"] = [one for one in delta["add"] if self.chance.random() < 0.7]
        elif self.quality == "invents":
            delta["add"] += [
                _entry("context", f"depot of Riga = {FORGED}{last}", last),
                _entry("constraints", f"Never speak of {FORGED}{last}.", quoted[0][0]),
            ]
        elif self.quality == "copies":
            delta["add"] += [_entry("decisions", text[:1500], seq) for seq, _, text in quoted]
        elif self.quality == "contradicts":
            asked = [seq for seq, role, _ in quoted if role == "user"]
            for id_, section, text in notes:
                if section == "constraints" and asked:
                    delta["lift"].append({"id": int(id_), "source": asked[-1]})
                elif section == "context":
                    wrong = f"{text.split('=')[0].strip()} = {FORGED}{id_}"
                    delta["supersede"].append({"id": int(id_), "text": wrong, "sources": [last]})


def _topics(quoted: list[tuple[int, str, str]]) -> list[str]:
    """Three things that the messages speak of."""
    said = " ".join(text[:400] for _, _, text in quoted)
    return [word for word in _WORDS if word in said][:3]


def _entry(section: str, text: str, seq: int) -> Json:
    return {"section": section, "text": text, "sources": [seq]}


def summarizer(quality: str, window: int) -> PromptSummarizer:
    """The product's summariser on such a model."""
    return PromptSummarizer(
        ScriptedModel(quality),
        RULER,
        window=window,
        max_output_tokens=window // 4,
        label=quality,
        nonce=lambda: "0a1b2c3d",
    )
