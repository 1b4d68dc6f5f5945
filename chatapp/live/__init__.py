"""Events, the bus that carries them to viewers, and the values that a screen shows."""
