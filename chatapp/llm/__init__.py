"""The models that answer in the chat: their client, profiles and errors."""
