"""Servers on the loopback address that take what we send: HTTP endpoints and a mail server."""

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = "127.0.0.1"


@dataclass
class Heard:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpSink:
    """Answers each POST with the next of `answers` (status and headers), and the last one from then on."""

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=lambda: [(204, {})])
    heard: list[Heard] = field(default_factory=list)
    before: Callable[[], Any] = lambda: None
    content: bytes = b""

    @property
    def place(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def url(self, path: str = "/hook") -> str:
        return f"http://{self.place}{path}"


@contextmanager
def http_sink() -> Iterator[HttpSink]:
    """Serve an endpoint on a free port."""
    sink = HttpSink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sink.heard.append(Heard(self.path, dict(self.headers.items()), body))
            sink.before()
            status, headers = sink.answers.pop(0) if len(sink.answers) > 1 else sink.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sink.content)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        sink.port = server.server_port
        with _served(server):
            yield sink


@dataclass
class MailSink:
    """`mails` are (recipients, message); an address in `refused` is answered 550."""

    port: int = 0
    mails: list[tuple[list[str], Message]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)


@contextmanager
def mail_sink() -> Iterator[MailSink]:
    """Serve SMTP on a free port, as far as a client needs it to hand mails over."""
    sink = MailSink()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            recipients: list[str] = []
            self.say("220 sink")
            while line := self.rfile.readline().decode().strip():
                word = line[:4].upper()
                if word == "RCPT":
                    address = line.partition("<")[2].partition(">")[0]
                    if address in sink.refused:
                        self.say(f"550 5.1.1 <{address}> unknown")
                        continue
                    recipients.append(address)
                if word == "DATA":
                    self.say("354 go on")
                    sink.mails.append((recipients, message_from_bytes(self.take(), policy=default)))
                    recipients = []
                self.say("221 bye" if word == "QUIT" else "250 ok")
                if word == "QUIT":
                    return

        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def take(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            return b"".join(lines)

    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler) as server:
        sink.port = server.server_address[1]
        with _served(server):
            yield sink


@contextmanager
def raw_sink(speak: Callable[[Any], None]) -> Iterator[int]:
    """Serve a connection by `speak(socket)`; yield the port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            speak(self.request)

    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        with _served(server):
            yield server.server_address[1]


def drip(wire: Any) -> None:
    """Write one byte at a time, for ever."""
    try:
        wire.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            wire.sendall(b"a")
            time.sleep(0.05)
    except OSError:
        return


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield
    server.shutdown()
    thread.join()
