"""What a policy text would have changed: verdicts and decisions as they were judged then, judged once more by it.

A verdict is judged again from its facts document; where the text reads what that policy did not, from what was known at the instant
of the verdict. A decision is judged again from its body, with the policy's row and verdict replaced, by the gate's own judgement.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet

from compliance.deciding.facts import Value
from compliance.deciding.judge import judge as decide
from compliance.deciding.replay import replaced_by
from compliance.models import Decision
from compliance.selectors.deciding.cores import said_in_core
from compliance.selectors.impact import LISTED, SHOWN, Progress
from evaluations.kernel.canonical import timestamp
from policies.language.compiled import CompiledPolicy
from policies.language.evaluator import NoVerdict, judge
from policies.language.facts import Candidates, Facts, from_document
from policies.language.judgement import Judgement
from policies.models import PolicyVersion, Verdict
from policies.selectors.bindings import stricter_numbers
from policies.selectors.comparing import change_between
from policies.selectors.facts import gather_facts, readings_of
from policies.selectors.policies import compile_version, compile_versions
from policies.vocabulary import ANY_DOMAIN, Change, Said

SLICE = 200
"""So many verdicts or decisions are judged again at once: each brings its document."""


class PastRow(NamedTuple):
    """A verdict or a decision that would have gone the other way. `place` is the verdict's domain, or the decision's system."""

    uid: str
    subject: str
    place: str
    at: datetime
    before: str
    after: str


class Past(NamedTuple):
    """Verdicts, or decisions, of a span. The lists hold the first of each kind; `untold` counts those of which the record does not
    tell what the text would have said: it asks by domain, and no domain was meant."""

    newly_permitted: Sequence[PastRow]
    newly_refused: Sequence[PastRow]
    counts: Mapping[Change, int]
    untold: int

    def as_value(self) -> dict[str, Any]:
        """Return it as a canonical value."""
        return {
            **{str(change): [row._asdict() for row in rows] for change, rows in zip(LISTED, self[:2], strict=True)},
            **{f"{change}_count": self.counts[change] for change in LISTED},
            "unchanged": self.counts[Change.UNCHANGED],
            "untold": self.untold,
        }


class _Tally:
    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._listed: dict[Change, list[PastRow]] = {change: [] for change in LISTED}
        self._counts = dict.fromkeys(Change, 0)
        self._untold = 0

    def add(self, row: PastRow | None) -> None:
        if row is None:
            self._untold += 1
            return
        change = change_between(Said(row.before), Said(row.after), supplement=False)
        self._counts[change] += 1
        if change in self._listed and len(self._listed[change]) < self._shown:
            self._listed[change].append(row)

    def past(self) -> Past:
        permitted, refused = (self._listed[change] for change in LISTED)
        return Past(permitted, refused, self._counts, self._untold)


def past_verdicts(after: CompiledPolicy, *, since: datetime, shown: int = SHOWN, progress: Progress | None = None) -> Past:
    """Judge again the verdicts that a version of the policy gave since an instant, while it was in force or after."""
    tally = _Tally(shown)
    versions = _ever_in_force(after.name)
    rows = Verdict.objects.filter(policy_version__in=list(versions), recorded_at__gte=since)
    for verdict in _walk(rows.select_related("subject_version__subject", "facts", "policy_version").defer("core"), progress):
        before = versions[verdict.policy_version_id]
        try:
            judged = _judge_again(after, before, verdict, verdict.as_of)
        except _Untold:
            tally.add(None)
            continue
        outcome = Said.FAIL if judged is None else Said(judged.outcome)
        subject = f"{verdict.subject_version.subject.key}@{verdict.subject_version.number}"
        tally.add(PastRow(str(verdict.uid), subject, verdict.domain, verdict.as_of, verdict.outcome, str(outcome)))
    return tally.past()


def past_decisions(after: CompiledPolicy, *, since: datetime, shown: int = SHOWN, progress: Progress | None = None) -> Past:
    """Judge again the decisions since an instant that asked a version of the policy, with the text in its place."""
    tally = _Tally(shown)
    versions = _ever_in_force(after.name)
    by_digest = {compiled.digest: compiled for compiled in versions.values()}
    compiled: dict[str, CompiledPolicy] = {after.digest: after}
    rows = Decision.objects.filter(at__gte=since, conformance=False).select_related("body")
    for decision in _walk(rows, progress):
        body = json.loads(bytes(decision.body.content))
        facts = body["facts"]
        asked = [
            row
            for row in facts["policies"]
            if row["policy"] == after.name and row["digest"] in by_digest and "refused" not in row
        ]
        if not asked or replaced_by(body) is not None:
            continue
        wanted = {row["digest"] for row in facts["policies"] if "refused" not in row} - compiled.keys()
        if wanted:
            found = list(PolicyVersion.objects.filter(digest__in=wanted))
            compiled |= {version.digest: text for version, text in zip(found, compile_versions(found), strict=True)}
        try:
            changed = _with_text(facts, asked[0], after, by_digest[asked[0]["digest"]], decision.at)
        except _Untold:
            tally.add(None)
            continue
        allowed = decide(changed, compiled, decision.at, timestamp(decision.at)).allowed
        before, now = (Said.PASS if one else Said.FAIL for one in (decision.allowed, allowed))
        tally.add(PastRow(str(decision.uid), decision.subject, decision.resource, decision.at, str(before), str(now)))
    return tally.past()


class _Untold(Exception):
    """The record does not tell what the text would have said."""


def _ever_in_force(name: str) -> dict[int, CompiledPolicy]:
    versions = PolicyVersion.objects.filter(policy__name=name, activations__isnull=False).select_related("policy").distinct()
    return {version.pk: compile_version(version) for version in versions}


def _walk(rows: QuerySet[Any], progress: Progress | None) -> Iterator[Any]:
    whole = rows.count() if progress is not None else 0
    last = done = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk")[:SLICE]):
        yield from page
        last, done = page[-1].pk, done + len(page)
        if progress is not None:
            progress(done, whole)


def _judge_again(after: CompiledPolicy, before: CompiledPolicy, verdict: Verdict, as_of: datetime) -> Judgement | None:
    """Judge what a verdict was judged on by another text; None where that gives no verdict, which denies."""
    if after.uses_domain and not before.uses_domain:
        raise _Untold
    facts = from_document(bytes(verdict.facts.content))
    tightened = stricter_numbers(after, [_tightened(before, facts)])
    domain = facts.domain if after.uses_domain else ANY_DOMAIN
    if readings_of(after) <= readings_of(before):
        facts = _under_names_of(after, before, facts)._replace(domain=domain, params=after.effective_params(tightened))
    else:
        ((_, facts),) = gather_facts(
            after, [verdict.subject_version], domain=domain, known_at=verdict.known_at, tightened=tightened
        )
    try:
        return judge(after, facts, as_of=as_of)
    except NoVerdict:
        return None


def _tightened(before: CompiledPolicy, facts: Facts) -> dict[str, Decimal]:
    """Return what bindings had made stricter when the facts were judged."""
    return {name: number for name, number in facts.params.items() if before.params[name].value != number}


def _under_names_of(after: CompiledPolicy, before: CompiledPolicy, facts: Facts) -> Facts:
    """Return the facts with every observation under the clauses of another text that read it."""
    names: dict[tuple[str, str], str] = {(clause.metric, clause.benchmark): name for name, clause in before.clauses.items()}

    def renamed(candidates: Candidates) -> Candidates:
        read = ((name, names[clause.metric, clause.benchmark]) for name, clause in after.clauses.items())
        return {name: candidates[earlier] for name, earlier in read if earlier in candidates}

    route = facts.route
    return facts._replace(
        candidates=renamed(facts.candidates),
        route=None if route is None else tuple(member._replace(candidates=renamed(member.candidates)) for member in route),
    )


def _with_text(facts: Value, row: Value, after: CompiledPolicy, before: CompiledPolicy, at: datetime) -> Value:
    """Return the facts of a decision as they would have been with another text of a policy in force."""
    others = [held for held in facts["policies"] if held is not row]
    covered = facts["question"]["action"] in after.actions
    own = [{**row, "digest": after.digest, "profile": after.profile}] if covered else []
    policies = sorted([*others, *own], key=lambda held: held["policy"])
    subject = facts["subject"]
    return {
        **facts,
        "policies": policies,
        "subject": None if subject is None else _with_standing(subject, row, after, before, at),
    }


def _with_standing(subject: Value, row: Value, after: CompiledPolicy, before: CompiledPolicy, at: datetime) -> Value:
    key = ("policy", "params_digest", "domain")
    standings = []
    for standing in subject["standings"]:
        if tuple(standing[name] for name in key) != (row["digest"], row["params_digest"], row["domain"]):
            standings.append(standing)
            continue
        verdict = Verdict.objects.select_related("subject_version__subject", "facts").get(uid=standing["verdict"])
        judged = _judge_again(after, before, verdict, at)
        if judged is not None:
            core = json.loads(judged.core_bytes())
            standings.append({**standing, "policy": after.digest, "outcome": str(judged.outcome), **said_in_core(core)})
    reaches = [_with_standing(member, row, after, before, at) for member in subject["reaches"]]
    return {**subject, "standings": standings, "reaches": reaches}
