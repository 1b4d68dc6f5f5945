"""HTTP: views that parse a request, call one function, and answer."""
