"""The exact request, and its tokens."""
