"""The summary as data: entries, Markdown, and the edits of a person. Pure."""
