"""What a policy version would change if it came into force: whom it newly permits and refuses, and which grants it would end."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from compliance.models import Grant
from compliance.vocabulary import GrantStatus
from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.language.compiled import CompiledPolicy
from policies.models import PolicyVersion, Standing
from policies.selectors.bindings import judged_keys
from policies.selectors.policies import compile_version, version_in_force, versions_to_keep_judged
from policies.vocabulary import Outcome

SHOWN = 50


class ImpactRow(NamedTuple):
    """A subject version in a domain, under one tightening, for which two versions of a policy differ."""

    subject: str
    subject_version: int
    domain: str
    before: str
    after: str


Differing = tuple[tuple[int, str], str, str]


class Impact(NamedTuple):
    """What an activation would change.

    `unjudged` counts subject versions, by domain, on which the new version has said nothing yet, or is not kept up to date.
    `narrower` is true where it no longer covers some action, or covers under another condition: what it leaves it no longer refuses.
    """

    newly_permitted: Sequence[ImpactRow]
    newly_refused: Sequence[ImpactRow]
    unchanged: int
    unjudged: int
    narrower: bool
    grants_refused: Sequence[str]

    @property
    def no_new_access(self) -> bool:
        return not self.newly_permitted and not self.unjudged and not self.narrower

    def as_value(self) -> dict[str, Any]:
        """Return the canonical value that a dossier holds: whole counts, and the first of each list."""
        return {
            "no_new_access": self.no_new_access,
            "newly_permitted": [row._asdict() for row in self.newly_permitted[:SHOWN]],
            "newly_permitted_count": len(self.newly_permitted),
            "newly_refused": [row._asdict() for row in self.newly_refused[:SHOWN]],
            "newly_refused_count": len(self.newly_refused),
            "unchanged": self.unchanged,
            "unjudged": self.unjudged,
            "narrower": self.narrower,
            "grants_refused": list(self.grants_refused[:SHOWN]),
            "grants_refused_count": len(self.grants_refused),
        }


def read_impact(version: PolicyVersion) -> Impact:
    """Compare what stands under a version with what stands under the one in force.

    Where none is in force nothing is permitted, so whatever the version passes is newly permitted. Only the newest version and the one
    in force are kept judged; whatever the version has not judged it may permit, so it counts as if it did.
    """
    before = version_in_force(version.policy)
    kept = {item.pk for item in versions_to_keep_judged([version.policy_id])}
    new = _outcomes(version) if version.pk in kept else {}
    old = {} if before is None else _outcomes(before)
    permitted: list[Differing] = []
    refused: list[Differing] = []
    unchanged = 0
    for key, after in new.items():
        was = old.get(key, Outcome.FAIL)
        if was == after:
            unchanged += 1
        else:
            (permitted if after == Outcome.PASS else refused).append((key, was, after))
    current = SubjectVersion.objects.filter(pk__in={key[0] for key in (*new, *old)}).select_related("subject")
    names = {item.pk: item for item in current}
    failing = {subject_version for (subject_version, _), after in new.items() if after != Outcome.PASS}
    grants = (
        Grant.objects.filter(status=GrantStatus.ACTIVE, subject_version__in=failing).order_by("id").values_list("uid", flat=True)
    )
    return Impact(
        [_row(names[key[0]], key[1], was, after) for key, was, after in permitted],
        [_row(names[key[0]], key[1], was, after) for key, was, after in refused],
        unchanged,
        len((set(old) | _expected(version)) - set(new)),
        before is not None and _is_narrower(compile_version(version), compile_version(before)),
        [str(uid) for uid in grants],
    )


def _outcomes(version: PolicyVersion) -> dict[tuple[int, str], str]:
    """Return by (subject version, domain) the worst outcome over every tightening under which the version is kept judged; where one of
    them has not been judged, nothing.
    """
    keys = {(key.domain, key.params_digest) for key in judged_keys([version])}
    wanted = Counter(domain for domain, _ in keys)
    found: dict[tuple[int, str], str] = {}
    judged: Counter[tuple[int, str]] = Counter()
    rows = Standing.objects.filter(policy_version=version).order_by("subject_version_id", "domain")
    for subject_version, domain, params_digest, outcome in rows.values_list(
        "subject_version_id", "domain", "params_digest", "verdict__outcome"
    ):
        if (domain, params_digest) in keys:
            held = found.get((subject_version, domain), Outcome.PASS)
            found[subject_version, domain] = outcome if held == Outcome.PASS else held
            judged[subject_version, domain] += 1
    return {key: outcome for key, outcome in found.items() if judged[key] == wanted[key[1]]}


def _expected(version: PolicyVersion) -> set[tuple[int, str]]:
    """Return each current subject version that can be judged, with each domain in which the version judges."""
    domains = {key.domain for key in judged_keys([version])}
    return {(item.pk, domain) for item in current_versions(known_at=now()) if item.closed for domain in domains}


def _is_narrower(after: CompiledPolicy, before: CompiledPolicy) -> bool:
    when = None if after.applies_when is None else after.applies_when.text
    earlier = None if before.applies_when is None else before.applies_when.text
    return bool(set(before.actions) - set(after.actions)) or (when is not None and when != earlier)


def _row(version: SubjectVersion, domain: str, before: str, after: str) -> ImpactRow:
    return ImpactRow(version.subject.key, version.number, domain, str(before), str(after))
