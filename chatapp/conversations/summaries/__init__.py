"""Summaries for the screen: their versions, and the present compression."""
