"""A time is told with its zone: whose clock it is cannot be seen otherwise."""

DATETIME_FORMAT = "j M Y, H:i e"
