"""Summaries as the person sees them: their versions, and the compression that is under way."""
