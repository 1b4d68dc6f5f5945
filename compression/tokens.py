"""The rulers: o200k_base without any network, and an estimate for when it cannot be had.

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

#: What a model is assumed to count for one ruler token before it has reported any usage.
FIRST_CALIBRATION = 1.1
LOWEST_CALIBRATION = 0.5
HIGHEST_CALIBRATION = 2.0
#: Weight of the newest report: a few reports settle it, and a single odd one does not.
CALIBRATION_WEIGHT = 0.3

PACKED = "o200k_base.tiktoken.xz"
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
#: The name under which tiktoken itself looks for this table, so that a cache can be shared.
CACHE_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"

_LETTERS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
#: How o200k_base cuts a text before it looks up ranks (see data/NOTICE.txt).
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

#: Characters given to the encoder at once, which bounds what a hostile text can cost.
_PIECE = 20_000
#: A run of one character, for which splitting patterns and merges are at their worst.
_RUN = re.compile(r"(.)\1{4095}", re.DOTALL)


class TiktokenCounter:
    """Counts with o200k_base. Safe to share between threads; special tokens are plain text."""

    def __init__(self) -> None:
        self._encoding = _encoding()

    @property
    def estimated(self) -> bool:
        """Exact on its own ruler."""
        return False

    def count(self, text: str) -> int:
        """Ruler tokens of a text; 0 for the empty one.

        A long text is counted in pieces cut at line ends or spaces where there are any, which
        may count one token more a piece.
        """
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in _pieces(text))


class CharacterCounter:
    """UTF-8 bytes divided by 3: never undercounted in four languages, marked as an estimate."""

    @property
    def estimated(self) -> bool:
        """Always: there is no table behind it."""
        return True

    def count(self, text: str) -> int:
        """Estimated tokens of a text, rounded up; 0 for the empty one."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / 3)


class DefaultCounter:
    """The ruler from the cache or the packed table, else the estimate.

    It is loaded when it is first asked, which takes a quarter of a second and 40 MB: an event loop
    that is about to ask has :meth:`load` called in a thread before.
    """

    def __init__(self) -> None:
        self._ruler: TokenCounter | None = None

    @property
    def loaded(self) -> bool:
        """Whether an answer takes no longer than the text needs."""
        return self._ruler is not None

    def load(self) -> TokenCounter:
        """The ruler itself."""
        if self._ruler is None:
            try:
                self._ruler = TiktokenCounter()
            except (OSError, ValueError, lzma.LZMAError) as error:
                logger.warning("The token table could not be read; counts are estimates: %s", error)
                self._ruler = CharacterCounter()
        return self._ruler

    @property
    def estimated(self) -> bool:
        """Whether there was no table to be read."""
        return self.load().estimated

    def count(self, text: str) -> int:
        """Ruler tokens of a text; 0 for the empty one."""
        return self.load().count(text)


@functools.cache
def default_counter() -> DefaultCounter:
    """The ruler of this process. Made once."""
    return DefaultCounter()


def calibrate(old: float, reported: int, counted: int) -> float:
    """A model's new calibration after a request.

    ``reported`` is the provider's ``prompt_tokens``, ``counted`` our ruler tokens of the same
    request. Smoothed, and clamped to 0.5 to 2; reports that say nothing leave it as it was.
    """
    if reported <= 0 or counted <= 0:
        return old
    smoothed = old + CALIBRATION_WEIGHT * (reported / counted - old)
    return min(HIGHEST_CALIBRATION, max(LOWEST_CALIBRATION, smoothed))


def _pieces(text: str) -> list[str]:
    """The text cut so that no piece is long and no run of one character goes on for ever."""
    if len(text) <= _PIECE and not _RUN.search(text):
        return [text]
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE)
        if end < len(text):
            cut = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            # Before the space, since a token carries the space in front of its word.
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
    # Not needed before the ruler is.
    import tiktoken

    ranks = {}
    for line in _ranks().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    # Its Python copy of the ranks takes 30 MB and serves only for copying the object.
    encoding._mergeable_ranks = {}
    return encoding


def _ranks() -> bytes:
    """The rank table: from the cache when it is there and whole, else unpacked into it."""
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
    """Where the unpacked table is kept: tiktoken's own cache if named, else a private folder."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR")
    if named:
        return Path(named) / CACHE_NAME
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.access(home if os.path.isdir(home) else os.path.dirname(home), os.W_OK):
        return Path(home) / "palimpsest" / CACHE_NAME
    return Path(tempfile.gettempdir()) / f"palimpsest-{os.getuid()}" / CACHE_NAME


def _store(path: Path, data: bytes) -> None:
    """Write whole or not at all: another process may be doing the same."""
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
