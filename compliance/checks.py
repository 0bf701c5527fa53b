"""Start-up checks, each with a stable id and a hint.

E001 the audit sink is unset or cannot be called · E002 the runtime role is a superuser · E003 the runtime role owns the
database or its tables · E004 the owner role is a superuser · E005 the conformance profile is on where there is a grant · E006 its
attributes cannot be read · E007 the key of the discovery document is none · E008 the key of bundles for OPA is none that OPA takes ·
W001 the server is older than PostgreSQL 15.

E002 to E005 and W001 connect, so they run where databases are checked: `manage.py check --database default`, `migrate`, `serve`.
"""

from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.utils import DatabaseError, OperationalError
from django.utils.module_loading import import_string

from compliance.ledger.opa import KeyRefused, read_signer
from compliance.models import Grant
from compliance.selectors.deciding.conformance import AttributesRefused, read_attributes

_MINIMUM_VERSION = 150000


@register(Tags.compatibility)
def check_audit_sink(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E001: a change must never go unrecorded because nobody wired the port."""
    hint = "set AUDIT_SINK to the dotted name of a function that takes one event, such as compliance.ledger.writer.append"
    dotted = getattr(settings, "AUDIT_SINK", None)
    if not dotted:
        return [Error("AUDIT_SINK is not set: changes would go unrecorded", hint=hint, id="compliance.E001")]
    try:
        sink = import_string(dotted)
    except ImportError as error:
        return [Error(f"AUDIT_SINK `{dotted}` cannot be imported: {error}", hint=hint, id="compliance.E001")]
    if not callable(sink):
        return [Error(f"AUDIT_SINK `{dotted}` is not a function", hint=hint, id="compliance.E001")]
    return []


@register(Tags.database)
def check_roles(app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """E002 to E004 and W001, for the aliases being checked; a database that does not answer is not this check's finding."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            found += _role_findings(alias)
        except OperationalError:
            continue
    return found


@register(Tags.database)
def check_conformance(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """E005: what the conformance profile allows rests on nothing, so it stays away from where anything does."""
    if not settings.CONFORMANCE or "default" not in (databases or ()):
        return []
    try:
        held = Grant.objects.exists()
    except DatabaseError:
        # No server, or not migrated yet: there is no grant either.
        return []
    if not held:
        return []
    hint = "unset WRITEGATE_CONFORMANCE, or set DATABASE_URL to a database of its own"
    return [Error("WRITEGATE_CONFORMANCE is set, and this database holds a grant", hint=hint, id="compliance.E005")]


@register(Tags.compatibility)
def check_attributes(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E006: a file that is named can be read."""
    if not settings.CONFORMANCE:
        return []
    try:
        read_attributes()
    except AttributesRefused as error:
        hint = "name a JSON file by WRITEGATE_CONFORMANCE_ATTRIBUTES, or unset it"
        return [Error(str(error), hint=hint, id="compliance.E006")]
    return []


@register(Tags.security)
def check_metadata_key(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E007: a key that is given for the discovery document is one."""
    if not settings.METADATA_KEY:
        return []
    try:
        if isinstance(load_pem_private_key(settings.METADATA_KEY.encode(), password=None), Ed25519PrivateKey):
            return []
    except (ValueError, TypeError, UnsupportedAlgorithm):
        pass
    hint = "give an Ed25519 private key as PEM, such as `openssl genpkey -algorithm ed25519` makes"
    return [Error("WRITEGATE_METADATA_KEY is no Ed25519 private key", hint=hint, id="compliance.E007")]


@register(Tags.security)
def check_opa_key(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """E008: a key that is given for bundles in the form of OPA is one that OPA can verify by."""
    if not settings.OPA_KEY:
        return []
    try:
        read_signer(settings.OPA_KEY)
    except KeyRefused as error:
        hint = "give a P-256 private key as PEM, such as `openssl ecparam -name prime256v1 -genkey -noout` makes"
        return [Error(f"WRITEGATE_OPA_KEY cannot be used: {error}", hint=hint, id="compliance.E008")]
    return []


def _role_findings(alias: str) -> list[CheckMessage]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, pg_catalog.pg_get_userbyid(datdba) = current_user,"
            " EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND tableowner = current_user),"
            " current_setting('server_version_num')::int"
            " FROM pg_catalog.pg_roles, pg_catalog.pg_database"
            " WHERE rolname = current_user AND datname = current_database()"
        )
        role, is_superuser, owns_database, owns_tables, version = cursor.fetchone()
    found: list[CheckMessage] = []
    if version < _MINIMUM_VERSION:
        found.append(checks.Warning("this PostgreSQL is older than 15", hint="use PostgreSQL 15 or newer", id="compliance.W001"))
    variable, code = ("DATABASE_OWNER_URL", "E004") if alias == "owner" else ("DATABASE_URL", "E002")
    if is_superuser:
        hint = f"run `manage.py quickstart`, which makes both roles from it, or set {variable} to a role that is no superuser"
        message = f"the role `{role}` of {variable} is a superuser: no grant or trigger binds it"
        found.append(Error(message, hint=hint, id=f"compliance.{code}"))
    elif alias != "owner" and (owns_database or owns_tables):
        hint = "set DATABASE_URL to a role that owns nothing, and DATABASE_OWNER_URL to this one"
        found.append(Error(f"the role `{role}` of DATABASE_URL owns what it must not change", hint=hint, id="compliance.E003"))
    return found
