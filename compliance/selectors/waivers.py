"""Reads about waivers: which live ones cover a failing soft rule, read at the moment of use."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from compliance.models import Waiver
from compliance.selectors.links import with_waiver_links
from compliance.selectors.sight import Sight, visible_waivers
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from policies.language.compiled import Rule, assertions_of
from policies.selectors.applicable import Applied


def live_waivers(subject_version_ids: Collection[int], *, at: datetime) -> list[Waiver]:
    """Return the waivers of these subject versions that count at an instant: begun, not ended, not taken back."""
    return list(
        Waiver.objects.filter(
            subject_version__in=subject_version_ids, starts_at__lte=at, ends_at__gt=at, revocation=None
        ).order_by("-id")
    )


def find_waivers(
    sight: Sight,
    *,
    at: datetime,
    subject: str | None = None,
    system: str | None = None,
    policy: str | None = None,
    live: bool | None = None,
) -> QuerySet[Waiver]:
    """Return the waivers that somebody sees, unordered, each with its revocation; `live` are those that count at the instant."""
    given = {"subject_version__subject__key": subject, "system__key": system, "policy__name": policy}
    rows = visible_waivers(sight).select_related("subject_version__subject", "system", "policy", "revocation")
    rows = rows.filter(**{name: value for name, value in given.items() if value is not None})
    if live is not None:
        counts = Q(starts_at__lte=at, ends_at__gt=at, revocation=None)
        rows = rows.filter(counts if live else ~counts)
    return with_waiver_links(rows, sight).order_by()


def find_waiver(sight: Sight, *, uid: UUID) -> Waiver | None:
    """Return one waiver, None where there is none that somebody sees."""
    return find_waivers(sight, at=now()).select_related("request").filter(uid=uid).first()


def version_of_waiver(waiver: Waiver) -> str:
    """Return the digest of where a waiver stands: another one once it is taken back."""
    return digest([str(waiver.uid), hasattr(waiver, "revocation")])


def covering_waiver(
    waivers: Sequence[Waiver], applied: Applied, subject_version_id: int, rule: Rule, core: Mapping[str, Any]
) -> Waiver | None:
    """Return the waiver that covers a rule's failure, or None: same rule word for word, same place, and nothing worse measured."""
    if core["measured"] is None or not rule.can_be_waived:
        return None
    measured = Decimal(core["measured"])
    for waiver in waivers:
        same = (waiver.subject_version_id, waiver.system_id, waiver.policy_id, waiver.rule, waiver.rule_digest) == (
            subject_version_id,
            applied.system.pk,
            applied.version.policy_id,
            rule.id,
            rule.digest,
        )
        if same and (measured >= waiver.measured if waiver.floor else measured <= waiver.measured):
            return waiver
    return None


def asks_for_a_floor(rule: Rule, clause: str) -> bool:
    """True where the rule's assertion on a clause is a floor: less would be worse."""
    return next(found.floor for found in assertions_of(rule.test) if found.clause.name == clause)
