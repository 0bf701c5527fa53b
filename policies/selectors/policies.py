"""Reads about policies, and compiled policies: the one thing that is cached, because it never changes."""

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings

from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import NotFound, Problem
from evaluations.models import Metric
from evaluations.selectors.registry import benchmark_versions, carried_metrics, metric_definitions
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import PolicyRefused, compile_policy
from policies.language.facts import MetricFacts, Metrics
from policies.language.meaning import MeaningChange, changes_of_meaning
from policies.language.names import MetricLike, Names
from policies.models import Policy, PolicyActivation, PolicyVersion, UnreadableVersion
from policies.vocabulary import VersionState

COMPILED_KEPT = 1_024

logger = logging.getLogger("writegate.policies")


class PolicyTampered(PolicyRefused):
    """The stored text is not the one that was proposed: somebody has gone round both locks."""

    code = "policy_tampered"


class Unreadable(NamedTuple):
    """A version whose stored text cannot be read, and the codes of what is wrong with it, in order."""

    version: PolicyVersion
    codes: tuple[str, ...]


def known_names() -> Names:
    """Return what a policy may name: registered metrics and benchmarks, and the closed list of roles."""
    return Names(
        metrics=metric_definitions(),
        benchmarks=benchmark_versions(),
        roles=frozenset(settings.POLICY_ROLES),
        carried=carried_metrics(),
    )


def compile_version(version: PolicyVersion) -> CompiledPolicy:
    """Return the compiled form of a stored version, by the metric definitions registered now.

    The text was accepted when it was proposed, so its other names are taken as known: a stored policy never stops compiling.
    """
    return compile_versions([version])[0]


def compile_versions(versions: Sequence[PolicyVersion]) -> list[CompiledPolicy]:
    """Return the compiled form of each version, in the given order, after one read of the registry."""
    metrics = _definitions()
    return [_compile(bytes(version.text), version.digest, metrics) for version in versions]


def readable_versions(versions: Sequence[PolicyVersion]) -> list[PolicyVersion]:
    """Return the versions whose stored texts can be read, and tell the operator of the others: one bad text leaves the rest judged.

    By a version that is left out nothing is judged, and the gate denies whatever it covers, `policy_unreadable`.
    """
    compiled, unreadable = compile_readable(versions)
    for version, codes in unreadable:
        logger.error("policy %s cannot be read, and judges nothing: %s", version, ", ".join(codes))
    return [version for version in versions if version.pk in compiled]


def compile_readable(versions: Iterable[PolicyVersion]) -> tuple[dict[int, CompiledPolicy], list[Unreadable]]:
    """Return the compiled form of each version that can be read, by its id, and the others, after one read of the registry."""
    compiled: dict[int, CompiledPolicy] = {}
    unreadable: list[Unreadable] = []
    metrics = _definitions()
    for version in versions:
        try:
            compiled[version.pk] = _compile(bytes(version.text), version.digest, metrics)
        except PolicyRefused as refusal:
            unreadable.append(Unreadable(version, tuple(sorted({problem.code for problem in refusal.problems}))))
    return compiled, unreadable


def unreadable_in_force() -> list[Unreadable]:
    """Return the versions in force that cannot be read: no door lets such a text in, so somebody has gone round both locks."""
    return compile_readable(versions_in_force())[1]


def noted_unreadable() -> list[Unreadable]:
    """Return those versions in force that were found unreadable and still are: nothing is read of the others."""
    in_force = PolicyActivation.objects.order_by("policy_id", "-id").distinct("policy_id").values("version")
    noted = UnreadableVersion.objects.filter(version__in=in_force).order_by().values("version")
    versions = list(PolicyVersion.objects.filter(pk__in=noted).select_related("policy").order_by("policy__name"))
    return compile_readable(versions)[1] if versions else []


def _definitions() -> tuple[tuple[str, MetricLike], ...]:
    return tuple(sorted(metric_definitions().items()))


@lru_cache(maxsize=COMPILED_KEPT)
def _compile(text: bytes, digest: str, metrics: tuple[tuple[str, MetricLike], ...]) -> CompiledPolicy:
    if digest_of(text) != digest:
        raise PolicyTampered([Problem(f"the stored text does not have the digest {digest}", code=PolicyTampered.code)])
    return compile_policy(text, Names.for_replay(dict(metrics)))


def changes_between(before: PolicyVersion, after: PolicyVersion) -> tuple[MeaningChange, ...]:
    """Return what differs in meaning between two stored versions, by the metric definitions registered now."""
    return changes_of_meaning(*compile_versions([before, after]))


def version_to_compare(version: PolicyVersion) -> PolicyVersion | None:
    """Return what a version is read against: the one in force, where that is another one, else the number before it, else None."""
    in_force = version_in_force(version.policy)
    if in_force is not None and in_force.pk != version.pk:
        return in_force
    return PolicyVersion.objects.filter(policy=version.policy_id, number__lt=version.number).order_by("-number").first()


def get_policy(name: str) -> Policy:
    """Return the policy with this name. Raises `NotFound` that lists the known names."""
    policy = Policy.objects.filter(name=name).first()
    if policy is None:
        known = ", ".join(Policy.objects.values_list("name", flat=True)) or "none is loaded yet"
        raise NotFound(f"no policy `{name}`; known: {known}")
    return policy


def version_in_force(policy: Policy, *, known_at: datetime | None = None) -> PolicyVersion | None:
    """Return the active version, as known at an instant, or None."""
    activations = PolicyActivation.objects.filter(policy=policy)
    if known_at is not None:
        activations = activations.filter(recorded_at__lte=known_at)
    latest = activations.select_related("version").order_by("-id").first()
    return latest.version if latest else None


def version_to_judge(policy: Policy, *, known_at: datetime | None = None) -> PolicyVersion:
    """Return the version that `gate` judges: the active one, else the newest. Raises `NotFound`."""
    active = version_in_force(policy, known_at=known_at)
    if active is not None:
        return active
    newest = policy.versions.order_by("-number").first()
    if newest is None:
        raise NotFound(f"policy `{policy.name}` has no version")
    return newest


def state_of(version: PolicyVersion, *, known_at: datetime | None = None) -> VersionState:
    """Return where a version stands in its life, as known at an instant."""
    active = version_in_force(version.policy, known_at=known_at)
    if active is not None and active.pk == version.pk:
        return VersionState.ACTIVE
    activations = version.activations.all() if known_at is None else version.activations.filter(recorded_at__lte=known_at)
    return VersionState.RETIRED if activations.exists() else VersionState.PROPOSED


def versions_in_force(policy_ids: Collection[int] | None = None) -> list[PolicyVersion]:
    """Return the active version of each policy (or of the given ones) that has one, with `policy` loaded, by the policy's name."""
    activations = PolicyActivation.objects.order_by("policy__name", "-id").distinct("policy__name")
    if policy_ids is not None:
        activations = activations.filter(policy__in=policy_ids)
    return [activation.version for activation in activations.select_related("version__policy")]


def versions_to_keep_judged(policy_ids: Collection[int] | None = None) -> list[PolicyVersion]:
    """Return the versions whose standings are kept: of each policy (or the given ones) the active one, and the newest one.

    What cannot be read is not among them.
    """
    newest = PolicyVersion.objects.order_by("policy__name", "-number").distinct("policy__name").select_related("policy")
    if policy_ids is not None:
        newest = newest.filter(policy__in=policy_ids)
    kept = {version.pk: version for version in (*versions_in_force(policy_ids), *newest)}
    return readable_versions(sorted(kept.values(), key=lambda version: (version.policy.name, version.number)))


def policies_reading(metric: str) -> list[int]:
    """Return the ids of the policies of which a version that is kept judged reads a metric."""
    versions = versions_to_keep_judged()
    return sorted(
        {
            version.policy_id
            for version, compiled in zip(versions, compile_versions(versions), strict=True)
            if any(clause.metric == metric for clause in compiled.clauses.values())
        }
    )


def policies_asking_between(before: str | None, after: str) -> list[int]:
    """Return the ids of the policies of which a version that is kept judged takes evidence of one of two tiers, not of the other.

    None is a source without trust: no policy takes its evidence.
    """
    versions = versions_to_keep_judged()
    return sorted(
        {
            version.policy_id
            for version, compiled in zip(versions, compile_versions(versions), strict=True)
            if any((before in clause.trusted) != (after in clause.trusted) for clause in compiled.clauses.values())
        }
    )


def metrics_of_all(policies: Sequence[CompiledPolicy], *, known_at: datetime) -> list[Metrics]:
    """Return for each policy the definitions of the metrics that it reads, as known at an instant, after one read of the registry."""
    wanted = [frozenset(clause.metric for clause in compiled.clauses.values()) for compiled in policies]
    rows = Metric.objects.filter(key__in=frozenset().union(*wanted), recorded_at__lte=known_at).order_by("id")
    known = {
        row.key: MetricFacts(row.key, row.unit, row.better, row.level, row.family, row.minimum, row.maximum, row.digest)
        for row in rows
    }
    # Policies that read the same metrics share one object, which keeps its own bytes.
    made = {keys: Metrics({key: known[key] for key in keys if key in known}) for keys in set(wanted)}
    return [made[keys] for keys in wanted]
