"""Palimpsest, the chat."""
