"""The summary and what a person does with it."""
