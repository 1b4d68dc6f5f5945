"""Plan and policy: which messages to compress, and when. Pure: no database, no model."""
