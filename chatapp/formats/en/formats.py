"""Formats for the admin: a time shows its zone, since the reader may be in another one."""

DATETIME_FORMAT = "j M Y, H:i e"
