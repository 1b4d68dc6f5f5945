"""Rendering of texts and events as HTML."""
