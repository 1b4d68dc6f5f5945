"""Import and export: the formats of files, and their readers and writers."""
