"""Tools that a model may call: what they are, and how their calls are checked and run."""
