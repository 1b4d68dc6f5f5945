"""System checks of the chat."""
