"""Who had a part in what decides: whoever wrote a policy version, submitted evidence, or said whom evidence is about."""

from collections.abc import Collection
from typing import NamedTuple

from django.db.models import CharField, Exists, OuterRef, Q, Value

from evaluations.models import AliasAssignment, Evidence, SubjectVersion, SubjectVersionMember
from policies.models import Policy, PolicyActivation, PolicyDraft, PolicyVersion


def authors_of(versions: Collection[PolicyVersion]) -> set[str]:
    """Return the actors, as rows cite them, who proposed these versions or any after the version in force before each, and who saved a
    draft of the policy in that time, or one of the very same bytes at any time.

    Whoever edited the draft on its way has written a part of it, and does not sign for it.
    """
    authors: set[str] = set()
    policies = {version.policy_id for version in versions}
    was_active = Exists(PolicyActivation.objects.filter(version=OuterRef("pk")))
    proposed = list(
        PolicyVersion.objects.filter(policy__in=policies)
        .annotate(was_active=was_active)
        .values_list("policy_id", "number", "proposed_by", "recorded_at", "was_active")
    )
    names = Policy.objects.filter(pk__in=policies).values("name")
    drafts = list(
        PolicyDraft.objects.filter(policy_name__in=names)
        .order_by()
        .values_list("policy_name", "digest", "edited_by", "recorded_at")
    )
    for version in versions:
        own = [row[1:] for row in proposed if row[0] == version.policy_id]
        since = max((number for number, _, _, active in own if active and number < version.number), default=0)
        authors.update(proposed_by for number, proposed_by, _, _ in own if since < number <= version.number)
        begun = next((recorded_at for number, _, recorded_at, _ in own if number == since), None)
        authors.update(
            edited_by
            for name, digest, edited_by, saved_at in drafts
            if name == version.policy.name
            and (digest == version.digest or ((begun is None or saved_at > begun) and saved_at <= version.recorded_at))
        )
    return authors


class Vouching(NamedTuple):
    """Who stands behind evidence, as rows cite actors: who submitted it, and who settled that its names mean the subject."""

    submitters: set[str]
    settlers: set[str]


def behind_evidence(uids: Collection[str], version: SubjectVersion) -> Vouching:
    """Return who stands behind pieces of evidence about a subject version and what it reaches; one query.

    A name settled makes evidence count for somebody as much as handing it in does, and one person alone settles it.
    """
    rows = Evidence.objects.filter(uid__in=uids).order_by()
    reached = SubjectVersionMember.objects.filter(version=version).values("member")
    meant = AliasAssignment.objects.filter(Q(subject_version=version) | Q(subject_version__in=reached)).order_by()
    named = meant.filter(name_as_written__in=rows.values("subject_as_written"))
    part = {word: Value(word, output_field=CharField()) for word in Vouching._fields}
    found = rows.values_list(part["submitters"], "submitted_by").union(named.values_list(part["settlers"], "assigned_by"))
    held: dict[str, set[str]] = {word: set() for word in Vouching._fields}
    for word, reference in found:
        held[word].add(reference)
    return Vouching(**held)
