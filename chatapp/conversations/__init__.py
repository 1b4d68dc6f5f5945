"""Every query and write of the chat's models; the one door where ownership is checked."""
