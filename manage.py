#!/usr/bin/env python
"""Django's command line for Palimpsest."""

import gc
import os
import sys

if __name__ == "__main__":
    # Nothing that is imported becomes garbage; looking for it takes a third of the start. The
    # server looks again once it serves.
    if sys.argv[1:2] == ["serve"]:
        gc.disable()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
