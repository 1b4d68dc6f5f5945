"""Text: its safety, and search terms."""
