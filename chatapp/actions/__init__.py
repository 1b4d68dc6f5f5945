"""The actions a person can take: one way in for every door."""
