"""The `writegate` command: what an auditor runs, with what it answers and with which exit code."""

import io
import json
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import pytest

from compliance.client import cli
from compliance.client.cli import main
from compliance.ledger.merkle import inclusion_path, leaf_hash, nodes_of, tree_root
from compliance.ledger.note import CheckpointText, SignerKey, sign_note
from compliance.ledger.proof import write_proof

ROOT = Path(__file__).resolve().parents[3]
LOG = SignerKey("log.example/audit", bytes(range(32)))
ENTRIES = [f'{{"entry":{number}}}'.encode() for number in range(9)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
NOTE = sign_note(CheckpointText(LOG.name, 9, tree_root(LEAVES)).text(), [LOG])


def run(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main([str(one) for one in arguments], out=out, err=err), out.getvalue(), err.getvalue()


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    path = tmp_path / "entry-4.tlog-proof"
    path.write_bytes(write_proof(index=4, path=inclusion_path(4, 9, nodes_of(LEAVES)), checkpoint=NOTE, entry=ENTRIES[4]))
    return path


def test_a_proof_verifies_and_shows_its_entry(proof: Path) -> None:
    code, out, _ = run("verify", proof, "--key", LOG.verifier)
    assert code == 0
    assert out.startswith("verifies\n")
    assert '{"entry":4}' in out
    assert "4, of 9" in out


def test_a_key_may_be_in_a_file(proof: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{LOG.verifier}\n")
    assert run("verify", proof, "--key", tmp_path / "key")[0] == 0


def test_another_entry_does_not_verify(proof: Path, tmp_path: Path) -> None:
    (tmp_path / "entry").write_bytes(ENTRIES[5])
    code, out, _ = run("verify", proof, "--key", LOG.verifier, "--entry", tmp_path / "entry")
    assert code == 1
    assert "DOES NOT VERIFY" in out
    assert "altered: entry 4" in out


def test_a_proof_under_a_stranger_s_key_does_not_verify(proof: Path) -> None:
    code, out, _ = run("verify", proof, "--key", SignerKey(LOG.name, bytes(32)).verifier)
    assert code == 1
    assert "bad signature" in out


@pytest.mark.parametrize(
    ("content", "arguments", "problem"),
    [
        (b"", [], "no zip file"),
        (b"rubbish", [], "no zip file"),
        (b"c2sp.org/tlog-proof@v1\nrubbish", ["--key", str(LOG.verifier)], "no proof file"),
        (b"rubbish", ["--key", "rubbish"], "key cannot be read"),
        (b"rubbish", ["--entry", "x"], "belongs to"),
    ],
)
def test_what_cannot_be_read_ends_with_2(tmp_path: Path, content: bytes, arguments: list[str], problem: str) -> None:
    (tmp_path / "file").write_bytes(content)
    code, out, err = run("verify", tmp_path / "file", *arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_ends_with_2(tmp_path: Path, proof: Path) -> None:
    assert run("verify", tmp_path / "nothing")[0] == 2
    assert run("verify", tmp_path)[0] == 2
    assert run("verify", proof)[0] == 2, "a proof needs a key"
    assert run("verify", proof, "--key", LOG.verifier, "--against", proof)[0] == 2
    assert run("verify", proof, "--key", LOG.verifier, "--entry", tmp_path / "nothing")[0] == 2
    with pytest.raises(SystemExit) as ended:
        run("verify")
    assert ended.value.code == 2


def test_a_proof_without_its_entry_asks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "bare"
    path.write_bytes(write_proof(index=4, path=inclusion_path(4, 9, nodes_of(LEAVES)), checkpoint=NOTE))
    code, _, err = run("verify", path, "--key", LOG.verifier)
    assert code == 2
    assert "--entry" in err
    (tmp_path / "entry").write_bytes(ENTRIES[4])
    assert run("verify", path, "--key", LOG.verifier, "--entry", tmp_path / "entry")[0] == 0


def test_the_result_can_be_had_as_json(proof: Path, tmp_path: Path) -> None:
    assert json.loads(run("verify", proof, "--key", LOG.verifier, "--json")[1])["verifies"] is True
    (tmp_path / "entry").write_bytes(b"x")
    code, out, _ = run("verify", proof, "--key", LOG.verifier, "--json", "--entry", tmp_path / "entry")
    assert code == 1
    assert json.loads(out)["findings"][0]["kind"] == "altered"
    assert json.loads(out)["findings"][0]["index"] == 4


OURS = ("compliance", "evaluations", "policies")


@pytest.fixture(scope="module")
def base_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install writegate` brings, without the extra `server`: our packages, `cryptography`, and what that needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [one.partition(">")[0] for one in project["dependencies"]] == ["cryptography"]
    assert project["scripts"] == {"writegate": "compliance.client.cli:main"}
    directory = tmp_path_factory.mktemp("installed")
    for name in OURS:
        (directory / name).symlink_to(ROOT / name)
    for name in ("cryptography", "cffi", "_cffi_backend", "pycparser"):
        found = find_spec(name)
        assert found is not None, name
        assert found.origin is not None, name
        place = Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)
        (directory / place.name).symlink_to(place)
    return directory


def alone(directory: Path, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code where only the standard library and the base distribution can be imported, and no database is named."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(directory)!r}); {code}", *map(str, arguments)],
        cwd=directory,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_runs_where_nothing_of_the_server_is_installed(base_distribution: Path, proof: Path) -> None:
    for absent in ("django", "celery", "psycopg", "rest_framework"):
        assert "ModuleNotFoundError" in alone(base_distribution, f"import {absent}").stderr
    code = "from compliance.client.cli import main; sys.exit(main())"
    done = alone(base_distribution, code, "verify", proof, "--key", LOG.verifier)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("verifies\n")
    module = "import runpy; sys.argv[0] = 'writegate'; runpy.run_module('compliance.client', run_name='__main__')"
    assert alone(base_distribution, module, "verify", proof, "--key", LOG.verifier).returncode == 0


def test_it_loads_nothing_but_the_standard_library_and_cryptography(base_distribution: Path) -> None:
    code = (
        "before = set(sys.modules); import compliance.client.cli; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    done = alone(base_distribution, code)
    assert done.returncode == 0, done.stderr
    assert {name for name in done.stdout.split() if not name.startswith("_")} == {"compliance", "cryptography", "evaluations"}


def _unknown(name: str) -> str:
    raise PackageNotFoundError(name)


def test_it_says_which_version_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for known, shown in ((lambda _: "1.2.3", "writegate 1.2.3"), (_unknown, "writegate of a checkout that is not installed")):
        monkeypatch.setattr(cli, "version", known)
        with pytest.raises(SystemExit) as ended:
            run("--version")
        assert (ended.value.code, capsys.readouterr().out.strip()) == (0, shown)
