"""Compression of conversations, a reusable Django app."""
