"""Templates stay files that a person can edit: short lines, one element each, parts with names.

The rules hold for the chat's folder and for compression's, which any host loads in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ROOT / "templates"
FOLDERS = (OURS, ROOT / "compression" / "templates")
FILES = {
    path.relative_to(ROOT).as_posix(): path
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.html"))
}
LINE = 120
LINES = 130
STEP = 2
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
BLOCKS = frozenset({"block", "for", "if", "spaceless", "with"})
CLAUSES = frozenset({"elif", "else", "empty"})
PIECE = re.compile(
    r"{%\s*(?P<tag>\w+).*?%}|{{.*?}}|{#.*?#}|(?P<start><(?P<name>[a-zA-Z][\w-]*))|"
    r"</(?P<end>[a-zA-Z][\w-]*)>|(?P<close>/?>)|(?P<quote>[\"'])"
)
VERBATIM = re.compile(r"(<(pre|textarea)\b[^>]*>)(.*?)(</\2>)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Line:
    number: int
    indent: int
    text: str


def lines_of(path: Path) -> list[Line]:
    """The lines of a template that are laid out: not what is meant to the letter."""
    text = VERBATIM.sub(
        lambda found: found[1] + found[4] + "\n" * found[3].count("\n"), path.read_text()
    )
    return [
        Line(number=number, indent=len(line) - len(line.lstrip(" ")), text=line.strip())
        for number, line in enumerate(text.split("\n"), start=1)
    ]


def misplaced(lines: list[Line]) -> Iterator[str]:
    """Lines that do not stand where what they lie in puts them."""
    depth: list[str] = []
    inside = quote = ""
    for line in lines:
        before, leading = len(depth) + bool(inside), not quote
        closes = 0
        for found in PIECE.finditer(line.text):
            first = not line.text[: found.start()].strip()
            if found["quote"]:
                quote = "" if quote == found[0] else quote or (found[0] if inside else "")
            elif quote:
                continue
            elif found["start"]:
                inside = found["name"]
            elif found["close"] and inside:
                if found[0] == ">" and inside not in VOID:
                    depth.append(inside)
                inside, closes = "", closes or first
            elif found["end"]:
                if not depth or depth.pop() != found["end"]:
                    yield f"{line.number}: </{found['end']}> closes another"
                closes = closes or first
            elif found["tag"] in CLAUSES:
                closes = closes or first
            elif found["tag"] in BLOCKS:
                depth.append(found["tag"])
            elif (found["tag"] or "").startswith("end"):
                if not depth or f"end{depth.pop()}" != found["tag"]:
                    yield f"{line.number}: {found['tag']} closes another"
                closes = closes or first
        if line.text and leading and line.indent != STEP * (before - bool(closes)):
            yield f"{line.number}: {line.indent} blanks, not {STEP * (before - bool(closes))}"


def lost(one: Line, other: Line) -> bool:
    """Whether words and an element of two lines are one word on the screen, by oversight."""
    inline = r"(a|abbr|code|em|kbd|mark|q|strong|time)\b"
    return bool(
        re.search(r"(\w|[,.:;]|}})$", one.text)
        and re.match(rf"<{inline}", other.text)
        and not one.text.endswith('{{ " " }}')
    ) or bool(re.search(rf"</{inline}>$", one.text) and re.match(r"\w|{{ [^\"]", other.text))


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("name", FILES)
def test_a_template_is_laid_out(name: str) -> None:
    """Breaks when: two elements stand on one line, or a line where it does not belong."""
    lines = lines_of(FILES[name])
    wrong = [
        f"{number}: {len(line)} characters"
        for number, line in enumerate(FILES[name].read_text().split("\n"), start=1)
        if len(line) > LINE
    ]
    wrong += [
        f"{one.number}: more than one element"
        for one in lines
        if len(re.findall(r"<[a-z]", re.sub(r"{[%{#].*?[%}#]}", "", one.text))) > 1
    ]
    wrong += misplaced(lines)
    if FILES[name].is_relative_to(OURS):
        # A host's own loader keeps the line break, and that is a blank.
        wrong += [
            f"{one.number}: no blank before what follows"
            for one, other in pairwise(lines)
            if lost(one, other)
        ]
    if len(lines) > LINES:
        wrong.append(f"{len(lines)} lines: it has more than one job")
    assert not wrong, "\n".join(f"{name}:{one}" for one in wrong)


def test_a_part_says_what_it_is() -> None:
    silent = [
        name
        for name in FILES
        if name.startswith("templates/partials/") and not FILES[name].read_text().startswith("{# ")
    ]
    assert not silent


def test_every_part_is_used_and_every_part_that_is_used_is_there() -> None:
    """Breaks when: a file is left over, or an include names none."""
    sources = [path.read_text() for path in FILES.values()]
    sources += [path.read_text() for path in (ROOT / "chatapp").rglob("*.py")]
    used = {name for text in sources for name in re.findall(r'"(partials/[\w/]+\.html)"', text)}
    parts = {path.relative_to(OURS).as_posix() for path in (OURS / "partials").rglob("*.html")}
    assert used == parts


def test_each_slash_command_has_its_line_in_the_help() -> None:
    """Completion offers what stands there, and the script runs what it knows.

    Breaks when: a command is added to, or renamed in, one of the two.
    """
    script = (ROOT / "static" / "js" / "slash.js").read_text()
    commands = script.partition("const COMMANDS = {\n")[2].partition("\n};")[0]
    known = re.findall(r"^  ([a-z]+): {", commands, re.MULTILINE)
    help_ = (OURS / "partials" / "help.html").read_text()
    listed = re.findall(r'<dt data-command="([a-z]+)">/([a-z]+)', help_)
    assert len(known) > 5
    assert listed == [(name, name) for name in known]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<p>\n  one\n</p>", False),
        ("<p>\none\n</p>", True),
        ("<p>\n  one\n  </p>", True),
        ("<a\n  b\n>\n  c\n</a>", False),
        ("<a\n  b\n  >\n  c\n</a>", True),
        ("{% if a %}\n  b\n{% else %}\n  c\n{% endif %}", False),
        ("{% if a %}\n  b\n  {% else %}\n  c\n{% endif %}", True),
        ("{% if a %}\n  <p>\n{% endif %}", True),
        ("<img\n  alt='one\n    two'\n>\nthree", False),
    ],
)
def test_what_is_misplaced(text: str, wrong: bool) -> None:
    lines = [
        Line(number=number, indent=len(line) - len(line.lstrip()), text=line.strip())
        for number, line in enumerate(text.split("\n"), start=1)
    ]
    assert bool(list(misplaced(lines))) == wrong


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        ("Read the", "<a href='x'>page</a>", True),
        ("Read {{ what }}", "<q>", True),
        ("</a>", "and more", True),
        ("</a>", "{{ more }}", True),
        ('Read the{{ " " }}', "<a href='x'>page</a>", False),
        ("</a>", '{{ " " }}and more', False),
        ("</a>", ", and more", False),
        ("<li>", "<a href='x'>page</a>", False),
        ("{% endif %}", "<q>", False),
    ],
)
def test_what_is_lost(one: str, other: str, wrong: bool) -> None:
    assert lost(Line(number=1, indent=0, text=one), Line(number=2, indent=0, text=other)) == wrong
