"""Sentences and labels of the screen, apart from templates."""
