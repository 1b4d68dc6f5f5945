"""Imported conversations, and the jobs that store imported files."""
