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
#: A person's instructions to the model for all conversations, which fit even a small window.
INSTRUCTIONS_LENGTH: Final = 6_000
#: A project's name in addresses and in the file system.
SLUG_LENGTH: Final = 50
#: One line that a project keeps.
LINE_LENGTH: Final = 2_000
#: A project's name, on one line.
PROJECT_NAME_LENGTH: Final = 100
