"""Many subjects with a grant each, unrecorded, in the shape that services give them: as break-glass, which needs no signatures."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from compliance.models import Grant, GrantSystem, Person
from compliance.vocabulary import Cause, GrantKind
from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject, SubjectVersion
from policies.models import System

AT_ONCE = 10_000


def crowd(count: int, system: System, requester: Person, *, prefix: str = "crowd", kind: str = "model") -> list[SubjectVersion]:
    """Make so many subjects (`crowd-0`, …), each with a grant to write at the system, all from one instant on."""
    moment = now() - timedelta(seconds=1)
    made: list[SubjectVersion] = []
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        with service_transaction("test"):
            subjects = Subject.objects.bulk_create(
                Subject(key=f"{prefix}-{number}", kind=kind, title=str(number), registered_at=moment, changed_at=moment)
                for number in numbers
            )
            versions = SubjectVersion.objects.bulk_create(_version(subject, moment) for subject in subjects)
            _grant(versions, system, requester, moment)
        made += versions
    return made


def grant_more(version: SubjectVersion, system: System, requester: Person) -> None:
    """Make one further grant, from this instant on."""
    with service_transaction("test"):
        _grant([version], system, requester, now())


def _grant(versions: Sequence[SubjectVersion], system: System, requester: Person, moment: datetime) -> None:
    grants = Grant.objects.bulk_create(
        Grant(
            kind=GrantKind.BREAK_GLASS,
            subject_version=version,
            actions=["write"],
            requester=requester,
            starts_at=moment,
            ends_at=moment + timedelta(hours=4),
            begun_at=moment,
            reason="a crowd",
            cause=Cause.BREAK_GLASS,
            created_at=moment,
        )
        for version in versions
    )
    GrantSystem.objects.bulk_create(GrantSystem(grant=grant, system=system) for grant in grants)


def _version(subject: Subject, moment: datetime) -> SubjectVersion:
    pin = canonical_bytes({"snapshot": subject.key})
    return SubjectVersion(
        subject=subject, number=1, pin=pin, digest=digest_of(pin), registered_at=moment, registered_by="system_job:test"
    )
