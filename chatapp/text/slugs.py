"""Names for addresses and the file system, made of what a person wrote. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from chatapp.text.lengths import SLUG_LENGTH

#: The folder of what belongs to no project: no project may have this name.
RESERVED: Final = frozenset({"default"})
# Of longer names nothing more is read.
_READ_LENGTH = 400
_NAMED = re.compile(r"(?:HIRAGANA LETTER|KATAKANA LETTER|HANGUL SYLLABLE) (?:SMALL )?([A-Z]{1,7})")
_OTHER = re.compile(r"[^a-z0-9]+")
# The letters that Unicode does not decompose into a Latin one and a mark.
_LATIN = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ħ": "h",
    "ı": "i",
    "ł": "l",
    "ŋ": "n",
    "þ": "th",
    "ŧ": "t",
    "ə": "e",
}
_GREEK = "αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υy φf χch ψps ωo"
_CYRILLIC = (
    "аa бb вv гg дd еe жzh зz иi йi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ъ ыy ь "
    "эe юyu яya єye іi ґg ђdj јj љlj њnj ћc џdz ўu"
)
_LETTERS = _LATIN | {one[0]: one[1:] for one in f"{_GREEK} {_CYRILLIC}".split()}


def slug_of(name: str) -> str:
    """The name in ``a-z0-9_``, at most 50 characters, never empty and never a reserved one.

    Accents are dropped, letters of some other scripts are transliterated, and whatever else stands
    between letters and digits becomes one ``_``.
    """
    folded = unicodedata.normalize("NFC", name[:_READ_LENGTH]).casefold()
    letters = _OTHER.sub("_", "".join(_latin(one) for one in folded)).strip("_")
    slug = letters[:SLUG_LENGTH].strip("_") or "project"
    return numbered(slug, 2) if slug in RESERVED else slug


def numbered(slug: str, number: int) -> str:
    """The slug for another thing of the same name: ``novel_2``."""
    ending = f"_{number}"
    return f"{slug[: SLUG_LENGTH - len(ending)].rstrip('_')}{ending}"


def _latin(letter: str) -> str:
    """A letter in Latin ones, as far as that is known; a mark of its own letter becomes nothing."""
    if letter.isascii():
        return letter
    if letter in _LETTERS:
        return _LETTERS[letter]
    named = _NAMED.match(unicodedata.name(letter, ""))
    if named is not None:
        return named[1].lower()
    parts = unicodedata.normalize("NFKD", letter)
    kept = (one for one in parts if not unicodedata.combining(one))
    return "".join(_LETTERS.get(one, one) for one in kept)
