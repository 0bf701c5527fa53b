#!/usr/bin/env python3
"""Writegate's command line: `python manage.py help` lists the commands."""

import importlib
import os
import sys


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        print("Django is not installed in this Python; run `make setup`, then use .venv/bin/python", file=sys.stderr)
        return 1

    from compliance import connections, embedded, startup, variables

    # Before settings are read: the server decides the addresses, and importing settings must never start a process.
    try:
        startup.prepare(sys.argv)
        importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    except (embedded.CannotStartError, connections.AddressRefusedError, variables.VariableRefusedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        return 130  # as shells have it: ended by Ctrl-C
    return 0


if __name__ == "__main__":
    sys.exit(main())
