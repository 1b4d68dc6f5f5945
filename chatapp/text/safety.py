"""Safe storing and showing of text from anyone.

PostgreSQL refuses NUL in text, and a lone surrogate cannot be encoded as UTF-8. A person's input
with either is refused with the sentences of :func:`problems`; a model's output is repaired by
:func:`clean`.

Invisible characters can carry a sentence to a model that no reader sees, and direction marks can
make "exe.txt" of "txt.exe". Text of a person or a model is stored unchanged, and :func:`visible`
shows such characters as marks. Text from elsewhere (an import, a tool's result) is stored without
them, by :func:`without_hidden`. Where a script or an emoji needs such a character, it stays.
"""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# Invisible: Unicode's Default_Ignorable_Code_Point, and the format characters (Cf), except those
# that enclose or number what follows them, such as Arabic's signs for numbers.
_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_hidden_run = re.compile(f"[{_HIDDEN}]+")
_has_a_look = re.compile(f"[^{_HIDDEN}]")
_deceiving = re.compile(
    f"[{_HIDDEN}]+|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]",
)

# The characters around which hidden ones are needed.
_EMOJI = "\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9\U00020000-\U0003347f"
_RIGHT_TO_LEFT = "\u05be-\u061b\u061d-\u07ff\u0840-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# From Arabic to Khmer and Mongolian, with their marks: scripts whose letters join.
_JOINING = "\u0600-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
_WITHOUT_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff"
_PUNCTUATION = r"[ !-/:-@\[-`{-~]"
# The only flags that Unicode makes from tags: England, Scotland, Wales.
_FLAGS = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"
    for name in ("gbeng", "gbsct", "gbwls")
)
_NEEDED = (
    # Emoji: a variant, and several that form one.
    rf"(?<=[{_EMOJI}])[\ufe0e\ufe0f]",
    r"(?<=[#*0-9])\ufe0f(?=\u20e3)",
    rf"(?<=[{_EMOJI}])\ufe0f?\u200d(?=[{_EMOJI}])",
    rf"(?<=\U0001f3f4)(?:{_FLAGS})",
    # Letters that join or are kept apart, words that may be divided, and their soft hyphens.
    rf"(?<=[{_JOINING}])[\u200c\u200d]",
    rf"(?<=[{_WITHOUT_SPACES}])\u200b(?=[{_WITHOUT_SPACES}])",
    r"(?<=[^\W\d_])\xad(?=[^\W\d_])",
    # Direction marks beside words written from right to left.
    rf"(?:(?<=[{_RIGHT_TO_LEFT}])|(?<=[{_RIGHT_TO_LEFT}]{_PUNCTUATION})"
    rf"|(?<=[{_RIGHT_TO_LEFT}]{_PUNCTUATION}{_PUNCTUATION}))[\u061c\u200e\u200f]",
    rf"[\u061c\u200e\u200f](?={_PUNCTUATION}{{0,2}}[{_RIGHT_TO_LEFT}])",
    # Variants of characters, as Unicode lists them by block.
    rf"(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef]",
    r"(?<=[\u2229-\u2aff\u3001\u3002\uff01-\uff1f0])[\ufe00\ufe01]",
    r"(?<=[\u1000-\u109f\ua840-\ua877\uaa60-\uaa7f])\ufe00",
    r"(?<=[\u1800-\u18aa])(?:[\u180b-\u180d\u180f]\u180e?|\u180e)",
    # Old Korean syllables without a consonant or a vowel.
    r"\u115f(?=[\u1161-\u11a7\ud7b0-\ud7c6])",
    r"(?:(?<=[\u1100-\u115e\ua960-\ua97c])|\u115f)\u1160(?=[\u11a8-\u11ff\ud7cb-\ud7fb])",
    r"(?<=[\u1100-\u115e\ua960-\ua97c])\u1160",
)
#: Characters before and after a hidden one that decide whether it is needed; the most are for
#: direction marks.
LOOKED_AT = 3
_undecided = re.compile(
    rf"(?<![{_HIDDEN}])[{_HIDDEN}]++(?:[^{_HIDDEN}][{_HIDDEN}]*+){{0,{LOOKED_AT - 1}}}+\Z"
)
_needed = re.compile(f"(?:{'|'.join(_NEEDED)})(?![{_HIDDEN}])")


def problems(text: str) -> list[str]:
    """The reasons why ``text`` cannot be stored, one sentence each; empty if it can."""
    found = []
    if "\x00" in text:
        found.append("The text contains a NUL character, which cannot be stored.")
    if _SURROGATES.search(text):
        found.append(
            "The text contains half of a character (a lone surrogate), which cannot be stored."
        )
    return found


def clean(text: str) -> str:
    """``text`` with NUL and lone surrogates replaced by U+FFFD: storable, and of equal length."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def hidden_runs(text: str) -> int:
    """The most marks that :func:`visible` may make in ``text``."""
    return sum(1 for _ in _hidden_run.finditer(text))


def without_hidden(text: str) -> str:
    """``text`` without the characters that :func:`visible` would show as marks in brackets."""
    return _hidden_run.sub(lambda match: match[0] if _is_needed(match) else "", text)


def visible(text: str) -> str:
    """``text`` for display, so that nothing in it hides or changes the line around it.

    A run of invisible characters becomes the code of the first and the number of the others, in
    brackets. Control characters (ANSI escapes begin with one) become their pictures, lone
    surrogates U+FFFD. Newlines, tabs, and what a script or an emoji needs stay.
    """
    return _deceiving.sub(_shown, text)


def visible_part(text: str, begin: int, end: int) -> str:
    """The part of ``visible(text)`` for the characters from ``begin`` to ``end``.

    Both must be 0, the length of ``text``, or a result of :func:`settled` for a beginning of it.
    """
    parts = []
    for match in _deceiving.finditer(text, begin, end):
        parts += [text[begin : match.start()], _shown(match)]
        begin = match.end()
    return "".join([*parts, text[begin:end]])


def has_a_look(text: str) -> bool:
    """Whether ``text`` has any character that is not invisible; white space counts."""
    return _has_a_look.search(text) is not None


def settled(text: str) -> int:
    """The number of characters of an unfinished text whose display is final.

    That is all of them, unless a hidden character is so near the end that what follows decides.
    """
    found = _undecided.search(text)
    return found.start() if found else len(text)


def _is_needed(match: re.Match[str]) -> bool:
    found = _needed.match(match.string, match.start())
    return found is not None and found.end() == match.end()


def _shown(match: re.Match[str]) -> str:
    run = match[0]
    code = ord(run[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return REPLACEMENT
    if _is_needed(match):
        return run
    more = f" and {len(run) - 1:,} more" if len(run) > 1 else ""
    return f"\u27e6U+{code:04X}{more}\u27e7"
