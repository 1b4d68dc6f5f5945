"""A person's work on a summary: single lines changed, and previews looked at before they apply."""
