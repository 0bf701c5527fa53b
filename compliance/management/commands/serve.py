"""`manage.py serve`: web server, worker and scheduler, or one of them."""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser
from django.db import connections

from compliance import embedded, processes
from compliance.selectors.health import read_readiness
from compliance.variables import text, whole

EPILOG = """examples:
  manage.py serve                  everything, on http://127.0.0.1:8000
  WRITEGATE_PORT=8080 manage.py serve
  manage.py serve worker           one service, as a container runs it
  manage.py serve --check worker   is it ready? prints what /readyz says; exit code 1 when not
"""
SERVICES = ("web", "worker", "scheduler")
COUNTS = "PROMETHEUS_MULTIPROC_DIR"


class Command(BaseCommand):
    help = "Serve the console and the API, with a worker and a scheduler, until Ctrl-C."
    requires_system_checks = "__all__"

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(
            prog_name, subcommand, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs
        )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("service", nargs="?", choices=SERVICES, help="only this one (all three unless given)")
        parser.add_argument("--host", help="address to listen on (unless given: WRITEGATE_BIND, else 127.0.0.1)")
        parser.add_argument("--port", type=int, help="port to listen on (unless given: WRITEGATE_PORT, else 8000)")
        parser.add_argument("--workers", type=int, help="worker processes (unless given: WRITEGATE_WORKERS, else 2)")
        parser.add_argument("--check", action="store_true", help="start nothing: say whether it is ready")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = [options["service"]] if options["service"] else list(SERVICES)
        if options["check"]:
            self._check(wanted)
            return
        host, port, workers = _stated(options)
        self._refuse_unready_database()
        if "web" in wanted:
            _refuse_taken_port(host, port)
        counts = _share_counts() if "web" in wanted else ""
        known = processes.services(host=host, port=port, worker_processes=workers)
        connections.close_all()
        if options["service"] and not embedded.is_in_use():
            processes.replace_by(known[options["service"]], settings.BASE_DIR)
        address = f"http://{host}:{port}"
        if "web" in wanted:
            self._announce(address)
            threading.Thread(target=self._say_when_ready, args=(address,), daemon=True).start()
        try:
            code = processes.Supervisor([known[name] for name in wanted], settings.BASE_DIR, self._say).run()
        finally:
            if counts:
                shutil.rmtree(counts, ignore_errors=True)
        if code:
            sys.exit(code)
        self._say("stopped")

    def _say(self, line: str) -> None:
        # One write a line, so that lines of several threads never mix.
        self.stdout.write(f"{line}\n", ending="")
        self.stdout.flush()

    def _announce(self, address: str) -> None:
        self._say(f"console   | {address}/admin/")
        self._say(f"API       | {address}/api/docs/")
        self._say(f"health    | {address}/healthz  {address}/readyz")
        self._say("          | Ctrl-C stops everything")

    def _say_when_ready(self, address: str) -> None:
        began = time.monotonic()
        while time.monotonic() - began < 120:
            try:
                with urllib.request.urlopen(f"{address}/readyz", timeout=5):  # noqa: S310  (our own address)
                    self._say(f"ready     | after {time.monotonic() - began:.1f} s")
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)

    def _check(self, wanted: list[str]) -> None:
        needed = {"database", "migrations", *(set(wanted) - {"web"})}
        checks = {name: part for name, part in read_readiness().items() if name in needed}
        self.stdout.write(json.dumps({name: part.as_json() for name, part in checks.items()}))
        if not all(part.ok for part in checks.values()):
            sys.exit(1)

    def _refuse_unready_database(self) -> None:
        found = read_readiness()
        if not found["database"].ok:
            raise CommandError("the database does not answer; check DATABASE_URL")
        # The checks that connect: above all, that no grant or trigger is blind to the role we work as.
        self.check(databases=["default"])
        if not found["migrations"].ok:
            raise CommandError(f"{found['migrations'].problem}: run `manage.py migrate` (or `manage.py quickstart`) first")


def _stated(options: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return address, port and worker processes: as the command line says, else the environment. Raises `CommandError`."""
    host, port, workers = (options[name] for name in ("host", "port", "workers"))
    try:
        return (
            text("WRITEGATE_BIND", "127.0.0.1") if host is None else host,
            whole("WRITEGATE_PORT", 8000) if port is None else port,
            whole("WRITEGATE_WORKERS", 2) if workers is None else workers,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error


def _share_counts() -> str:
    """Name a new directory in which the web server's processes keep what they count, and return it; "" where the operator named one."""
    if os.environ.get(COUNTS):
        return ""
    os.environ[COUNTS] = tempfile.mkdtemp(prefix="writegate-metrics-")
    return os.environ[COUNTS]


def _refuse_taken_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"cannot listen on {host} port {port}: {error.strerror}; choose another with WRITEGATE_PORT"
            ) from None
