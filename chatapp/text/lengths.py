"""The lengths of short texts, in characters: what columns hold, forms take and imports keep."""

from __future__ import annotations

from typing import Final

#: A conversation's title, on one line.
TITLE_LENGTH: Final = 200
#: A title that nobody typed: the first words, or a model's.
AUTOMATIC_TITLE_LENGTH: Final = 60
#: A name or an id: of a model, a tool, a project, a file.
NAME_LENGTH: Final = 200
#: A conversation's own instructions to the model.
PROMPT_LENGTH: Final = 20_000
