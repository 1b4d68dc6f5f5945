"""The index of the activity log: storing, listing, totals, and what has to be removed."""
