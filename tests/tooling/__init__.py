"""An app of a server that a test starts: it offers tools of the tests' own."""
