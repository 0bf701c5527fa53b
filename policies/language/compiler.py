"""From policy bytes to a compiled policy: read, shape, check, fill in defaults, resolve names. All problems at once.

The text is stored and signed as the exact bytes given. Its *resolved form* is its meaning with every default filled in;
two texts with the same meaning (`80` and `80.0`, other spaces, other comments, YAML or JSON) have the same resolved
digest and different text digests.

A bar is a number under `at_least` or `at_most`, so a policy holds no comparison text that could fail to parse: `80` and
`80.0` resolve alike, and any text (">= 80", "80 %", "≥ 80") is refused with what to write instead.
"""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.checks import Checks
from policies.language.compiled import (
    Assertion,
    Clause,
    Combination,
    CompiledPolicy,
    Drift,
    Factor,
    GrantTerms,
    Guardrail,
    Param,
    Rule,
    SignOffs,
    Test,
    effective_function,
)
from policies.language.conditions import FILTER_VARIABLES, WHEN_VARIABLES, Condition, compile_condition
from policies.language.document import read_document
from policies.language.leaves import ParamRef
from policies.language.names import MetricLike, Names
from policies.language.results import DOMAIN_SLICE, PROVENANCES, SEMANTICS, TRUST_TIERS
from policies.language.rule_checks import suiting_bound
from policies.language.shapes import (
    Branch,
    EvidenceClause,
    PolicyShape,
    TestCase,
    TestFact,
    TestObservation,
    json_schema,
)
from policies.language.shaping import shape
from policies.language.statistics import bound_function
from policies.language.worth import assessor

__all__ = ["CompiledPolicy", "Names", "PolicyRefused", "compile_policy", "json_schema"]

CONFORMANCE = "conformance"


class PolicyRefused(InputRefused):
    """A policy text was refused; `problems` holds every finding, each with line, column, code and what to write instead."""

    code = "policy_refused"


def compile_policy(text: bytes, names: Names, *, filename: str = "") -> CompiledPolicy:
    """Compile a policy text (YAML 1.2 or JSON, UTF-8). Raises `PolicyRefused` with every problem."""
    root, problems = read_document(text, filename=filename)
    shaped: PolicyShape | None = None
    if root is not None:
        shaped, found = shape(root, filename)
        checks = Checks(root, names, filename)
        checks.run()
        problems = [*problems, *found, *checks.problems]
    if problems or shaped is None:
        raise PolicyRefused(in_order(problems))
    return _Compiler(shaped, names).compile(text)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems in the order of their text, each once."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.line or 0, problem.column or 0))


class _Compiler:
    """Builds the compiled policy from a shape that has no problems."""

    def __init__(self, shaped: PolicyShape, names: Names) -> None:
        self.shaped = shaped
        self.spec = shaped.spec
        self.names = names
        self.profile = shaped.metadata.profile or ""
        self.param_metrics: dict[str, tuple[bool, list[MetricLike]]] = {}
        self.evidence_bytes: dict[tuple[str, ...], bytes] = {}

    def compile(self, text: bytes) -> CompiledPolicy:
        spec = self.spec
        resolved = self.resolved()
        resolved_bytes = canonical_bytes(resolved)
        clauses = {name: self.clause(name, item) for name, item in spec.evidence.items()}
        stated = {rule["id"]: rule for rule in resolved["spec"].get("rules", ())}
        evidence = resolved["spec"].get("evidence", {})
        rules = tuple(self.rule(item, clauses, stated[item.id], evidence) for item in spec.rules)
        params = {name: self.param(name, number) for name, number in spec.params.items()}
        return CompiledPolicy(
            name=self.shaped.metadata.name,
            title=self.shaped.metadata.title,
            profile=self.profile,
            semantics=SEMANTICS,
            text=text,
            digest=digest_of(text),
            resolved=resolved,
            resolved_bytes=resolved_bytes,
            resolved_digest=digest_of(resolved_bytes),
            references=tuple(self.shaped.metadata.references),
            actions=tuple(spec.applies_to.actions),
            applies_when=_condition(spec.applies_to.when),
            params=MappingProxyType(params),
            clauses=MappingProxyType(clauses),
            rules=rules,
            forbid=tuple(Guardrail(item.id, compile_condition(item.when)) for item in spec.forbid),
            sign_offs=self.sign_offs(),
            grant=None if spec.grant is None else GrantTerms(spec.grant.max_days, spec.grant.recertify_every_days),
            drift=self.drift(),
            tests=tuple(resolved["spec"]["tests"]),
            uses_domain=any(clause.by_domain for clause in clauses.values()),
            _effective=effective_function(params),
        )

    # Compiled parts.

    def clause(self, name: str, item: EvidenceClause) -> Clause:
        metric = self.names.metrics[item.metric]
        statistic = self.statistic(item)
        ages = item.max_age_days
        return Clause(
            name=name,
            metric=item.metric,
            unit=metric.unit,
            higher=metric.better == "higher",
            percent=metric.unit == "percent",
            minimum=metric.minimum,
            maximum=metric.maximum,
            benchmark=item.benchmark,
            versions=frozenset(item.versions),
            slice=item.slice,
            by_domain=item.slice == DOMAIN_SLICE,
            about=item.about,
            statistic=statistic,
            confidence=item.confidence,
            min_samples=item.min_samples,
            max_error_share=item.max_error_share,
            max_age=timedelta(days=ages) if isinstance(ages, int) else None,
            min_trust=item.min_trust,
            trusted=frozenset(TRUST_TIERS[TRUST_TIERS.index(item.min_trust) :]),
            min_provenance=item.min_provenance,
            proven=frozenset(PROVENANCES[PROVENANCES.index(item.min_provenance) :]),
            require_attestation=item.require_attestation,
            prefer=tuple(item.prefer),
            assess=assessor(
                higher=metric.better == "higher",
                percent=metric.unit == "percent",
                minimum=metric.minimum,
                maximum=metric.maximum,
                bound=None if statistic == "point" else bound_function(statistic, item.confidence),
                min_samples=item.min_samples,
                max_error_share=item.max_error_share,
            ),
        )

    def statistic(self, item: EvidenceClause) -> str:
        if item.statistic is not None:
            return item.statistic
        metric = self.names.metrics[item.metric]
        return suiting_bound(metric) if metric.unit == "percent" else "point"

    def rule(self, item: Any, clauses: dict[str, Clause], stated: dict[str, Any], evidence: dict[str, Any]) -> Rule:
        test = self.test(item, clauses)
        read = tuple(dict.fromkeys(_clauses_of(test)))
        params = {name: self.spec.params[name] for name in dict.fromkeys(_params_of(test))}
        return Rule(
            id=item.id,
            enforcement=item.enforcement,
            test=test,
            clauses=read,
            about_models=any(clauses[name].about == "model" for name in read),
            digest=self.rule_digest(read, evidence, params, stated),
        )

    def rule_digest(
        self, read: tuple[str, ...], evidence: dict[str, Any], params: dict[str, Decimal], stated: dict[str, Any]
    ) -> str:
        """Return the digest of `{"evidence": …, "params": …, "rule": …}`: of all that the rule's meaning rests on.

        Many rules read the same evidence, so its bytes are made once; a test holds the digest against that of the whole value.
        """
        about = self.evidence_bytes.get(read)
        if about is None:
            about = self.evidence_bytes[read] = canonical_bytes({name: evidence[name] for name in read})
        return digest_of(b'{"evidence":%b,"params":%b,"rule":%b}' % (about, canonical_bytes(params), canonical_bytes(stated)))

    def test(self, item: Branch, clauses: dict[str, Clause]) -> Test:
        if item.evidence is None:
            branches = item.any_of if item.any_of is not None else item.all_of or []
            return Combination(item.any_of is not None, tuple(self.test(branch, clauses) for branch in branches))
        clause = clauses[item.evidence]
        floor = item.at_least is not None
        bar = item.at_least if item.at_least is not None else item.at_most
        if bar is None:
            raise TypeError("a rule over evidence without a bar passed the checks")
        if isinstance(bar, ParamRef):
            metric = self.names.metrics[clause.metric]
            self.param_metrics.setdefault(bar.param, (floor, []))[1].append(metric)
            return Assertion(clause, floor, self.spec.params[bar.param], bar.param)
        return Assertion(clause, floor, bar, "")

    def param(self, name: str, number: Decimal) -> Param:
        """A parameter's range is what all metrics that it is compared with have in common."""
        floor, metrics = self.param_metrics[name]
        tops = [metric.maximum for metric in metrics if metric.maximum is not None]
        return Param(name, number, floor, max(metric.minimum for metric in metrics), min(tops) if tops else None)

    def sign_offs(self) -> SignOffs | None:
        held = self.spec.sign_offs
        if held is None:
            return None
        factors = tuple(
            Factor(item.factor, item.role, item.approve, _condition(item.filter, FILTER_VARIABLES)) for item in held.all_of
        )
        minutes, hours = held.reauthenticate_within_minutes, held.request_expires_after_hours
        return SignOffs(factors, tuple(held.exclude), minutes, hours)

    def drift(self) -> Drift | None:
        if self.profile == CONFORMANCE:
            return None
        held = self.resolved_drift()
        return Drift(held["on_fail"], held["on_stale"], held["on_contested"], MappingProxyType(held["max_fall"]))

    # The resolved form: plain dicts in the words of the text, with every default written out.

    def resolved(self) -> dict[str, Any]:
        shaped, spec = self.shaped, self.spec
        metadata = {
            "name": shaped.metadata.name,
            "title": shaped.metadata.title,
            "references": list(shaped.metadata.references),
            "profile": shaped.metadata.profile,
        }
        applies = {"actions": sorted(spec.applies_to.actions), "when": spec.applies_to.when}
        body: dict[str, Any] = {"appliesTo": applies, "forbid": [{"id": item.id, "when": item.when} for item in spec.forbid]}
        if self.profile != CONFORMANCE:
            body |= {
                "params": dict(spec.params),
                "evidence": {name: self.resolved_clause(item) for name, item in spec.evidence.items()},
                "rules": [{"id": item.id, "enforcement": item.enforcement, **_resolved_branch(item)} for item in spec.rules],
                "sign_offs": spec.sign_offs
                and {
                    "all_of": [item.model_dump() for item in spec.sign_offs.all_of],
                    "exclude": sorted(spec.sign_offs.exclude),
                    "reauthenticate_within_minutes": spec.sign_offs.reauthenticate_within_minutes,
                    "request_expires_after_hours": spec.sign_offs.request_expires_after_hours,
                },
                "grant": spec.grant and spec.grant.model_dump(),
                "drift": self.resolved_drift(),
            }
        body["tests"] = [resolved_test(item) for item in spec.tests]
        return {
            "apiVersion": shaped.api_version,
            "kind": shaped.kind,
            "metadata": metadata,
            "semantics": SEMANTICS,
            "spec": body,
        }

    def resolved_clause(self, item: EvidenceClause) -> dict[str, Any]:
        return {**item.model_dump(), "versions": sorted(item.versions), "statistic": self.statistic(item)}

    def resolved_drift(self) -> dict[str, Any]:
        held = self.spec.drift
        if held is None:
            return {"on_fail": "suspend", "on_stale": "suspend", "on_contested": "suspend", "max_fall": {}}
        return held.model_dump()


def _condition(text: str | None, variables: Any = WHEN_VARIABLES) -> Condition | None:
    return None if text is None else compile_condition(text, variables)


def _resolved_branch(item: Branch) -> dict[str, Any]:
    if item.evidence is None:
        kind, branches = ("any_of", item.any_of) if item.any_of is not None else ("all_of", item.all_of)
        return {kind: [_resolved_branch(branch) for branch in branches or []]}
    side, bar = ("at_least", item.at_least) if item.at_least is not None else ("at_most", item.at_most)
    return {"evidence": item.evidence, side: {"param": bar.param} if isinstance(bar, ParamRef) else bar}


def resolved_test(item: TestCase) -> dict[str, Any]:
    """Return a test in its resolved form."""
    return {
        "name": item.name,
        "facts": {name: _resolved_fact(fact) for name, fact in item.facts.items()},
        "expect": {"outcome": item.expect.outcome, "rules": dict(item.expect.rules)},
    }


def _resolved_fact(fact: TestFact) -> dict[str, Any]:
    """A fact is resolved to its observations, or to its bare result."""
    if fact.result is not None:
        return {"result": fact.result}
    observations: list[Any] = [fact] if fact.observations is None else list(fact.observations)
    return {"observations": [_stated(observation) for observation in observations]}


def _stated(observation: TestObservation) -> dict[str, Any]:
    fields = TestObservation.model_fields
    return {name: held for name in fields if (held := getattr(observation, name)) is not None}


def _clauses_of(test: Test) -> list[str]:
    if isinstance(test, Assertion):
        return [test.clause.name]
    return [name for branch in test.branches for name in _clauses_of(branch)]


def _params_of(test: Test) -> list[str]:
    if isinstance(test, Assertion):
        return [test.param] if test.param else []
    return [name for branch in test.branches for name in _params_of(branch)]
