"""Whether a summary is good enough to be applied. Pure."""
