"""A run of a compression, from its lease to its end."""
