"""The models behind the chat."""
