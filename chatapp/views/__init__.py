"""HTTP: parse, call one function, answer."""
