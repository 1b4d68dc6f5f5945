"""Connections to model servers: stored rows, and whom their models are offered to."""
