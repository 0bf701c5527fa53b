"""A gate on the loopback address, over real HTTP: it answers as `gate_answers` says, and takes agents, evidence and requests."""

import json
import ssl
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from evaluations.kernel.canonical import digest
from tests.support.gate_answers import DIGEST, Asked, Reply, right, send

EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"


@dataclass
class GateServer:
    """Gives each question the next of `replies`, and the last one from then on; `asked` is what came in, in its order.

    Beside the gate it takes agents, evidence and requests as the service does. `models` are the digests of the versions it knows.
    """

    port: int = 0
    replies: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=lambda: {"model-a@1": digest("a"), "model-b@1": digest("b")})
    digest: str = DIGEST
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def questions(self) -> list[Asked]:
        return [one for one in self.asked if one.path in (EVALUATION, EVALUATIONS)]


def own_certificate(directory: Path) -> Path:
    """Make a key and a certificate for 127.0.0.1 that nobody vouches for; return the file with both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gate")])
    at = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = directory / "certificate.pem"
    text = certificate.public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain) + text)
    return file


@contextmanager
def gate_server(*replies: Reply, tls: ssl.SSLContext | None = None) -> Iterator[GateServer]:
    """Serve a gate on a free port, which answers by these replies in turn; right where there is none."""
    gate = GateServer(replies=list(replies) or [right], scheme="http" if tls is None else "https")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._take()

        def do_POST(self) -> None:
            self._take()

        def _take(self) -> None:
            # One exchange a connection: what is odd in one must not spill into the next.
            self.close_connection = True
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            gate.asked.append(asked)
            try:
                if asked in gate.questions:
                    gate.replies[min(len(gate.questions), len(gate.replies)) - 1](self, asked)
                else:
                    _serve(gate, self, asked)
            except OSError:
                return

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                return

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing: who hangs up on us is what some tests are about."""

        def shutdown_request(self, request: Any) -> None:
            try:
                super().shutdown_request(request)
            except OSError:
                return

    with Server(("127.0.0.1", 0), Handler) as server:
        gate.port = server.server_port
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield gate
        finally:
            server.shutdown()
            thread.join()


def _serve(gate: GateServer, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
    """Answer what is no question: agents, evidence, requests, and the versions of models."""
    if asked.path.startswith("/api/v1/evidence/uploads"):
        return send(handler, 202, json.dumps(_upload(asked)).encode())
    if asked.method == "GET":
        name = asked.path.removeprefix("/api/v1/subjects/").partition("?")[0]
        key, _, number = name.partition("/versions")
        known = gate.models.get(f"{key}@{number.strip('/') or 1}")
        row = {"subject": key, "number": int(number.strip("/") or 1), "digest": known}
        made: Any = row if number.strip("/") else {"next": None, "previous": None, "results": [row]}
        return send(handler, 200 if known else 404, json.dumps(made).encode())
    if asked.path == "/api/v1/subjects":
        return send(handler, 201, json.dumps(_register(gate, asked.value)).encode())
    if asked.path == "/api/v1/requests":
        told = {"uid": str(uuid.uuid4()), "status": "open", "expires_at": "2099-01-01T00:00:00Z"}
        return send(handler, 201, json.dumps(told).encode())
    return send(handler, 404, b"{}")


def _upload(asked: Asked) -> dict[str, Any]:
    """Take an evidence file of ours, at once."""
    count = len(asked.value["evidence"])
    own = f"sha256:{sha256(asked.body).hexdigest()}"
    read = {"status": "done", "percent": 100, "evidence": count, "taken": count, "repeated": 0, "held": [], "refused": []}
    return {"uid": str(uuid.uuid4()), "file_digest": own, "document": own, "failure": "", **read}


def _register(gate: GateServer, body: Mapping[str, Any]) -> dict[str, Any]:
    named = [name if "@" in name else f"{name}@1" for name in body["models"]]
    pin = {member: body[member] for member in ("prompt_digest", "tool_manifest_digest", "harness")}
    reaches = sorted(gate.models[name] for name in named)
    gate.digest = digest({"kind": "agent", "subject": body["key"], "closed": body["closed"], "reaches": reaches, "pin": pin})
    told = [{"subject": name.split("@")[0], "number": int(name.split("@")[1]), "digest": gate.models[name]} for name in named]
    return {"subject": body["key"], "number": 1, "digest": gate.digest, "reaches": told, "is_new": True}
