"""The loader of ``templates/``: files are laid out for people and sent without that layout.

1. A line break with its indentation becomes nothing beside an element or a ``{% tag %}``, and one
   blank elsewhere: between words, values and attributes. ``pre`` and ``textarea`` keep theirs.
2. Where a blank is needed beside an element or a tag, write it: ``message{{ " " }}``.
3. An optional attribute brings its own blank, ``{% if answering %} hidden{% endif %}``, or stands
   on a line between the two tags.

``{% include "name" %}`` of a file in the same folder is replaced by its text, so that named parts
cost nothing when a page is rendered. Such a part shares the variables of the file around it; a file
that includes itself needs an argument. All this is done once per file and process.
"""

from __future__ import annotations

import re

from django.template import Origin, Template, TemplateDoesNotExist
from django.template.loaders import filesystem

#: Writes a blank where a line break would become nothing.
_BLANK = '{{ " " }}'
_COMMENT = re.compile(r"{#.*?#}|{%\s*comment\b.*?%}(?s:.*?){%\s*endcomment\s*%}")
_PIECE = re.compile(
    r"(?P<django>{%.*?%}|{{.*?}})"
    r"|(?P<line_break>[ \t\r]*\n[ \t\r\n]*)"
    r"|(?P<start><[a-zA-Z][\w-]*)"
    r"|(?P<end></[a-zA-Z][\w-]*)"
    r"|(?P<mark>[>\"'])"
    r"|[^{<>\"'\s]+|\s|."
)
#: Elements whose text is kept unchanged.
_VERBATIM = ("<pre", "<textarea", "<script", "<style")
_INCLUDE = re.compile(r"""{%\s*include\s+"([^"]+)"\s*%}""")


class Loader(filesystem.Loader):
    """Django's loader of files, with the rules above."""

    def get_contents(self, origin: Origin) -> str:
        """The file without its layout, with included parts put in.

        Raises TemplateSyntaxError with the line of the file.
        """
        source = super().get_contents(origin)
        # Compiled as it is, for errors with line numbers; the joined text has no lines.
        Template(source, origin, engine=self.engine)
        return _INCLUDE.sub(lambda found: self._part(found[1]) or found[0], join_lines(source))

    def _part(self, name: str) -> str | None:
        """The contents of one of our files; None for a file of another loader."""
        for origin in self.get_template_sources(name):
            try:
                return self.get_contents(origin)
            except TemplateDoesNotExist:
                continue
        return None


def join_lines(source: str) -> str:
    """``source`` without comments and layout."""
    source = _COMMENT.sub("", source)
    joined: list[str] = []
    element = quote = verbatim = ""
    for found in _PIECE.finditer(source):
        piece, kind = found[0], found.lastgroup
        if kind == "line_break":
            if quote:
                piece = " "
            elif element:
                piece = "" if source.startswith((">", "/>", "{%"), found.end()) else " "
            elif not verbatim:
                piece = _between(source, found.start(), found.end())
        elif quote:
            quote = "" if piece == quote else quote
        elif element:
            if piece == ">":
                verbatim, element = element if element in _VERBATIM else "", ""
            elif kind == "mark":
                quote = piece
        elif kind == "start" and not verbatim:
            element = piece.lower()
        elif kind == "end" and piece.lower() == verbatim.replace("<", "</"):
            verbatim = ""
        joined.append(piece)
    return "".join(joined).replace(_BLANK, " ")


def _between(source: str, start: int, end: int) -> str:
    """The replacement of a line break outside of elements, from what is on either side."""
    beside = source.endswith((">", "%}", _BLANK), 0, start)
    beside = beside or source.startswith(("<", "{%", _BLANK), end)
    return "" if beside or start == 0 or end == len(source) else " "
