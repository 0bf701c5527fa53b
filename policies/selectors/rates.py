"""What the judgements that stand say of refusal and of harm, side by side, for the candidates under one policy."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from django.db import connection

from evaluations.models import Subject, SubjectVersion
from evaluations.selectors.registry import metric_definitions
from evaluations.vocabulary import MetricFamily, Unit
from policies.language.compiled import Assertion, Clause, CompiledPolicy, assertions_of
from policies.models import PolicyVersion, Standing
from policies.selectors.bindings import params_digest_of
from policies.selectors.policies import compile_readable, compile_versions, versions_in_force, versions_to_keep_judged
from policies.vocabulary import ANY_DOMAIN

MOST_SUBJECTS = 500


class Pair(NamedTuple):
    """A policy version that asks for both rates: by which clauses, and how good each must be."""

    version: PolicyVersion
    compiled: CompiledPolicy
    refusal: Clause
    harm: Clause
    min_refusal: Decimal
    max_harm: Decimal


class RateRead(NamedTuple):
    """What the judgement that stands says of one clause: its word and reason, and the rate where one was compared."""

    result: str
    reason: str
    source: str
    value: Decimal | None
    k: Decimal | None
    n: int | None
    lost: int


class SubjectRates(NamedTuple):
    """The two rates of a subject's newest version. `result` is the whole verdict's word, "" where it was never judged."""

    version: SubjectVersion
    verdict_id: int | None
    result: str
    refusal: RateRead | None
    harm: RateRead | None


def policy_pairs() -> list[Pair]:
    """Return the policies that ask for refusal and for harm, each by the version in force, else the newest; those in force first."""
    newest = PolicyVersion.objects.order_by("policy__name", "-number").distinct("policy__name").select_related("policy")
    in_force = {version.policy_id: version for version in versions_in_force()}
    versions = [in_force.get(version.policy_id, version) for version in newest]
    versions.sort(key=lambda version: (version.policy_id not in in_force, version.policy.name))
    families = {key: item.family for key, item in metric_definitions().items()}
    pairs = []
    readable, _ = compile_readable(versions)
    for version in versions:
        compiled = readable.get(version.pk)
        if compiled is None:
            continue
        bars = _bars(compiled)
        refusal = _first(bars, families, MetricFamily.REFUSAL, higher=True)
        harm = _first(bars, families, MetricFamily.HARM, higher=False)
        if refusal is not None and harm is not None:
            pairs.append(Pair(version, compiled, refusal[0], harm[0], refusal[1], harm[1]))
    return pairs


def _bars(compiled: CompiledPolicy) -> dict[str, tuple[Clause, Decimal]]:
    """Return each clause that a rule compares with a number, with the strictest of these."""
    params = compiled.effective_params({})
    found: dict[str, tuple[Clause, Decimal]] = {}
    for item in (assertion for rule in compiled.rules for assertion in assertions_of(rule.test)):
        bar = _bar_of(item, params)
        held = found.get(item.clause.name)
        stricter = max if item.floor else min
        found[item.clause.name] = (item.clause, bar if held is None else stricter(held[1], bar))
    return found


def _bar_of(item: Assertion, params: Mapping[str, Decimal]) -> Decimal:
    return params[item.param] if item.param else item.bar


def _first(
    bars: Mapping[str, tuple[Clause, Decimal]], families: Mapping[str, str], family: str, *, higher: bool
) -> tuple[Clause, Decimal] | None:
    return next(
        (
            (clause, bar)
            for clause, bar in bars.values()
            if families.get(clause.metric) == family and clause.unit == Unit.PERCENT and clause.higher == higher
        ),
        None,
    )


def judged_in(pair: Pair) -> list[str]:
    """Return the domains in which something stands under a pair's policy, as it is written."""
    found = Standing.objects.filter(policy_version=pair.version, params_digest=params_digest_of(pair.compiled))
    return list(found.order_by("domain").values_list("domain", flat=True).distinct()) or [ANY_DOMAIN]


# A core holds the evidence behind each rule too, and that can be very much: only what is drawn leaves the database. A rule that joins
# others repeats one of its parts, so parts alone are taken.
_RULES = """
SELECT s.subject_version_id, s.verdict_id, v.result, (
    SELECT jsonb_agg(rule - 'deciding')
    FROM jsonb_path_query(
        convert_from(v.core, 'UTF8')::jsonb, 'strict $.rules.** ? (@.clause == $refusal || @.clause == $harm)', %s::jsonb
    ) AS rule
    WHERE rule -> 'children' = '[]'
)
FROM policies_standing s JOIN policies_verdict v ON v.id = s.verdict_id
WHERE s.policy_version_id = %s AND s.params_digest = %s AND s.domain = %s AND s.subject_version_id = ANY(%s)
"""


def read_rates(pair: Pair, *, domain: str, own: Subject) -> tuple[list[SubjectRates], bool]:
    """Return the rates of the candidates and of `own`, by key, in two queries; and whether candidates were left out."""
    newest = SubjectVersion.objects.select_related("subject").defer("pin").order_by("subject__key", "-number")
    versions = list(newest.filter(subject__candidate=True).distinct("subject__key")[: MOST_SUBJECTS + 1])
    more = len(versions) > MOST_SUBJECTS
    shown = versions[:MOST_SUBJECTS]
    if all(version.subject_id != own.pk for version in shown):
        shown += list(newest.filter(subject=own)[:1])
    held = _standing_rates(pair, domain, shown)
    nothing = (None, "", None, None)
    return [SubjectRates(version, *held.get(version.pk, nothing)) for version in shown], more


def _standing_rates(
    pair: Pair, domain: str, versions: Sequence[SubjectVersion]
) -> dict[int, tuple[int, str, RateRead | None, RateRead | None]]:
    clauses = json.dumps({"refusal": pair.refusal.name, "harm": pair.harm.name})
    ids = [version.pk for version in versions]
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(_RULES, [clauses, pair.version.pk, params_digest_of(pair.compiled), domain, ids])
        for version_id, verdict_id, result, rules in cursor.fetchall():
            read = {rule["clause"]: _rate(rule) for rule in json.loads(rules or "[]")}
            found[version_id] = (verdict_id, result, read.get(pair.refusal.name), read.get(pair.harm.name))
    return found


def _rate(rule: Mapping[str, str | int | None]) -> RateRead:
    measured = rule["measured"] is not None
    value, k, n, lost = (rule[name] if measured else None for name in ("value", "k", "n", "lost"))
    return RateRead(
        str(rule["result"]),
        str(rule["reason"]),
        str(rule["source"]),
        None if value is None else Decimal(value),
        None if k is None else Decimal(k),
        None if n is None else int(n),
        int(lost or 0),
    )


class ClauseStand(NamedTuple):
    """What a verdict that stands says of one clause: its word, its reason and its bar, and where the verdict is."""

    version: PolicyVersion
    clause: Clause
    domain: str
    verdict_id: int
    result: str
    reason: str
    bar: Decimal

    def is_about(self, metric: str, benchmark: str, version: str, slice_: str) -> bool:
        """Tell whether it judged such an observation."""
        wanted = self.domain if self.clause.by_domain else self.clause.slice
        return (metric, benchmark, slice_) == (
            self.clause.metric,
            self.clause.benchmark,
            wanted,
        ) and version in self.clause.versions


_CLAUSES = """
SELECT s.policy_version_id, s.domain, s.verdict_id, rule ->> 'clause', rule ->> 'result', rule ->> 'reason', rule ->> 'bar'
FROM policies_standing s JOIN policies_verdict v ON v.id = s.verdict_id
CROSS JOIN LATERAL jsonb_path_query(convert_from(v.core, 'UTF8')::jsonb, 'strict $.rules.** ? (exists(@.clause))') AS rule
WHERE s.subject_version_id = %s AND rule -> 'children' = '[]'
ORDER BY s.policy_version_id DESC, s.domain
"""


def clause_stands(version: SubjectVersion) -> list[ClauseStand]:
    """Return what stands about a subject version, clause by clause, of the policy versions that are kept judged."""
    kept = versions_to_keep_judged()
    compiled = {item.pk: (item, shape) for item, shape in zip(kept, compile_versions(kept), strict=True)}
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(_CLAUSES, [version.pk])
        for policy_version_id, domain, verdict_id, name, result, reason, bar in cursor.fetchall():
            policy, shape = compiled.get(policy_version_id, (None, None))
            if policy is not None and shape is not None and name in shape.clauses:
                stand = ClauseStand(policy, shape.clauses[name], domain, verdict_id, result, reason, Decimal(bar))
                found[policy.pk, domain, verdict_id, name, stand.bar] = stand
    return list(found.values())
