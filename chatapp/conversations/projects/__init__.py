"""Projects: their rows, the lines kept for their conversations, and where lines come from."""
