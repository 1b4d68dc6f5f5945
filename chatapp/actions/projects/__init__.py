"""A person's actions on projects and on the lines that they keep."""
