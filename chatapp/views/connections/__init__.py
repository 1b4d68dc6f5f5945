"""The page of connections to model servers, and its commands."""
