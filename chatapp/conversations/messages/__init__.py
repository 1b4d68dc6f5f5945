"""The messages of a conversation as pages, requests and exports read them."""
