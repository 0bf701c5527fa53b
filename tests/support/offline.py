"""Offline bundles for tests: made by the service, read by the format that clients read."""

from compliance.ledger.offline import Line, Statement, read_statement
from compliance.models import OfflineBundle, ServiceToken
from compliance.services.offline import current_bundle
from compliance.services.people import token_digest
from evaluations.kernel.actor import person, service
from policies.models import System


def bundle_for(token: str, system: System) -> OfflineBundle:
    """Return the bundle that a token's bearer would get now."""
    held = ServiceToken.objects.get(token_digest=token_digest(token))
    return current_bundle(actor=service(held.pk, on_behalf_of=person(held.person_id)), token=held, system=system)


def listed(token: str, system: System) -> Statement:
    """Return what that bundle states."""
    return read_statement(bytes(bundle_for(token, system).payload))


def named(statement: Statement) -> list[str]:
    """Return who is on a list, as `key@number action`."""
    return [cited(line) for line in statement.lines]


def cited(line: Line) -> str:
    return f"{line.subject}@{line.version} {line.action}"
