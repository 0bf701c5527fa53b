"""An enforcement point that loses the gate: it decides by its bundle, until that ends, and never by an older one."""

import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from compliance.client.cli import main
from compliance.ledger.note import SignerKey
from tests.flows.test_decision_faults import Served, served  # noqa: F401 - the fixture

pytestmark = pytest.mark.slow

SHORT_SECONDS = 4


class Point:
    """An enforcement point: its folder, and the public key that it was given by another road."""

    def __init__(self, gate: Served, folder: Path) -> None:
        self.gate, self.folder = gate, folder
        self.file, self.key = folder / "hr-prod.bundle", folder / "key"

    def fetch(self) -> tuple[int, str]:
        out, err = StringIO(), StringIO()
        words = ["bundle", "fetch", "--system", "hr-prod", "--out", str(self.file), "--key", str(self.key)]
        code = main([*words, "--server", self.gate.address, "--timeout", "20", "--retries", "0"], out=out, err=err)
        return code, out.getvalue() + err.getvalue()

    def check(self, file: Path | None = None) -> int:
        words = ["check", "--subject", "model-a", "--type", "model", "--system", "hr-prod", "--key", str(self.key), "--quiet"]
        return main([*words, "--offline", str(file or self.file), "--state", str(self.folder / "hr-prod.bundle.seen")])


@pytest.fixture
def point(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Point]:  # noqa: F811
    monkeypatch.setenv("WRITEGATE_TOKEN", served.world["token"])
    with served.web():
        assert served.ask(timeout=20.0).allowed
        made = Point(served, tmp_path)
        # The log's key is made when it is first sealed, which the first bundle that is asked for brings about.
        made.key.write_text(f"{SignerKey('made-up', bytes(32)).verifier}\n")
        assert made.fetch()[0] == 2
        private = Path(served._environment["WRITEGATE_DATA_DIR"]) / "ledger-key"
        made.key.write_text(f"{SignerKey.parse(private.read_text().splitlines()[0]).verifier}\n")
        yield made


def test_an_enforcement_point_decides_while_the_gate_is_down(point: Point) -> None:
    code, said = point.fetch()
    assert code == 0, said
    assert said.startswith("fetched  bundle ")
    code, said = point.fetch()
    assert code == 0
    assert said.startswith("unchanged  bundle ")
    assert point.check() == 0
    first = point.folder / "first"
    first.write_bytes(point.file.read_bytes())
    down = point.gate.port
    point.gate.port = 1
    try:
        assert point.fetch()[0] == 1
        assert point.gate.ask_by_command() == 2, "nobody answers"
        assert point.check() == 0, "the bundle does"
    finally:
        point.gate.port = down
    point.gate.do("suspend")
    code, said = point.fetch()
    assert code == 0, said
    assert point.check() == 1
    assert point.check(first) == 2, "what was fetched before it is taken no more"
    point.gate.do("back")
    assert point.fetch()[0] == 0
    assert point.check() == 0


def test_a_bundle_ends_by_itself(point: Point) -> None:
    with point.gate.web(WRITEGATE_OFFLINE_SECONDS=str(SHORT_SECONDS)):
        # Something has to happen, or the one that is stored goes out until half of its life.
        point.gate.do("suspend")
        point.gate.do("back")
        code, said = point.fetch()
        assert code == 0, said
        assert point.check() == 0
        time.sleep(SHORT_SECONDS + 0.5)
        assert point.check() == 2
        assert point.fetch()[0] == 0
        assert point.check() == 0
