"""Deployment: Daphne and its limits, and several processes behind nginx.

``palimpsest@.service`` and ``palimpsest.target`` are copied as they are; :mod:`.nginx` writes a
site from ``nginx.conf.template``; :mod:`.many` runs processes and nginx without systemd.
"""
