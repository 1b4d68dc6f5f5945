"""Redaction of secrets in summaries: keys, tokens and passwords, found by pattern. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compression.judging.salience import slices

REDACTED = "[redacted]"

_WHOLE = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:[\s\S]{0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----|[\s\S]*)"
    r"|\b(?:sk|pk|rk)[-_](?:proj-|ant-|or-|live_|test_)?[A-Za-z0-9_-]{16,200}"
    r"|\bgh[opsur]_[A-Za-z0-9]{20,255}|\bgithub_pat_[A-Za-z0-9_]{20,255}"
    r"|\bglpat-[A-Za-z0-9_-]{16,64}|\bhf_[A-Za-z0-9]{20,64}|\bxox[abeprs]-[A-Za-z0-9-]{10,200}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,64}|\bya29\.[A-Za-z0-9_-]{20,500}"
    r"|\bnpm_[A-Za-z0-9]{30,64}|\bpypi-[A-Za-z0-9_-]{30,300}|\bSG\.[\w-]{16,64}\.[\w-]{16,128}"
    r"|\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}"
)
_PARTS = (
    # A scheme and its credentials.
    re.compile(r"(\b(?:bearer|basic|token)[ \t]+)([A-Za-z0-9._~+/=-]{12,2000})", re.IGNORECASE),
    # scheme://user:password@host
    re.compile(
        r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}:)((?!\[red)[^\s/@]{1,200})(?=@)",
        re.IGNORECASE,
    ),
    # A name that says secret, and a value.
    re.compile(
        r"((?:password|passwd|passwort|passphrase|secret|api[_-]?key|access[_-]?key"
        r"|auth[_-]?token|access[_-]?token|private[_-]?key)[\w-]{0,20}[\"']?[ \t]{0,3}"
        r"(?:=>|[=:])[ \t]{0,3}[\"']?)"
        r"((?!\[redacted\])[^\s\"',;]{4,500})",
        re.IGNORECASE,
    ),
)

# What each of these patterns finds holds one of these signs, in small letters. Looking for them
# takes a tenth of the time that looking for secrets takes, and most texts hold none.
_SIGNS = (
    (
        *("-----begin", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gho_", "ghp_", "ghs_", "ghu_"),
        *("ghr_", "github_pat_", "glpat-", "hf_", "xox", "akia", "asia", "aiza", "ya29.", "npm_"),
        *("pypi-", "sg.", "eyj"),
    ),
    ("bearer", "basic", "token"),
    ("://",),
    ("pass", "secret", "key", "token"),
)


def redact(text: str) -> tuple[str, int]:
    """The text with every secret replaced by ``[redacted]``, and the number of secrets."""
    # A pattern that ignores case takes long and Kelvin letters for s and k, and a dotless i for i.
    small = text.casefold().replace("ı", "i")
    count = 0
    for pattern, signs in zip((_WHOLE, *_PARTS), _SIGNS, strict=True):
        if any(sign in small for sign in signs):
            text, found = pattern.subn(_without, text)
            count += found
    return text, count


def _without(match: re.Match[str]) -> str:
    """What stands in place of a secret: the words that lead to it stay."""
    return (match[1] if match.re.groups else "") + REDACTED


def redacted(text: str) -> Iterator[str]:
    """The text without its secrets, in slices short enough not to hold up other threads."""
    # A private key is the only secret that can be longer than a line and be cut by a slice.
    whole = redact(text)[0] if "PRIVATE KEY-----" in text else text
    for part in slices(whole):
        yield redact(part)[0]
