"""A turn, from accepted to finished."""
