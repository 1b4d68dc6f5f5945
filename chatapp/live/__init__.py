"""Events, who receives them, and what a screen shows."""
