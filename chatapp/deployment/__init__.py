"""More than one process: units for systemd, a site for nginx, and both tried out on one machine.

``palimpsest@.service`` and ``palimpsest.target`` are copied as they are; :mod:`.nginx` writes a
site from ``nginx.conf.template``; :mod:`.many` runs processes and nginx without systemd.
"""
