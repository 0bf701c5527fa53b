"""The log over HTTP, as C2SP `tlog-tiles` fixes it: rebuilt by a client from nothing but what is served."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import RequestFactory

from compliance.api.ledger import checkpoint, tile
from compliance.ledger.merkle import Frontier, leaf_hash
from compliance.ledger.note import VerifierKey, parse_checkpoint, parse_note, verify_note
from compliance.ledger.tiles import TileName, split_tile
from compliance.models import SigningKey
from compliance.services.people import create_person, create_token
from compliance.services.sealing import seal
from evaluations.kernel.clock import now
from tests.support.ledger import ACTOR, append

pytestmark = pytest.mark.usefixtures("committed_db")


def get(name: str, *, method: str = "get", **headers: str) -> HttpResponse:
    request = getattr(RequestFactory(), method)(f"/ledger/{name}", **headers)
    request.user = AnonymousUser()
    return checkpoint(request) if name == "checkpoint" else tile(request, name.removeprefix("tile/"))


@pytest.fixture
def token() -> dict[str, str]:
    person = create_person(actor=ACTOR, name="Ada", email="ada@example.com", password="a long password").person
    made = create_token(actor=ACTOR, name="reader", scopes=["read"], person=person, expires_at=now() + timedelta(days=1))
    return {"HTTP_AUTHORIZATION": f"Bearer {made.secret}"}


def test_before_the_first_sealing_there_is_no_checkpoint() -> None:
    assert get("checkpoint").status_code == 404


def test_the_checkpoint_is_text_and_is_not_kept_long() -> None:
    append(1)
    seal()
    answer = get("checkpoint")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, max-age=2"
    key = VerifierKey.parse(SigningKey.objects.get().verifier_key)
    assert verify_note(parse_note(answer.content), [key]) == (key,)
    assert get("checkpoint", method="head").status_code == 200
    assert get("checkpoint", method="post").status_code == 405


def test_a_client_rebuilds_the_tree_from_tiles(token: dict[str, str]) -> None:
    append(700)
    seal()
    signed = parse_checkpoint(parse_note(get("checkpoint").content).text)
    edge = Frontier()
    for number in range(signed.size // 256 + 1):
        width = min(256, signed.size - 256 * number)
        answer = get(f"tile/{TileName(0, number, width).path}")
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert "immutable" in answer.headers["Cache-Control"]
        hashes = split_tile(answer.content)
        edge.extend(hashes)
        bundle = get(f"tile/{TileName(None, number, width).path}", **token)
        assert bundle.headers["Cache-Control"].startswith("private")
        rest, leaves = bundle.content, []
        while rest:
            length = int.from_bytes(rest[:2], "big")
            leaves.append(leaf_hash(rest[2 : 2 + length]))
            rest = rest[2 + length :]
        assert leaves == hashes
    assert (edge.size, edge.root()) == (signed.size, signed.root)


@pytest.mark.parametrize(
    "name", ["tile/0/001", "tile/0/000.p/9", "tile/0/0", "tile/nothing", "tile/../checkpoint", "tile/1/000.p/1"]
)
def test_what_the_log_does_not_have_is_not_found(name: str) -> None:
    append(3)
    seal()
    assert get(name).status_code == 404


def test_entries_are_for_whoever_may_read_the_trail(token: dict[str, str]) -> None:
    seal()
    path = "tile/entries/000.p/1"
    refused = get(path)
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert get(path, HTTP_AUTHORIZATION="Bearer wg_wrong").status_code == 401
    assert get(path, **token).status_code == 200
    person = create_person(actor=ACTOR, name="Bo", email="bo@example.com", password="a long password")
    narrow = create_token(actor=ACTOR, name="n", scopes=["decide"], person=person.person, expires_at=now() + timedelta(days=1))
    assert get(path, HTTP_AUTHORIZATION=f"Bearer {narrow.secret}").status_code == 403
    request = RequestFactory().get(f"/ledger/{path}")
    request.user = person
    assert tile(request, "entries/000.p/1").status_code == 200
