"""The rulers: o200k_base without any network, and an estimate for when it is not available.

One ruler counts for every model; a model's *calibration* translates ruler tokens into its own.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import logging
import lzma
import os
import re
import tempfile
import threading
from importlib import resources
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from compression.ports import TokenCounter

if TYPE_CHECKING:
    import tiktoken

logger = logging.getLogger(__name__)

#: Tokens that a model is assumed to count for one ruler token, until it has reported usage.
FIRST_CALIBRATION = 1.1
LOWEST_CALIBRATION = 0.5
HIGHEST_CALIBRATION = 2.0
#: Weight of the newest report: a few reports settle the calibration, a single odd one does not.
CALIBRATION_WEIGHT = 0.3

PACKED = "o200k_base.tiktoken.xz"
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
#: The name under which tiktoken itself looks for this table, so that a cache can be shared.
CACHE_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"

_LETTERS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
#: The pattern by which o200k_base splits a text before it looks up ranks (see data/NOTICE.txt).
SPLIT_PATTERN = "|".join(
    [
        *(letters + r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?" for letters in _LETTERS),
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)

#: Characters given to the encoder at once, which bounds the cost of a hostile text.
_PIECE = 20_000
#: A run of one character, the worst case for splitting patterns and merges.
_RUN = re.compile(r"(.)\1{4095}", re.DOTALL)


class TiktokenCounter:
    """Counts with o200k_base. Safe to share between threads; special tokens are plain text."""

    def __init__(self) -> None:
        self._encoding = _encoding()

    @property
    def estimated(self) -> bool:
        """Always False: counts are exact on this ruler."""
        return False

    def count(self, text: str) -> int:
        """Ruler tokens of a text; 0 for an empty one.

        A long text is counted in pieces, cut at line ends or spaces where possible, which may
        count one more token for each piece.
        """
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in _pieces(text))


class CharacterCounter:
    """UTF-8 bytes ÷ 3: an estimate that was never too low in four languages."""

    @property
    def estimated(self) -> bool:
        """Always True: there is no table behind the counts."""
        return True

    def count(self, text: str) -> int:
        """Estimated tokens of a text, rounded up; 0 for an empty one."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / 3)


class DefaultCounter:
    """The ruler from the cache or the packed table, or else the estimate.

    It is loaded at first use, which takes a quarter of a second and 40 MB. Call :meth:`load` in a
    thread before an event loop uses it.
    """

    def __init__(self) -> None:
        self._ruler: TokenCounter | None = None

    @property
    def loaded(self) -> bool:
        """Whether the table is loaded, so that counting takes only as long as the text needs."""
        return self._ruler is not None

    def load(self) -> TokenCounter:
        """Load the ruler if necessary, and return it."""
        if self._ruler is None:
            try:
                self._ruler = TiktokenCounter()
            except (OSError, ValueError, lzma.LZMAError) as error:
                logger.warning("The token table could not be read; counts are estimates: %s", error)
                self._ruler = CharacterCounter()
        return self._ruler

    @property
    def estimated(self) -> bool:
        """Whether there was no table to load."""
        return self.load().estimated

    def count(self, text: str) -> int:
        """Ruler tokens of a text; 0 for an empty one."""
        return self.load().count(text)


@functools.cache
def default_counter() -> DefaultCounter:
    """The ruler of this process, made once."""
    return DefaultCounter()


def calibrate(old: float, reported: int, counted: int) -> float:
    """A model's new calibration after a request, smoothed and clamped to 0.5 to 2.

    ``reported`` is the provider's ``prompt_tokens``, ``counted`` our ruler tokens of the same
    request. A report without a usable figure changes nothing.
    """
    if reported <= 0 or counted <= 0:
        return old
    smoothed = old + CALIBRATION_WEIGHT * (reported / counted - old)
    return min(HIGHEST_CALIBRATION, max(LOWEST_CALIBRATION, smoothed))


def _pieces(text: str) -> list[str]:
    """The text in pieces of bounded length, in which no long run of one character is left."""
    if len(text) <= _PIECE and not _RUN.search(text):
        return [text]
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE)
        if end < len(text):
            cut = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            # Before the space, since a token includes the space before its word.
            end = cut if cut > start + _PIECE // 2 else end
        pieces.append(text[start:end])
        start = end
    return pieces


_lock = threading.Lock()


def _encoding() -> tiktoken.Encoding:
    with _lock:
        return _load_encoding()


@functools.cache
def _load_encoding() -> tiktoken.Encoding:
    # Imported late, since it is not needed before the ruler is.
    import tiktoken

    ranks = {}
    for line in _ranks().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    # Python's copy of the ranks takes 30 MB and is needed only to copy the object.
    encoding._mergeable_ranks = {}
    return encoding


def _ranks() -> bytes:
    """The rank table, from the cache if it is there and complete, else unpacked into it."""
    cached = _cache_file()
    try:
        data = cached.read_bytes()
    except OSError:
        data = b""
    if hashlib.sha256(data).hexdigest() == RANKS_SHA256:
        return data
    packed = resources.files("compression").joinpath("data", PACKED)
    data = lzma.decompress(packed.read_bytes())
    if hashlib.sha256(data).hexdigest() != RANKS_SHA256:
        raise ValueError("the packed token table is damaged")
    _store(cached, data)
    return data


def _cache_file() -> Path:
    """The path of the unpacked table: in tiktoken's own cache if set, else in a private folder."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR")
    if named:
        return Path(named) / CACHE_NAME
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.access(home if os.path.isdir(home) else os.path.dirname(home), os.W_OK):
        return Path(home) / "palimpsest" / CACHE_NAME
    return Path(tempfile.gettempdir()) / f"palimpsest-{os.getuid()}" / CACHE_NAME


def _store(path: Path, data: bytes) -> None:
    """Write the whole file or nothing, since another process may be writing it too."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        logger.info("The token table is not cached, so each start unpacks it: %s", error)
