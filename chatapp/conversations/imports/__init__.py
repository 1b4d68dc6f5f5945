"""Imported conversations, and the job that stores each file of them."""
