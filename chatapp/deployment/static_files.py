"""The storage of static files: hashed, compressed, each fetched with one request.

Comments are removed from our scripts and style sheets, and imported parts are put into a sheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from django.contrib.staticfiles.apps import StaticFilesConfig as DjangosConfig
from django.core.files.base import ContentFile, File
from rjsmin import jsmin
from whitenoise.storage import CompressedManifestStaticFilesStorage

OUR_SCRIPTS = "js/"
OUR_SHEETS = "css/"

IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)

#: A comment with the white space before it, or a string, which must stay as it is.
COMMENT = re.compile(r"""("[^"]*"|'[^']*')|\s*/\*.*?\*/""", re.DOTALL)


class StaticFilesConfig(DjangosConfig):
    """Django's own app, without the admin's words of other languages: a fifth of all files.

    Each process keeps the headers of every file that it serves.
    """

    ignore_patterns = (
        *DjangosConfig.ignore_patterns,
        "admin/js/vendor/select2/i18n/[!e]*",
        "admin/js/vendor/select2/i18n/e[!n]*",
    )


class StaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Whitenoise's storage, which also minifies ``static/js`` and joins ``static/css``.

    Comments and white space are a fifth of what a browser would fetch; names are not shortened.
    Browsers would fetch imported parts one by one, and only after the sheet itself.
    """

    def _save(self, name: str, content: File[bytes]) -> str:
        if name.startswith(OUR_SCRIPTS) and name.endswith(".js"):
            content.seek(0)  # It has been read for its hash.
            content = ContentFile(jsmin(content.read().decode()).encode())
        return str(super()._save(name, content))

    def post_process(
        self, paths: dict[str, Any], dry_run: bool = False, **options: Any
    ) -> Iterator[Any]:
        """Hash and compress the collected files, with joined sheets in place of their parts."""
        if not dry_run:
            paths = self._with_whole_sheets(paths)
        yield from super().post_process(paths, dry_run=dry_run, **options)

    def _with_whole_sheets(self, paths: dict[str, Any]) -> dict[str, Any]:
        """The files to serve: joined sheets, from which the hashes are made, without their parts.

        Sheets are joined from their sources each time, since Django copies only changed files, and
        that may be a part alone.
        """
        parts: set[str] = set()
        joined: dict[str, str] = {}

        def text_of(name: str) -> str:
            storage, path = paths[name]
            with storage.open(path) as source:
                text = COMMENT.sub(r"\1", source.read().decode()).strip() + "\n"
            return IMPORT.sub(lambda found: part_of(name, found[1]), text)

        def part_of(name: str, imported: str) -> str:
            part = str(PurePosixPath(name).parent / imported)
            parts.add(part)
            return text_of(part).rstrip("\n")

        for name in paths:
            if name.startswith(OUR_SHEETS) and name.endswith(".css"):
                joined[name] = text_of(name)
        whole = {name: place for name, place in paths.items() if name not in parts}
        for name in joined.keys() & whole.keys():
            Path(self.path(name)).unlink()  # With --link it is the source itself.
            self._save(name, ContentFile(joined[name].encode()))
            whole[name] = (self, name)
        return whole
