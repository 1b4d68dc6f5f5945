"""From text and events to HTML."""
