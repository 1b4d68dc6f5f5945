"""The tools that the model of a conversation may call, and the approval of their calls."""
