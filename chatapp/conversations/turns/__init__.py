"""Stored turns: begun, replaced, written by their process, ended; and the limits on them."""
