"""Every query and write of the chat's models, and the one place where ownership is checked."""
