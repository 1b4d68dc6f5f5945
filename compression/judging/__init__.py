"""Checks that decide whether a summary is good enough to be applied."""
