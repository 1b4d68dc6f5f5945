"""What to compress and when. Pure: no database, no model."""
