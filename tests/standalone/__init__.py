"""A second, tiny host of compression: letters in threads. It knows nothing of the chat."""
