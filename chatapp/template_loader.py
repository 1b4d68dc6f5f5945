"""The loader of ``templates/``: files laid out for people, sent without their layout.

1. A line break with its indentation is nothing beside an element or a ``{% tag %}``, and one blank
   elsewhere: between words, values and attributes. ``pre`` and ``textarea`` keep theirs.
2. Where a blank shows beside an element or a tag, write it: ``message{{ " " }}``.
3. An attribute that may be missing brings its own, ``{% if answering %} hidden{% endif %}``, or
   stands on a line between the two tags.

``{% include "name" %}`` of a file in the same folder is put in place, so that a part with a name
costs nothing when a page is made. It sees and sets the names of the file around it; one that
includes itself needs an argument. All this is done once a file and process.
"""

from __future__ import annotations

import re

from django.template import Origin, Template, TemplateDoesNotExist
from django.template.loaders import filesystem

#: The blank that is written where a line break would be nothing.
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
#: Elements whose text is meant to the letter.
_VERBATIM = ("<pre", "<textarea", "<script", "<style")
_INCLUDE = re.compile(r"""{%\s*include\s+"([^"]+)"\s*%}""")


class Loader(filesystem.Loader):
    """Django's loader of files, with the rules above."""

    def get_contents(self, origin: Origin) -> str:
        """The file without its layout and with the parts that it includes.

        Raises TemplateSyntaxError, which names the line of the file.
        """
        source = super().get_contents(origin)
        # As it is, since what is compiled in the end has no lines to name.
        Template(source, origin, engine=self.engine)
        return _INCLUDE.sub(lambda found: self._part(found[1]) or found[0], join_lines(source))

    def _part(self, name: str) -> str | None:
        """The contents of a file of ours; None for one that another loader has."""
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
    """What a line break outside of elements is, by what is on either side of it."""
    beside = source.endswith((">", "%}", _BLANK), 0, start)
    beside = beside or source.startswith(("<", "{%", _BLANK), end)
    return "" if beside or start == 0 or end == len(source) else " "
