"""What a person can do: one way in for every door."""
