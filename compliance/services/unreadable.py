"""Policy versions in force whose stored texts cannot be read: an incident each, on the log and told to people once.

Whatever such a version may cover is denied, for as long as it cannot be read: by the gate, by dossiers, and by want of a new verdict.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from compliance.selectors.recipients import holders_of
from compliance.services.outbox import Notice, apply_notify_all
from compliance.vocabulary import NoticeKind, Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.bulk import insert_new
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service
from policies.models import UnreadableVersion
from policies.selectors.policies import Unreadable, unreadable_in_force

JOB = "watch-policies"
TOLD_ROLES = (Role.SECURITY, Role.ADMINISTRATOR, Role.POLICY_APPROVER)


def watch_policies(*, task_id: str = "") -> int:
    """Note every version in force that cannot be read; return of how many nobody had noted that before.

    Not a service itself: where all can be read, nothing is written.
    """
    found = unreadable_in_force()
    return note_unreadable(actor=system_job(JOB, task_id=task_id), found=found) if found else 0


@service(refused="policy_version.refused")
def note_unreadable(*, actor: Actor, found: Sequence[Unreadable]) -> int:
    """Note versions that cannot be read; return of how many nobody had noted it. Each text found is recorded and told of once."""
    moment = now()
    fresh = _noted(actor, found, moment)
    if not fresh:
        return 0
    people = holders_of(TOLD_ROLES, at=moment)
    apply_notify_all([_notice(item, people) for item in fresh], at=moment)
    audit.record(
        *(
            audit.Event(
                action="policy_version.found_unreadable",
                actor=actor,
                target=("policy_version", _cite(item)),
                new={"codes": list(item.codes)},
                digests={"policy": item.version.digest, "found": _found_digest(item)},
            )
            for item in fresh
        )
    )
    return len(fresh)


def _noted(actor: Actor, found: Sequence[Unreadable], moment: datetime) -> list[Unreadable]:
    rows = {
        item.version.pk: UnreadableVersion(
            version=item.version,
            found_digest=_found_digest(item),
            codes=list(item.codes),
            found_by=actor.reference,
            recorded_at=moment,
        )
        for item in found
    }
    fresh = {row.version_id for row in insert_new(list(rows.values()))}
    return [item for item in found if item.version.pk in fresh]


def _notice(item: Unreadable, people: set[UUID]) -> Notice:
    return Notice(
        NoticeKind.POLICY_UNREADABLE,
        ("policy_version", _cite(item)),
        f"A policy in force cannot be read: {item.version}",
        cause=f"unreadable:{_found_digest(item)}",
        lines=[
            f"Its stored text is refused: {', '.join(item.codes)}.",
            "Nobody but the owner of the database can change such a row. The gate denies until the text is back, byte for byte.",
        ],
        link=f"/admin/policies/policyversion/{item.version.pk}/change/",
        data={
            "policy_version": _cite(item),
            "codes": list(item.codes),
            "digest": item.version.digest,
            "found_digest": _found_digest(item),
        },
        people=people,
    )


def _found_digest(item: Unreadable) -> str:
    return digest_of(bytes(item.version.text))


def _cite(item: Unreadable) -> str:
    return f"{item.version.policy.name}@{item.version.number}"
