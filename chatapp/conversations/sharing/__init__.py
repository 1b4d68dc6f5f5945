"""Read-only links to conversations: those of a person, and what a reader of one sees."""
