"""The gate's question: which candidates does a policy clear, and why not the others? Judged afresh, stored nowhere."""

from collections.abc import Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from evaluations.kernel.canonical import timestamp
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from policies.language.compiled import CompiledPolicy
from policies.language.evaluator import Judgement, NoVerdict, judge
from policies.language.explain import sentence
from policies.language.facts import NOTHING, Facts
from policies.language.flip_sentences import flip_value
from policies.language.flipping import Costs, Flip, flips_of
from policies.models import PolicyVersion, System
from policies.selectors.bindings import tightening_for
from policies.selectors.costs import digests_in, task_costs
from policies.selectors.facts import gather_facts
from policies.selectors.policies import compile_version, state_of
from policies.selectors.systems import judged_domains
from policies.vocabulary import Outcome, Result, VersionState


class GateRow(NamedTuple):
    """One candidate in one domain; `judgement` is None, with the reason in `no_verdict`, where nothing could be judged."""

    version: SubjectVersion
    domain: str
    judgement: Judgement | None
    no_verdict: str = ""
    facts: Facts | None = None

    @property
    def outcome(self) -> str:
        return Outcome.FAIL.value if self.judgement is None else str(self.judgement.outcome)

    @property
    def result(self) -> str:
        return Result.MISSING.value if self.judgement is None else str(self.judgement.result)


class Gate(NamedTuple):
    """The whole answer. `cleared` counts rows that pass; `costs` is what a task costs whoever would be measured."""

    policy_version: PolicyVersion
    compiled: CompiledPolicy
    state: VersionState
    as_of: datetime
    known_at: datetime
    rows: Sequence[GateRow]
    costs: Costs = MappingProxyType({})

    @property
    def cleared(self) -> int:
        return sum(row.outcome == Outcome.PASS for row in self.rows)

    @property
    def total(self) -> int:
        return len(self.rows)

    def flips(self, row: GateRow) -> tuple[Flip, ...]:
        """Return what would flip each rule of a row that refuses; none where it passes or nothing could be judged."""
        if row.judgement is None or row.facts is None or row.outcome == Outcome.PASS:
            return ()
        return flips_of(self.compiled, row.facts, row.judgement, as_of=self.as_of, costs=self.costs)

    def as_value(self) -> dict[str, Any]:
        """Return the published JSON shape of the answer."""
        return {
            "policy": self.policy_version.policy.name,
            "version": self.policy_version.number,
            "state": str(self.state),
            "digest": self.policy_version.digest,
            "as_of": timestamp(self.as_of),
            "known_at": timestamp(self.known_at),
            "cleared": self.cleared,
            "total": self.total,
            "candidates": [self._row_value(row) for row in self.rows],
        }

    def _row_value(self, row: GateRow) -> dict[str, Any]:
        flips = self.flips(row)
        return {
            "subject": row.version.subject.key,
            "domain": row.domain,
            "outcome": row.outcome,
            "result": row.result,
            "rules": [
                {
                    "id": rule.id,
                    "result": str(rule.result),
                    "message": sentence(rule, self.compiled),
                    "evidence": list(rule.deciding),
                    "flips": [flip_value(flip, self.compiled) for flip in flips if flip.rule == rule.id],
                }
                for rule in (row.judgement.rules if row.judgement else ())
            ],
        }


def ask_gate(
    policy_version: PolicyVersion,
    *,
    as_of: datetime,
    known_at: datetime,
    system: System | None = None,
    versions: Sequence[SubjectVersion] | None = None,
) -> Gate:
    """Judge every candidate (or the given versions) by one policy version, as of an instant, on what was known at another.

    For a system the parameters are as its bindings tighten them; without one they are the policy's own.
    """
    compiled = compile_version(policy_version)
    chosen = current_versions(known_at=known_at, candidates_only=True) if versions is None else versions
    rows: list[GateRow] = []
    tightened = NOTHING if system is None else tightening_for(policy_version, system=system, known_at=known_at)
    for domain in judged_domains(compiled, [system] if system is not None else System.objects.all()):
        for version, facts in gather_facts(compiled, chosen, domain=domain, known_at=known_at, tightened=tightened):
            try:
                rows.append(GateRow(version, domain, judge(compiled, facts, as_of=as_of), "", facts))
            except NoVerdict as refusal:
                rows.append(GateRow(version, domain, None, str(refusal)))
    rows.sort(key=lambda row: (row.version.subject.key, row.domain))
    refused = {
        digest for row in rows if row.facts is not None and row.outcome != Outcome.PASS for digest in digests_in(row.facts)
    }
    costs = task_costs(refused, known_at=known_at)
    return Gate(policy_version, compiled, state_of(policy_version, known_at=known_at), as_of, known_at, rows, costs)
