"""Ways to write a summary: by a model, or by extraction."""
