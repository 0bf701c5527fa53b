"""O-28: a document is downloaded, never shown, and needs the same leave as everything else."""

from io import BytesIO

import pytest

from compliance.selectors.registry import read_document
from evaluations.kernel.services import service_transaction
from evaluations.models import Document
from evaluations.services.sources import PART_BYTES, apply_capture_document
from tests.compliance.api.world import Api, World, nobody


def keep(world: World, content: bytes, name: str) -> Document:
    with service_transaction("tests"):
        return apply_capture_document(actor=world.actor, stream=BytesIO(content), file_name=name, media_type="text/html")


def test_a_page_with_a_script_is_an_attachment_that_runs_nothing(world: World, api: Api) -> None:
    page = b"<script>alert(1)</script>"
    document = keep(world, page, "x.html")
    path = f"documents/{document.digest}/content"
    answer = api.get(path)
    assert b"".join(answer.streaming_content) == page
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="x.html"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Content-Length"] == str(len(page))
    assert nobody().get(path).status_code == 401
    assert world.api_with("decide").get(path).status_code == 403


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\r\nSet-Cookie: x=1.json", 'attachment; filename="a__Set-Cookie_ x=1.json"'),
        ('quote".json', 'attachment; filename="quote_.json"'),
        ("../../etc/passwd", 'attachment; filename="_.._etc_passwd"'),
        ("é.json", "attachment; filename*=utf-8''%C3%A9.json"),
        ("\u202egnp.exe", 'attachment; filename="_gnp.exe"'),
        ("...", 'attachment; filename="document"'),
    ],
)
def test_a_file_name_cannot_break_out_of_its_header(world: World, api: Api, name: str, shown: str) -> None:
    answer = api.get(f"documents/{keep(world, name.encode(), name).digest}/content")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == shown


def test_a_large_document_is_read_part_by_part(world: World) -> None:
    content = b"x" * (2 * PART_BYTES) + b"end"
    parts = list(read_document(keep(world, content, "large.json")))
    assert [len(part) for part in parts] == [PART_BYTES, PART_BYTES, 3]
    assert b"".join(parts) == content


def test_an_empty_document_has_no_parts(world: World, api: Api) -> None:
    answer = api.get(f"documents/{keep(world, b'', 'empty.json').digest}/content")
    assert b"".join(answer.streaming_content) == b""
