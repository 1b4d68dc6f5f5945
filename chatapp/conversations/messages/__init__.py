"""The messages of a conversation, for pages, requests and exports."""
