"""A run of the machine, from its lease to its end."""
