"""One grant as its page shows it, with every move it made."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max

from compliance.models import Grant, GrantEvent
from compliance.selectors.grants import find_grants, standing_of
from compliance.selectors.links import with_grant_links
from compliance.selectors.sight import Sight
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now


def find_grant(sight: Sight, *, uid: UUID) -> Any:
    """Return one grant as `find_grants` gives it, with its links, None where there is none that somebody sees."""
    return with_grant_links(find_grants(sight, now=now()), sight).filter(uid=uid).first()


def events_of(grant: Grant) -> list[GrantEvent]:
    """Return every move that a grant made, oldest first."""
    return list(GrantEvent.objects.filter(grant=grant).select_related("dossier").defer("dossier__content").order_by("number"))


def version_of_grant(grant: Grant, at: datetime) -> str:
    """Return the digest of where a grant stands: another one as soon as it moves, by an act or by the clock."""
    standing = standing_of(grant, at=at)
    last = GrantEvent.objects.filter(grant=grant).aggregate(last=Max("number"))["last"]
    return digest([str(grant.uid), str(standing.status), str(standing.cause), grant.dossier_id or 0, last or 0])
