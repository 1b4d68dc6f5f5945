"""The summary as data: entries, Markdown, and a person's edit. Pure."""
