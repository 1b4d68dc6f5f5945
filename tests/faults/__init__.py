"""What breaks around the product, with real processes, and what holds all the same."""
