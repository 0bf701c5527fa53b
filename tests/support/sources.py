"""A source on the loopback address that answers as it is told, and schedules that ask it."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service_transaction
from evaluations.models import RefreshRun, Source, SourceSchedule
from evaluations.services.refresh import refresh_source
from evaluations.services.schedules import ScheduleWish, set_schedule
from evaluations.services.sources import apply_register_source
from tests.support import world
from tests.support.certificates import make_certificate

LOOPBACK = "127.0.0.1"
HEADER = "subject,provenance,metric,benchmark,version,value,unit,run_status,run_ended_at\n"
ROW = "{name},run_log,infeasible_refusal_rate,bench,1,{value},percent,complete,2026-11-01T00:00:00Z\n"


def table(**values: object) -> bytes:
    """Return a CSV of one rate a model, without its source."""
    return (HEADER + "".join(ROW.format(name=name, value=value) for name, value in values.items())).encode()


@dataclass
class Reply:
    """One answer. `cut` is how many bytes of the body are sent before the wire is closed; `drip` sends one byte at a time."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    drip: float = 0.0
    length: bool = True


@dataclass
class SourceServer:
    """Answers each GET of a path with the next of its replies, and with the last one from then on; honours ETags by itself."""

    port: int = 0
    scheme: str = "http"
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    heard: list[tuple[str, dict[str, str], float]] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def url(self, path: str = "/results.csv") -> str:
        return f"{self.scheme}://{self.place}{path}"

    def say(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def asked(self, path: str) -> int:
        return sum(1 for each, *_ in self.heard if each == path)


@contextmanager
def source_server(context: ssl.SSLContext | None = None, address: str = LOOPBACK) -> Iterator[SourceServer]:
    """Serve on a free port."""
    served = SourceServer(scheme="https" if context else "http")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.heard.append((self.path, dict(self.headers.items()), time.monotonic()))
            replies = served.replies.get(self.path) or [Reply(status=404)]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            tag = reply.headers.get("ETag")
            if tag is not None and self.headers.get("If-None-Match") == tag:
                reply = Reply(status=304, headers=reply.headers, length=False)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.length and "Transfer-Encoding" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                self._send(reply)
            except OSError:
                return

        def _send(self, reply: Reply) -> None:
            if not reply.drip:
                self.wfile.write(reply.body[: reply.cut])
                return
            for place in range(len(reply.body)):
                self.wfile.write(reply.body[place : place + 1])
                self.wfile.flush()
                time.sleep(reply.drip)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A visitor who hangs up is what some tests are about."""

    with Server((address, 0), Handler) as server:
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        served.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


def source(key: str = "lab", *, title: str = "Lab") -> Source:
    """Return the source of that key, registered where it is not there."""
    with service_transaction("test"):
        return apply_register_source(actor=world.ACTOR, key=key, title=title)


def scheduled(address: str, *, key: str = "lab", actor: Actor = world.ACTOR, **wish: Any) -> SourceSchedule:
    """Return the schedule of a source that is refreshed from an address, due now."""
    stated = {"connector": "http", "interval_minutes": 60, **wish}
    return set_schedule(actor=actor, source=source(key), wish=ScheduleWish(address=address, **stated))


def run(schedule: SourceSchedule, **how: Any) -> RefreshRun:
    """Refresh now, as somebody at the command line does."""
    found = refresh_source(schedule.source_id, asked_by=world.ACTOR, **how)
    assert found is not None
    return found


def ended(found: RefreshRun) -> tuple[str, str]:
    return str(found.outcome), str(found.cause)


def self_signed(directory: Path, host: str = LOOPBACK) -> ssl.SSLContext:
    """Return a server's side of TLS with a certificate that nobody vouches for."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    make_certificate(key, certificate, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
