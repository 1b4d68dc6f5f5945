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
        from chatapp.deployment import event_loop

        event_loop.install()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A sentence for whoever wrote the settings; where it was raised helps nobody.
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {error}")
