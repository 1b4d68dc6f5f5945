"""Models of several servers behind one client: names, connections, and which request goes where."""
