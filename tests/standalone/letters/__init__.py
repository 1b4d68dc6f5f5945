"""Threads of letters between people and a model."""
