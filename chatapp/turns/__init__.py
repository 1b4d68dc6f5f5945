"""Turns, from accepted to finished."""
