"""Looking things up among the messages that a model no longer sees: search, tools, excerpts."""
