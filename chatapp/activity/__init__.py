"""The activity log: a line of JSON for each model call, its files, its index, and its pages."""
