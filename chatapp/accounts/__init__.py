"""Signing in: links, limits, password hashing."""
