"""Tools that a model may call while it answers: what they are, and how calls are checked and run."""
