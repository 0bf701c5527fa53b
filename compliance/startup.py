"""What `manage.py` does before Django reads its settings: make the database addresses known."""

import os
from collections.abc import Sequence
from pathlib import Path

import psycopg

from compliance import connections, embedded
from compliance.connections import RolePair
from compliance.embedded import CannotStartError

# Commands that never open the database; all others start the embedded server where it is used.
_WITHOUT_DATABASE = frozenset(
    {"help", "version", "collectstatic", "compilemessages", "makemessages", "diffsettings", "spectacular"}
)
# Commands that may make the roles and the database from a superuser's address.
_MAKES_ROLES = frozenset({"migrate", "quickstart"})


def prepare(argv: Sequence[str]) -> None:
    """Make the database addresses known to settings, starting the embedded server where none are given.

    Called by manage.py with its arguments before Django reads settings. Sets `DATABASE_URL` and `DATABASE_OWNER_URL` in the
    environment, which child processes inherit. Raises `CannotStartError`.
    """
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in _WITHOUT_DATABASE or {"-h", "--help", "--version"} & set(argv):
        return
    try:
        data_dir = connections.data_directory()
        pair = connections.settled_pair(os.environ, data_dir)
        if pair is None:
            pair = embedded.start_with_roles(data_dir)
        elif command in _MAKES_ROLES:
            pair = _with_roles_made(pair, data_dir)
    except connections.AddressRefusedError as error:
        raise CannotStartError(str(error)) from error
    except psycopg.OperationalError as error:
        raise CannotStartError(f"the database does not answer: {str(error).strip()}") from error
    for name, address in (("DATABASE_URL", pair.runtime_url), ("DATABASE_OWNER_URL", pair.owner_url)):
        if connections.read_variable(os.environ, name) != address:
            os.environ[name] = address


def _with_roles_made(pair: RolePair, data_dir: Path) -> RolePair:
    """Where a superuser's address is known, make the two roles from it: those that the addresses name, else our own."""
    superuser = connections.read_variable(os.environ, "DATABASE_SUPERUSER_URL")
    if superuser:
        connections.ensure_given_roles(superuser, pair)
        return pair
    given = connections.read_variable(os.environ, "DATABASE_URL")
    if connections.read_variable(os.environ, "DATABASE_OWNER_URL") or not connections.is_superuser(given):
        return pair
    return connections.ensure_roles(given, data_dir=data_dir)
