"""A turn as it is stored: begun, replaced, written by its process, ended; and the limits on it."""
