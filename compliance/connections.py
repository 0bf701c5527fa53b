"""Database addresses, and the two roles behind them.

Pure of Django, so that it can run before settings are read: settings, the embedded server, `quickstart` and the tests all take
their addresses from here.

Two addresses make one installation:

- `DATABASE_URL`: the *runtime* role. Not a superuser, owns nothing; what web, worker and scheduler use.
- `DATABASE_OWNER_URL`: the *owner* role. Not a superuser, owns the database; migrations and pruning only.

Where an operator has only a superuser's address, `ensure_roles` makes both roles and the database from it and keeps the
passwords it chose in the data directory, readable by this user alone.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

CREDENTIALS_FILE = "database-roles.json"
DEFAULT_DATABASE = "writegate"
# Databases that every cluster has: an address that names one of them names the cluster, not a place for our tables.
_MAINTENANCE_DATABASES = frozenset({"", "postgres", "template0", "template1"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,50}")
# Parsed parts of an address that Django has settings of its own for; all others travel on in OPTIONS.
_DJANGO_PARTS = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT", "dbname": "NAME"}


class AddressRefusedError(ValueError):
    """A database address that cannot be used; the text says what to write instead and holds no password."""


@dataclass(frozen=True, slots=True)
class RolePair:
    """The two addresses of one installation."""

    runtime_url: str = field(repr=False)
    owner_url: str = field(repr=False)


def data_directory() -> Path:
    """Where this installation keeps what is its own: `WRITEGATE_DATA_DIR`, else `.data` beside manage.py or here."""
    given = read_variable(os.environ, "WRITEGATE_DATA_DIR")
    if given:
        return Path(given).expanduser().absolute()
    checkout = Path(__file__).resolve().parent.parent
    return (checkout if (checkout / "manage.py").exists() else Path.cwd()) / ".data"


def parse_address(address: str, *, variable: str = "DATABASE_URL") -> dict[str, str]:
    """Split a PostgreSQL address into its libpq parts.

    Takes a `postgresql://` address or libpq's `key=value` form. Raises `AddressRefusedError` for anything else; the message
    never repeats the address, which may hold a password.
    """
    try:
        parts = conninfo_to_dict(address.strip())
    except psycopg.ProgrammingError:
        raise AddressRefusedError(
            f"{variable} is not a PostgreSQL address; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    if not parts:
        raise AddressRefusedError(f"{variable} is empty; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    return {key: str(value) for key, value in parts.items() if value is not None}


def build_address(*, user: str, password: str = "", host: str, port: str = "", dbname: str, **options: str) -> str:
    """Write a `postgresql://` address; a socket directory as host is carried as a query parameter, as libpq asks."""
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    if host.startswith("/"):
        options = {"host": host, **({"port": port} if port else {}), **options}
        place = ""
    else:
        place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    query = f"?{urlencode(options, quote_via=quote)}" if options else ""
    return f"postgresql://{login}@{place}/{quote(dbname, safe='')}{query}"


def with_parts(address: str, **changes: str) -> str:
    """The same address with some libpq parts replaced (`dbname=`, `user=`, `password=`); an empty text drops the part."""
    parts = {key: value for key, value in (parse_address(address) | changes).items() if value != ""}
    known = {key: parts.pop(key, "") for key in ("user", "password", "host", "port", "dbname")}
    return build_address(**known, **parts)


def django_database(address: str, *, variable: str, options: str = "") -> dict[str, Any]:
    """The Django `DATABASES` entry for an address.

    `options` is libpq's `options` text (`-c name=value`), added to what the address itself carries.
    """
    parts = parse_address(address, variable=variable)
    entry: dict[str, Any] = {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {}}
    for part, setting in _DJANGO_PARTS.items():
        entry[setting] = parts.pop(part, "")
    joined = " ".join(text for text in (parts.pop("options", ""), options) if text)
    entry["OPTIONS"] = parts | ({"options": joined} if joined else {})
    return entry


def owner_options(runtime_role: str) -> str:
    """What every owner connection carries: the name of the role that migrations grant to."""
    if not runtime_role:
        raise AddressRefusedError("DATABASE_URL names no user; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    escaped = runtime_role.replace("\\", "\\\\").replace(" ", "\\ ")
    return f"-c writegate.runtime_role={escaped}"


def read_variable(environment: Mapping[str, str], name: str) -> str:
    """The value of a variable, or the content of the file that NAME_FILE names: how containers receive secrets."""
    path = environment.get(f"{name}_FILE", "").strip()
    if not path:
        return environment.get(name, "").strip()
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise AddressRefusedError(f"{name}_FILE names {path}, which cannot be read: {error.strerror}") from None


def settled_pair(environment: Mapping[str, str], data_dir: Path) -> RolePair | None:
    """The addresses that the environment and the data directory settle together, without connecting to anything.

    Both variables set: those. Only `DATABASE_URL`: the pair that `ensure_roles` once made from it, else the same address for
    both (a start-up check then refuses it where it is a superuser's). Neither: None, the embedded server's case.
    """
    runtime, owner = (read_variable(environment, name) for name in ("DATABASE_URL", "DATABASE_OWNER_URL"))
    if owner and not runtime:
        raise AddressRefusedError("DATABASE_OWNER_URL is set but DATABASE_URL is not; set both, or neither")
    if not runtime:
        return None
    if owner:
        return RolePair(runtime, owner)
    return _stored_pair(runtime, data_dir) or RolePair(runtime, runtime)


def is_superuser(address: str) -> bool:
    """Whether the address logs in as a superuser of its cluster. Raises `psycopg.OperationalError` when it does not answer."""
    with psycopg.connect(address, autocommit=True, connect_timeout=10) as connection:
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        return bool(row and row[0])


def ensure_roles(
    superuser_url: str,
    *,
    data_dir: Path,
    database: str | None = None,
    owner: str | None = None,
    runtime: str | None = None,
) -> RolePair:
    """Make both roles and the database from a superuser's address; safe to run again.

    The database is `database`, else the one that the address names unless that is a maintenance database, else
    `writegate`; the roles are named after it unless given. Passwords are random, kept in `data_dir` with mode 0600, and set
    anew only where none is kept. Raises `AddressRefusedError` where the address is no superuser's or the database belongs
    to somebody else.
    """
    named = parse_address(superuser_url).get("dbname", "")
    database = database or (DEFAULT_DATABASE if named in _MAINTENANCE_DATABASES else named)
    owner = owner or f"{database}_owner"
    runtime = runtime or f"{database}_runtime"
    with _credentials(data_dir) as stored:
        kept = stored.setdefault(_cluster_key(superuser_url, database), {})
        _ensure_all(superuser_url, database, {owner: "", runtime: ""}, kept)
    return RolePair(
        with_parts(superuser_url, dbname=database, user=runtime, password=kept[runtime]),
        with_parts(superuser_url, dbname=database, user=owner, password=kept[owner]),
    )


def ensure_given_roles(superuser_url: str, pair: RolePair) -> None:
    """Make the roles and the database that two addresses name, with the passwords that they carry; safe to run again.

    For deployments whose secrets come from elsewhere. Raises `AddressRefusedError` as `ensure_roles` does.
    """
    runtime, owner = parse_address(pair.runtime_url), parse_address(pair.owner_url, variable="DATABASE_OWNER_URL")
    if runtime.get("dbname") != owner.get("dbname") or runtime.get("user") == owner.get("user"):
        raise AddressRefusedError("DATABASE_URL and DATABASE_OWNER_URL must name one database and two roles")
    passwords = {part.get("user", ""): part.get("password", "") for part in (owner, runtime)}
    _ensure_all(superuser_url, owner.get("dbname", ""), passwords, {})


def _ensure_all(superuser_url: str, database: str, passwords: dict[str, str], kept: dict[str, str]) -> None:
    """Both roles (first the owner, then the runtime role), the database and its privileges; fills `kept` with what it set."""
    for name in (database, *passwords):
        if not _NAME.fullmatch(name):
            raise AddressRefusedError(f"`{name}` cannot name a database or role here; use a-z, 0-9 and _, at most 51 long")
    owner, runtime = passwords
    with psycopg.connect(superuser_url, autocommit=True, connect_timeout=10) as connection:
        acting = connection.execute("SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        if acting is None or not acting[1]:
            raise AddressRefusedError("this address is no superuser's: set DATABASE_OWNER_URL to the owner role's address too")
        for role, password in passwords.items():
            _ensure_role(connection, role, password, kept)
        _ensure_database(connection, database, owner, str(acting[0]))
    with psycopg.connect(with_parts(superuser_url, dbname=database), autocommit=True) as connection:
        _ensure_privileges(connection, database, owner, runtime)


def _ensure_role(connection: psycopg.Connection[Any], role: str, password: str, kept: dict[str, str]) -> None:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    exists = row is not None
    if row is not None and row[0]:
        raise AddressRefusedError(f"the role `{role}` is a superuser; name another, which no grant or trigger could be blind to")
    if exists and role in kept:
        return
    kept.setdefault(role, password or secrets.token_urlsafe(24))
    verb = sql.SQL("ALTER" if exists else "CREATE")
    # The password is hashed here, so that neither the server's log nor its statement statistics ever hold it in clear.
    hashed = connection.pgconn.encrypt_password(kept[role].encode(), role.encode(), b"scram-sha-256").decode()
    connection.execute(
        sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {}").format(
            verb, sql.Identifier(role), sql.Literal(hashed)
        )
    )


def _ensure_database(connection: psycopg.Connection[Any], database: str, owner: str, acting: str) -> None:
    row = connection.execute("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = %s", [database]).fetchone()
    if row is None:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(owner)))
    elif row[0] == acting:
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(database), sql.Identifier(owner)))
    elif row[0] != owner:
        raise AddressRefusedError(f"the database `{database}` belongs to the role `{row[0]}`; name another in DATABASE_URL")


def _ensure_privileges(connection: psycopg.Connection[Any], database: str, owner: str, runtime: str) -> None:
    names = {"database": sql.Identifier(database), "owner": sql.Identifier(owner), "runtime": sql.Identifier(runtime)}
    for statement in (
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
        "GRANT CONNECT ON DATABASE {database} TO {owner}, {runtime}",
        "ALTER SCHEMA public OWNER TO {owner}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO {runtime}",
    ):
        connection.execute(sql.SQL(statement).format(**names))


def _cluster_key(address: str, database: str) -> str:
    parts = parse_address(address)
    return f"{parts.get('host', '')}:{parts.get('port', '')}/{database}"


def _stored_pair(superuser_url: str, data_dir: Path) -> RolePair | None:
    named = parse_address(superuser_url)
    database = DEFAULT_DATABASE if named.get("dbname", "") in _MAINTENANCE_DATABASES else named["dbname"]
    kept = _read_credentials(data_dir / CREDENTIALS_FILE).get(_cluster_key(superuser_url, database), {})
    owner, runtime = f"{database}_owner", f"{database}_runtime"
    if owner not in kept or runtime not in kept or named.get("user") in (owner, runtime):
        return None
    return RolePair(
        with_parts(superuser_url, dbname=database, user=runtime, password=kept[runtime]),
        with_parts(superuser_url, dbname=database, user=owner, password=kept[owner]),
    )


def _read_credentials(path: Path) -> dict[str, dict[str, str]]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise AddressRefusedError(f"{path} is damaged; restore it, or remove it to have new passwords set") from None


@contextmanager
def _credentials(data_dir: Path) -> Iterator[dict[str, dict[str, str]]]:
    """The kept passwords, written back whole and before anything uses them, also when the caller fails half-way."""
    path = data_dir / CREDENTIALS_FILE
    stored = _read_credentials(path)
    try:
        yield stored
    finally:
        write_secret(path, json.dumps(stored, indent=1, sort_keys=True))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only this user can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
