"""Case O-27 over a real connection to the web server that production runs: what is cut off is never taken for whole, either way.

An upload of 5,000 rows, cut off in its head, in its body and before its answer; an export of the audit trail, cut off at any byte.
"""

import io
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compliance import processes
from compliance.client.cli import main as client
from compliance.models import AuditExport, Upload
from compliance.services.exports import advance_export
from compliance.services.people import create_token
from compliance.services.sealing import seal
from compliance.services.uploads import read_upload
from compliance.vocabulary import Role
from evaluations.models import Document, Evidence, Observation
from tests.support import signing, world
from tests.support.cluster import Database
from tests.support.process import await_status, clean_environment, free_port, running
from tests.support.sources import source, table
from tests.support.workers import until

pytestmark = pytest.mark.slow

ROWS = 5_000
CUTS = 40


class Web:
    """The web server, and raw connections to it as somebody."""

    def __init__(self, port: int, secret: str) -> None:
        self.port = port
        self.secret = secret

    def ask(self, method: str, path: str, *, body: bytes = b"", cut: int | None = None, **headers: str) -> bytes:
        """Send a request and return all that comes back; with `cut` send so many bytes of it, stay silent, and hang up unheard."""
        told = {"Host": "localhost", "Authorization": f"Bearer {self.secret}", "Connection": "close", **headers}
        told |= {"Content-Length": str(len(body))} if method == "POST" else {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {text}" for name, text in told.items())]
        sent = "\r\n".join([*lines, "", ""]).encode() + body
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as wire:
            wire.sendall(sent[:cut])
            if cut is not None:
                time.sleep(0.2)
                return b""
            return b"".join(iter(lambda: wire.recv(65536), b""))

    def answer(self, method: str, path: str, **told: Any) -> Any:
        head, _, body = self.ask(method, path, **told).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 2"), head + body
        return json.loads(body)


@pytest.fixture
def web(committed_db: Database, settings: Any, tmp_path: Path) -> Iterator[Web]:
    settings.UPLOAD_DIR = tmp_path / "uploads"
    steward = signing.human("Stella Steward", Role.EVIDENCE_STEWARD, Role.AUDITOR)
    secret = create_token(actor=world.ACTOR, name="ci", scopes=["submit_evidence", "read"], person=steward.person).secret
    environment = clean_environment(
        DATABASE_URL=committed_db.roles.runtime_url,
        WRITEGATE_DATA_DIR=str(settings.DATA_DIR),
        WRITEGATE_UPLOAD_DIR=str(settings.UPLOAD_DIR),
        WRITEGATE_EXPORT_DIR=str(tmp_path / "exports"),
        WRITEGATE_SECRET_KEY=settings.SECRET_KEY,
        CELERY_BROKER_URL="memory://",
    )
    port = free_port()
    service = processes.services(host="127.0.0.1", port=port, worker_processes=1)["web"]
    with running(list(service.command), environment, tmp_path / "web.log"):
        await_status(f"http://127.0.0.1:{port}/healthz")
        yield Web(port, secret)


def rows() -> tuple[int, int, int]:
    return Document.objects.count(), Evidence.objects.count(), Observation.objects.count()


def test_an_upload_that_is_cut_off_leaves_nothing_and_the_second_one_every_row(web: Web, settings: Any) -> None:
    world.register("m")
    source("lab")
    body = table(**{f"m-{number}": 84 for number in range(ROWS)})
    told = {"body": body, "Content_Type": "application/octet-stream", "Idempotency_Key": "k"}
    path = "/api/v1/evidence/uploads?file_name=a.csv&source=lab"
    for cut in (60, len(body) // 2, len(body)):
        web.ask("POST", path, cut=cut, **told)
    until(lambda: not list(settings.UPLOAD_DIR.iterdir()), lambda: list(settings.UPLOAD_DIR.iterdir()))
    assert (Upload.objects.count(), rows()) == (0, (0, 0, 0))

    # All of it arrived, and the answer is what got lost: the same key gets the upload that it made.
    web.ask("POST", path, cut=len(body) + 10_000, **told)
    until(Upload.objects.exists, lambda: "the upload that arrived is not there")
    made = web.answer("POST", path, **told)
    assert (made["status"], Upload.objects.count(), rows()) == ("queued", 1, (0, 0, 0))
    read_upload(made["uid"])
    assert web.answer("GET", f"/api/v1/evidence/uploads/{made['uid']}")["taken"] == ROWS
    again = web.answer("POST", path, **told | {"Idempotency_Key": "l"})
    read_upload(again["uid"])
    assert (Upload.objects.count(), rows()) == (2, (1, ROWS, ROWS))


def test_an_export_that_is_cut_off_is_not_taken_for_whole(web: Web, tmp_path: Path) -> None:
    seal()
    uid = web.answer("POST", "/api/v1/ledger/exports", body=b"{}", Content_Type="application/json", Idempotency_Key="k")["uid"]
    job = advance_export(uid, seconds=60)
    assert job.status == "done"
    head, _, whole = web.ask("GET", f"/api/v1/ledger/exports/{uid}/content").partition(b"\r\n\r\n")
    # Every reader of HTTP sees by this that something is missing.
    assert f"content-length: {len(whole)}" in head.decode().lower()
    assert len(whole) == AuditExport.objects.get().file_bytes

    def verified(content: bytes) -> int:
        file = tmp_path / "trail.zip"
        file.write_bytes(content)
        return client(["verify", str(file)], out=io.StringIO(), err=io.StringIO())

    assert verified(whole) == 0
    for place in range(CUTS):
        assert verified(whole[: len(whole) * place // CUTS]) == 2, place
    for missing in (1, 2, 21, 22, 23):
        assert verified(whole[:-missing]) == 2, missing
