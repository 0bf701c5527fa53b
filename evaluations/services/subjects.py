"""Subjects, their versions and the names that mean them: every write."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from evaluations.importers.names import WRITE_ASCII
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.names import check_key, foreign
from evaluations.kernel.services import service
from evaluations.models import AliasAssignment, Evidence, Source, Subject, SubjectVersion, SubjectVersionMember
from evaluations.signals import subject_version_registered, subject_versions_changed
from evaluations.vocabulary import SubjectKind

MAX_NAME = 300
_LIKE_A_VERSION = re.compile(r"@[0-9]+\Z")


class SubjectExists(DomainError):
    code = "subject_exists"
    kind = ErrorKind.CONFLICT


@service(refused="subject.refused")
def register_subject(
    *, actor: Actor, key: str, kind: str, title: str = "", provider: str = "", candidate: bool = False
) -> Subject:
    """Register a subject; the same key with the same facts returns what is there. Raises `InputRefused`, `SubjectExists`."""
    return apply_register_subject(actor=actor, key=key, kind=kind, title=title, provider=provider, candidate=candidate)


@service(refused="subject_version.refused")
def register_subject_version(
    *,
    actor: Actor,
    subject: Subject,
    pin: Mapping[str, Any],
    members: Sequence[SubjectVersion] = (),
    closed: bool = True,
) -> SubjectVersion:
    """Register one exact configuration; the same pin again returns the version that is there."""
    return apply_register_subject_version(actor=actor, subject=subject, pin=pin, members=members, closed=closed)


@service(refused="alias.refused")
def assign_alias(
    *,
    actor: Actor,
    name_as_written: str,
    subject_version: SubjectVersion | None,
    source: Source | None = None,
    effective_from: datetime | None = None,
    reason: str = "",
) -> AliasAssignment:
    """State that a name, as written in a source or anywhere, means this subject version (or nobody)."""
    return apply_assign_alias(
        actor=actor,
        name_as_written=name_as_written,
        subject_version=subject_version,
        source=source,
        effective_from=effective_from,
        reason=reason,
    )


def apply_register_subject(
    *,
    actor: Actor,
    key: str,
    kind: str,
    title: str = "",
    provider: str = "",
    candidate: bool = False,
    request_id: str = "",
) -> Subject:
    """Register a subject inside an open service transaction."""
    check_key(key, field="key")
    if _LIKE_A_VERSION.search(key):
        # `key@number` names a version everywhere, so no key may read like one.
        raise InputRefused([Problem(f"`{key}` ends like a version", field="key", hint="leave out the `@` and the number")])
    if kind not in SubjectKind.values:
        raise InputRefused(
            [Problem(f"`{kind}` is no kind of subject", field="kind", hint=f"one of {', '.join(SubjectKind.values)}")]
        )
    subject, made = Subject.objects.get_or_create(
        key=key, defaults={"kind": kind, "title": title or key, "provider": provider, "candidate": candidate}
    )
    if not made:
        if subject.kind != kind:
            raise SubjectExists(f"`{key}` is registered as a {subject.kind}, not as a {kind}")
        return subject
    audit.record(
        audit.Event(
            action="subject.registered",
            actor=actor,
            target=("subject", key),
            new={"kind": kind, "title": subject.title, "provider": provider, "candidate": candidate},
            request_id=request_id,
        )
    )
    return subject


def apply_register_subject_version(
    *,
    actor: Actor,
    subject: Subject,
    pin: Mapping[str, Any],
    members: Sequence[SubjectVersion] = (),
    closed: bool = True,
    request_id: str = "",
) -> SubjectVersion:
    """Register a configuration inside an open service transaction. The members are part of what is pinned, in no order."""
    reach = sorted(member.digest for member in members)
    content = canonical_bytes(
        {"kind": subject.kind, "pin": dict(pin), "reaches": reach, "closed": closed, "subject": subject.key}
    )
    digest = digest_of(content)
    existing = SubjectVersion.objects.filter(subject=subject, digest=digest).first()
    if existing is not None:
        return existing
    # The row lock keeps two registrations of one subject from taking one number; who waited for it looks once more.
    Subject.objects.select_for_update().get(pk=subject.pk)
    existing = SubjectVersion.objects.filter(subject=subject, digest=digest).first()
    if existing is not None:
        return existing
    latest = SubjectVersion.objects.filter(subject=subject).aggregate(number=Max("number"))["number"] or 0
    version = SubjectVersion(
        subject=subject, number=latest + 1, pin=content, digest=digest, closed=closed, registered_by=actor.reference
    )
    version.save()
    SubjectVersionMember.objects.bulk_create(SubjectVersionMember(version=version, member=member) for member in members)
    audit.record(
        audit.Event(
            action="subject_version.registered",
            actor=actor,
            target=("subject_version", f"{subject.key}@{version.number}"),
            new={"closed": closed, "reaches": reach},
            digests={"subject_version": digest},
            request_id=request_id,
        )
    )
    apply_mark_changed([version.pk])
    apply_announce_version(version)
    return version


def apply_announce_version(version: SubjectVersion) -> None:
    """Announce after commit that this is the version which runs from now on, so that whoever relied on another hears of it."""
    subject_id, version_id = version.subject_id, version.pk

    def announce() -> None:
        subject_version_registered.send_robust(sender=SubjectVersion, subject_id=subject_id, subject_version_id=version_id)

    transaction.on_commit(announce, robust=True)


def apply_assign_alias(
    *,
    actor: Actor,
    name_as_written: str,
    subject_version: SubjectVersion | None,
    source: Source | None = None,
    effective_from: datetime | None = None,
    reason: str = "",
    touches: Sequence[str] = (),
    request_id: str = "",
) -> AliasAssignment:
    """Assign a name inside an open service transaction. Stating what already stands adds no row.

    `touches` are the ids of what the caller knows to rest on it, which its entry names.
    """
    name = name_as_written
    if not name.strip() or len(name) > MAX_NAME:
        raise InputRefused([Problem(f"a name has 1 to {MAX_NAME} characters", field="name_as_written")])
    odd = foreign(name)
    if odd:
        raise InputRefused([Problem(f"`{name}` holds {odd}", field="name_as_written", code="look_alike", hint=WRITE_ASCII)])
    before = AliasAssignment.objects.filter(name_as_written=name, source=source).order_by("-id").first()
    if (
        before is not None
        and before.subject_version_id == (subject_version.pk if subject_version else None)
        and before.effective_from == effective_from
    ):
        return before
    assignment = AliasAssignment(
        name_as_written=name,
        source=source,
        subject_version=subject_version,
        effective_from=effective_from,
        reason=reason,
        assigned_by=actor.reference,
    )
    assignment.save()
    audit.record(
        audit.Event(
            action="alias.assigned",
            actor=actor,
            target=("alias", name),
            old={"subject_version": _cite(before.subject_version)} if before else None,
            new={
                "subject_version": _cite(subject_version),
                "source": source.key if source else None,
                "effective_from": effective_from,
                "reason": reason,
                **({"touches": list(touches)} if touches else {}),
            },
            request_id=request_id,
        )
    )
    # A name given for one source takes evidence from whoever has it in any, and whose answer it was may be in doubt now.
    answered = Evidence.objects.exclude(answered_as_written=[]).filter(answered_as_written__contains=[name])
    apply_mark_names_changed({name, *answered.values_list("subject_as_written", flat=True).distinct()}, urgent=True)
    return assignment


def apply_mark_changed(version_ids: Iterable[int], *, urgent: bool = False) -> None:
    """Mark the subjects of these versions, and of the agents that reach them, as changed; announce it after commit.

    `urgent` news (a ruling, a name that moved) lets no answer rest on what was judged before, not even for the minute it may take.
    """
    ids = set(version_ids)
    if not ids:
        return
    ids.update(SubjectVersionMember.objects.filter(member_id__in=ids).values_list("version_id", flat=True))
    moment = now()
    marks = {"changed_at": moment, "urgent_at": moment} if urgent else {"changed_at": moment}
    Subject.objects.filter(versions__in=ids).update(**marks)

    def announce() -> None:
        subject_versions_changed.send_robust(sender=SubjectVersion, subject_version_ids=sorted(ids))

    transaction.on_commit(announce, robust=True)


def apply_mark_names_changed(names: Iterable[str], *, urgent: bool = False) -> None:
    """Mark whatever the given names as written have ever meant; `urgent` as in `apply_mark_changed`."""
    meant = AliasAssignment.objects.filter(Q(name_as_written__in=list(names)), subject_version__isnull=False)
    apply_mark_changed(meant.values_list("subject_version_id", flat=True).distinct(), urgent=urgent)


def _cite(version: SubjectVersion | None) -> str | None:
    return None if version is None else f"{version.subject.key}@{version.number}"
