"""The log outlives its processes: sealers killed in the middle, PostgreSQL restarted, a dump restored elsewhere.

On an embedded server of these tests' own, with the settings of a real one: what was acknowledged must be there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from compliance import connections, embedded
from compliance.ledger import bundle
from compliance.ledger.merkle import check_consistency, consistency_path, leaf_hash, nodes_of, tree_root
from compliance.ledger.note import VerifierKey, parse_checkpoint, parse_note, verify_note
from tests.support.ledger import members_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PROCESSES, APPENDS, KILLS = 8, 500, 50


@dataclass
class Server:
    """A server with a migrated database, whose programs and environment these tests use."""

    handle: embedded.EmbeddedServer
    roles: connections.RolePair
    environment: dict[str, str]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.ledger_worker", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def restart(self) -> None:
        """Stop the server as a machine that goes down would: no client is waited for."""
        home, account = self.handle._home, self.handle._account
        programs = embedded._programs(home, account)
        embedded._run(programs, "pg_ctl", ["stop", f"--pgdata={home / 'cluster'}", "--mode=immediate", "--wait"], account, home)
        embedded._start(home, programs, account, throwaway=False)

    def address(self, database: str) -> str:
        return connections.with_parts(self.handle.superuser_url, dbname=database)


@pytest.fixture
def server() -> Iterator[Server]:
    # Not pytest's own directory, which is closed to the account that the server may run as: its cluster would lie elsewhere.
    data = Path(tempfile.mkdtemp(prefix="writegate-survival-"))
    handle = embedded.start(data)
    roles = connections.ensure_roles(handle.superuser_url, data_dir=data)
    environment = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": roles.runtime_url,
        "DATABASE_OWNER_URL": roles.owner_url,
        "WRITEGATE_DATA_DIR": str(data),
        "WRITEGATE_SECRET_KEY": "made-up-for-tests",
        "PYTHONWARNINGS": "ignore",
    }
    made = Server(handle, roles, environment)
    made.run("manage.py", "migrate", "--verbosity", "0")
    yield made
    handle.release()
    shutil.rmtree(data, ignore_errors=True)


def test_killed_sealers_and_a_restart_leave_no_gap_and_no_fork(server: Server) -> None:
    sealer = server.start("seal", str(KILLS))
    writers = [server.start("append", f"p{number}", str(APPENDS)) for number in range(PROCESSES)]
    time.sleep(4)
    server.restart()
    acknowledged: set[str] = set()
    for writer in writers:
        said, complaint = writer.communicate(timeout=300)
        assert writer.returncode == 0, complaint
        acknowledged.update(said.split())
    killed = 0
    for line in sealer.stdout or ():
        killed += line.strip() == "killed"
        if killed == KILLS:
            break
    with psycopg.connect(server.roles.runtime_url, autocommit=True) as database:
        until = time.monotonic() + 60
        while database.execute("SELECT EXISTS (SELECT FROM compliance_ledgerpending)").fetchone()[0] and time.monotonic() < until:
            time.sleep(0.1)
        sealer.kill()
        sealer.communicate()
        assert killed == KILLS
        assert len(acknowledged) == PROCESSES * APPENDS
        rows = database.execute(
            'SELECT leaf."index", leaf.leaf_hash, entry.content, entry.target_id FROM compliance_ledgerleaf leaf'
            " JOIN compliance_ledgerentry entry ON entry.id = leaf.entry_id WHERE true ORDER BY 1"
        ).fetchall()
        notes = database.execute("SELECT size, note FROM compliance_checkpoint ORDER BY size").fetchall()
        (keys,) = database.execute("SELECT array_agg(verifier_key) FROM compliance_signingkey").fetchone()
        (entries,) = database.execute("SELECT count(*) FROM compliance_ledgerentry").fetchone()
    # The first entry announces the key: the sealer's own.
    assert entries == len(rows) == PROCESSES * APPENDS + 1
    assert [row[0] for row in rows] == list(range(len(rows))), "no gap"
    assert sorted(row[3] for row in rows[1:]) == sorted(acknowledged), "each acknowledged append is there, once"
    leaves = [bytes(row[1]) for row in rows]
    assert leaves == [leaf_hash(bytes(row[2])) for row in rows]
    assert len(keys) == 1
    assert notes[-1][0] == len(rows)
    for size, text in notes:
        note = parse_note(text.encode())
        verify_note(note, [VerifierKey.parse(keys[0])])
        signed = parse_checkpoint(note.text)
        assert (signed.size, signed.root) == (size, tree_root(leaves[:size])), (
            "every signed tree is a beginning of the last: no fork"
        )
    first, last = notes[0][0], notes[-1][0]
    check_consistency(first, last, consistency_path(first, last, nodes_of(leaves)), tree_root(leaves[:first]), tree_root(leaves))


def test_a_dump_restored_into_a_fresh_database_verifies(server: Server, tmp_path: Path) -> None:
    server.run("-m", "tests.support.ledger_worker", "append", "before", "600")
    server.run("manage.py", "export_audit", "--out", str(tmp_path / "before.zip"))
    programs = embedded._programs(server.handle._home, server.handle._account)
    dump = tmp_path / "writegate.dump"
    with dump.open("wb") as out:
        subprocess.run(
            [programs / "pg_dump", "--format=custom", server.address("writegate")],
            stdout=out,
            check=True,
            env={"PATH": os.defpath},
        )
    with psycopg.connect(server.handle.superuser_url, autocommit=True) as database:
        database.execute("CREATE DATABASE restored OWNER writegate_owner")
    with dump.open("rb") as stream:
        subprocess.run(
            [programs / "pg_restore", "--exit-on-error", f"--dbname={server.address('restored')}"],
            stdin=stream,
            check=True,
            env={"PATH": os.defpath},
        )
    server.environment["DATABASE_URL"] = connections.with_parts(server.roles.runtime_url, dbname="restored")
    server.environment["DATABASE_OWNER_URL"] = connections.with_parts(server.roles.owner_url, dbname="restored")

    server.run("manage.py", "export_audit", "--out", str(tmp_path / "again.zip"), "--to-index", "600")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "before.zip").read_bytes(), "the same range is the same bytes"
    assert "differ" not in server.run("manage.py", "audit_population")
    server.run("-m", "tests.support.ledger_worker", "append", "after", "10")
    server.run("manage.py", "export_audit", "--out", str(tmp_path / "after.zip"))
    held = tmp_path / "checkpoint"
    held.write_bytes(members_of((tmp_path / "before.zip").read_bytes())[bundle.CHECKPOINT])
    said = server.run("-m", "compliance.client", "verify", str(tmp_path / "after.zip"), "--against", str(held))
    assert said.startswith("verifies\n")
    assert "is continued" in said
    with psycopg.connect(server.environment["DATABASE_URL"]) as database, pytest.raises(psycopg.errors.Error):
        database.execute("DELETE FROM compliance_ledgerentry")
