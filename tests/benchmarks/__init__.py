"""Measurements, each against a control in the same run: one module a case, with ``main()``."""
