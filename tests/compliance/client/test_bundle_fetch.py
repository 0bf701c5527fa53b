"""`writegate bundle fetch` over real HTTP: what is put in the place of the bundle held, and what is not."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path

import pytest

from compliance.client import http
from compliance.ledger.merkle import leaf_hash
from compliance.ledger.note import CheckpointText, SignerKey, sign_note
from compliance.ledger.offline import Statement
from compliance.ledger.tiles import WIDTH, TileEdge, TileName
from tests.compliance.client.test_cli import run
from tests.support.bundles import KEY, ORIGIN, OTHER_KEY, line, sealed, statement
from tests.support.sources import Reply, SourceServer, source_server

PATH = "/api/v1/systems/hr-prod/bundle"


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAUSE_SECONDS", 0.001)
    monkeypatch.setenv("WRITEGATE_TOKEN", "wg_very-secret")
    monkeypatch.delenv("WRITEGATE_SERVER", raising=False)


@pytest.fixture
def server() -> Iterator[SourceServer]:
    with source_server() as served:
        yield served


class Log:
    """A log of entries, with its tiles on a server."""

    def __init__(self, server: SourceServer, key: SignerKey = KEY, words: str = "") -> None:
        self._server, self._key, self._words = server, key, words

    def leaves(self, size: int) -> list[bytes]:
        return [leaf_hash(f"{self._words if number > 2 else ''}{number}".encode()) for number in range(size)]

    def checkpoint(self, size: int) -> str:
        """Return the signed note of so many entries, and serve the tiles of that log."""
        edge, leaves = TileEdge(), self.leaves(size)
        for tile in edge.append(leaves):
            self._serve(TileName(tile.level, tile.number, WIDTH), tile.hashes)
        for number in range(0, size, WIDTH):
            part = leaves[number : number + WIDTH]
            self._serve(TileName(0, number // WIDTH, len(part)), b"".join(part))
        roots = [tile.root for tile in TileEdge().append(leaves) if tile.level == 0]
        if roots:
            self._serve(TileName(1, 0, len(roots)), b"".join(roots))
        return sign_note(CheckpointText(ORIGIN, size, edge.frontier().root()).text(), [self._key])

    def _serve(self, name: TileName, content: bytes) -> None:
        self._server.say(f"/ledger/tile/{name.path}", Reply(content))


def serve(server: SourceServer, made: Statement) -> bytes:
    data = sealed(made)
    server.say(PATH, Reply(data, headers={"ETag": f'"{tag_of(data)}"'}))
    return data


def tag_of(data: bytes) -> str:
    payload = base64.b64decode(json.loads(data)["payload"])
    return f"{sha256(payload).hexdigest()}.{KEY.verifier.key_id.hex()}"


def tag_sent(server: SourceServer) -> str | None:
    headers = {name.lower(): text for name, text in server.heard[-1][1].items()}
    return headers.get("if-none-match")


def fetch(server: SourceServer, out: Path, *more: object) -> tuple[int, str, str]:
    key = str(KEY.verifier)
    address = f"http://{server.place}"
    return run("bundle", "fetch", "--system", "hr-prod", "--out", out, "--key", key, "--server", address, "--retries", "0", *more)


def test_what_is_fetched_is_kept_and_asked_for_by_its_tag(server: SourceServer, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    data = serve(server, statement(line()))
    code, said, err = fetch(server, out)
    assert (code, err, out.read_bytes()) == (0, "", data)
    assert said.startswith("fetched  bundle 7 of hr-prod: 1 line,")
    code, said, _ = fetch(server, out)
    assert (code, said.split()[0]) == (0, "unchanged")
    assert tag_sent(server) == f'"{tag_of(data)}"'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "bundle.seen", "bundle.seen.lock"]


def test_one_that_has_expired_is_not_asked_for_by_its_tag(server: SourceServer, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    out.write_bytes(sealed(statement(line(), ago=400)))
    data = serve(server, statement(line(), serial=8))
    assert fetch(server, out)[0] == 0
    assert out.read_bytes() == data
    assert tag_sent(server) is None


@pytest.mark.parametrize("name", ["another key", "another system", "expired", "older", "cut", "a page"])
def test_what_cannot_be_decided_by_takes_no_place(name: str, server: SourceServer, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    held = serve(server, statement(line(), serial=8))
    assert fetch(server, out)[0] == 0
    wrong = {
        "another key": sealed(statement(line(), serial=9), OTHER_KEY),
        "another system": sealed(statement(line(), serial=9, system="it-prod")),
        "expired": sealed(statement(line(), serial=9, ago=400)),
        "older": sealed(statement(line(), serial=7)),
        "cut": sealed(statement(line(), serial=9))[:-9],
        "a page": b"<html>",
    }[name]
    server.say(PATH, Reply(wrong))
    code, said, err = fetch(server, out)
    assert (code, said, out.read_bytes()) == (2, "", held)
    assert err.startswith("refused: ")


@pytest.mark.parametrize(("status", "expected"), [(401, 2), (403, 2), (404, 2), (409, 2), (500, 1), (503, 1), (302, 1), (204, 2)])
def test_a_server_that_gives_none_changes_nothing(status: int, expected: int, server: SourceServer, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    held = serve(server, statement(line()))
    assert fetch(server, out)[0] == 0
    server.say(PATH, Reply(b'{"detail": "not today"}', status=status))
    code, _, err = fetch(server, out)
    assert code == expected
    assert ("no system `hr-prod`" in err) == (status == 404)
    assert out.read_bytes() == held


def test_an_answer_that_breaks_off_is_none(server: SourceServer, tmp_path: Path) -> None:
    server.say(PATH, Reply(sealed(statement(line())), cut=200))
    assert fetch(server, tmp_path / "bundle")[0] == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ahead", "expected"), [(-3_600, 0), (0, 0), (20, 0), (60, 2), (86_400, 2)])
def test_a_clock_that_is_behind_the_gate_s_fetches_nothing(
    ahead: int, expected: int, server: SourceServer, tmp_path: Path
) -> None:
    """By it, an old bundle would look young: one is made in the gate's past and this machine's present."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead), usegmt=True)
    server.say(PATH, Reply(sealed(statement(line())), headers={"Date": date}))
    out = tmp_path / "bundle"
    code, _, err = fetch(server, out)
    assert (code, out.exists()) == (expected, not expected)
    assert ("behind" in err) is bool(expected)


# --- the log that a bundle was made under


@pytest.mark.parametrize(("old", "new"), [(3, 4), (3, 300), (255, 256), (256, 257), (300, 1_000), (512, 513)])
def test_a_log_that_continues_the_one_seen_is_followed(old: int, new: int, server: SourceServer, tmp_path: Path) -> None:
    out, log = tmp_path / "bundle", Log(server)
    serve(server, statement(line(), checkpoint=log.checkpoint(old)))
    assert fetch(server, out)[0] == 0
    data = serve(server, statement(line(), serial=8, checkpoint=log.checkpoint(new)))
    code, _, err = fetch(server, out)
    assert (code, err, out.read_bytes()) == (0, "", data)


@pytest.mark.parametrize(("old", "new"), [(5, 9), (300, 1_000)])
def test_a_log_that_was_rewritten_is_refused(old: int, new: int, server: SourceServer, tmp_path: Path) -> None:
    """The gate's own key signs another history, whose tiles are in order: only what was seen before shows it."""
    out = tmp_path / "bundle"
    held = serve(server, statement(line(), checkpoint=Log(server).checkpoint(old)))
    assert fetch(server, out)[0] == 0
    seen = (tmp_path / "bundle.seen").read_bytes()
    serve(server, statement(line(), serial=8, checkpoint=Log(server, words="other ").checkpoint(new)))
    code, _, err = fetch(server, out)
    assert code == 2
    assert "does not continue" in err
    assert (out.read_bytes(), (tmp_path / "bundle.seen").read_bytes()) == (held, seen)


def test_a_log_whose_tiles_are_not_to_be_had_cannot_be_compared(server: SourceServer, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    held = serve(server, statement(line(), checkpoint=Log(server).checkpoint(3)))
    assert fetch(server, out)[0] == 0
    serve(server, statement(line(), serial=8, checkpoint=Log(server).checkpoint(300)))
    for tile in [path for path in server.replies if path.startswith("/ledger/tile/")]:
        server.say(tile, Reply(b"", status=404))
    code, _, err = fetch(server, out)
    assert (code, out.read_bytes()) == (1, held)
    assert "no tile" in err
