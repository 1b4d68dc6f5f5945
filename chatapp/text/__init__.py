"""Text that may be stored and shown safely, and search terms."""
