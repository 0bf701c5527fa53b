"""Every way in which the evidence behind a question can get weaker, or what is asked of it stricter: for any policy and any facts."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

from policies.language.compiled import CompiledPolicy, assertions_of
from policies.language.evaluator import judge
from policies.language.facts import Candidate, Facts
from policies.language.qualifying import hear
from policies.language.testing import extremes
from tests.policies.language.building import METRICS, NOW, observation

DAY = timedelta(days=1)


class State(NamedTuple):
    """A question, judged `later` than now. `step` says what was done last."""

    facts: Facts
    later: timedelta = timedelta()
    step: str = ""


def outcome(policy: CompiledPolicy, state: State) -> str:
    return judge(policy, state.facts, as_of=NOW + state.later).outcome


def weaker(policy: CompiledPolicy, state: State) -> list[State]:
    """Return what can become of a state by one step of ageing, removing, disputing, contesting or tightening."""
    return [
        *_aged(policy, state),
        *_removed(policy, state),
        *_disputed(state),
        *_contested(policy, state),
        *_tightened(policy, state),
    ]


def _places(state: State) -> Iterator[tuple[str, int, Candidate]]:
    for name, held in state.facts.candidates.items():
        for place, item in enumerate(held):
            yield name, place, item


def _with(state: State, clause: str, held: tuple[Candidate, ...], step: str) -> State:
    return State(state.facts._replace(candidates={**state.facts.candidates, clause: held}), state.later, step)


def _aged(policy: CompiledPolicy, state: State) -> Iterator[State]:
    """Nothing changes between the instants at which an observation grows too old, so these alone are tried, and one far away."""
    now = NOW + state.later
    limits = {clause.max_age for clause in policy.clauses.values() if clause.max_age is not None}
    ends = [item.ended_at for _, _, item in _places(state) if item.ended_at is not None]
    unseen = min((end for end in ends if end > now), default=None)
    for moment in sorted({end + limit + timedelta(microseconds=1) for end in ends for limit in limits} | {now + 1000 * DAY}):
        # A run that ends meanwhile is new evidence.
        if moment > now and (unseen is None or moment < unseen):
            yield State(state.facts, moment - NOW, f"aged to {moment}")


def _removed(policy: CompiledPolicy, state: State) -> Iterator[State]:
    for name, place, item in _places(state):
        if not _adverse(policy, state, name, place):
            held = state.facts.candidates[name]
            yield _with(state, name, held[:place] + held[place + 1 :], f"removed {item.evidence}")


def _adverse(policy: CompiledPolicy, state: State, clause: str, place: int) -> bool:
    """Tell whether an observation speaks against the subject, or stops the judging, in any rule: then it supports none."""
    params = policy.effective_params(state.facts.params)
    hearing = hear(policy.clauses[clause], state.facts.candidates[clause], state.facts.domain, NOW + state.later)
    if place in hearing.broken or place in hearing.disputed:
        return True
    bars = [
        (item.floor, params[item.param] if item.param else item.bar)
        for rule in policy.rules
        for item in assertions_of(rule.test)
        if item.clause.name == clause
    ]
    measures = [entry.measure for entry in hearing.live if entry.place == place]
    return any(measure < bar if floor else measure > bar for measure in measures for floor, bar in bars)


def _disputed(state: State) -> Iterator[State]:
    for name, place, item in _places(state):
        if item.ruling == "retracted":
            continue  # signed by a quorum, and never followed by a mere dispute
        for ruling in ("disputed", "dispute_upheld"):
            held = state.facts.candidates[name]
            new = (*held[:place], item._replace(ruling=ruling), *held[place + 1 :])
            yield _with(state, name, new, f"{ruling}: {item.evidence}")


def _contested(policy: CompiledPolicy, state: State) -> Iterator[State]:
    """A measurement at its worst comes in: of a source that spoke before, or of another; a run, or a publication.

    A later run of a source that spoke before is left out. It replaces the earlier one, a dispute about that included, and where
    the policy's `prefer` names another source the contest may then be settled: that is new evidence, not a contest of the old.
    """
    taken = sum(len(held) for held in state.facts.candidates.values())
    for name, clause in policy.clauses.items():
        held = state.facts.candidates.get(name, ())
        worst = extremes(policy, clause)[1]
        sources = sorted({item.source for item in held} | {"somebody"})
        for source in sources:
            for run in (True, False) if source == "somebody" else (False,):
                against = qualifying(policy, name, place=100 + taken, value=worst, source=source, run_ended=run)
                yield _with(state, name, (*held, against._replace(ended_at=NOW + state.later)), f"contested by {source}")


def _tightened(policy: CompiledPolicy, state: State) -> Iterator[State]:
    now = policy.effective_params(state.facts.params)
    for name, param in policy.params.items():
        for by in (Decimal("0.01"), Decimal(1), Decimal(10)):
            bar = now[name] + by if param.floor else now[name] - by
            if bar >= param.minimum and (param.maximum is None or bar <= param.maximum):
                yield State(state.facts._replace(params={**now, name: bar}), state.later, f"{name} to {bar}")


# Facts for any policy.


def qualifying(policy: CompiledPolicy, name: str, *, place: int, value: Decimal, **stated: Any) -> Candidate:
    """Return an observation that qualifies for a clause in everything it does not state."""
    clause = policy.clauses[name]
    held = {
        "evidence": f"ev-{place}",
        "metric": clause.metric,
        "benchmark": clause.benchmark,
        "version": min(clause.versions),
        "slice": "hr" if clause.by_domain else clause.slice,
        "trust": clause.min_trust,
        "provenance": clause.min_provenance,
        "attested": clause.require_attestation,
        "about": clause.about,
        "n": 1000,
        "errored": 0,
        "unscored": 0,
        "source": "one",
        **stated,
    }
    return observation(str(value), **held)


_TWISTS: tuple[tuple[str, Any], ...] = (
    *(("source", name) for name in ("two", "two", "three")),
    *(("ended_at", NOW - days * DAY) for days in (-3, 0, 9, 11, 80, 89, 90, 91, 179, 180, 181, 400)),
    *(("ruling", word) for word in ("disputed", "dispute_upheld", "dispute_dismissed", "retracted")),
    *(("supersedes", f"ev-{place}") for place in range(4)),
    *(("n", n) for n in (None, 20, 60, 100, 1_000_000)),
    *(("errored", lost) for lost in (None, 15, 60)),
    *(
        ("k", Decimal(k)) for k in ("812.5", "30", "2000")
    ),  # a mean over repeats; another rate than the value; more than there are
    ("version", "2026-03"),
    ("harness", "react 2"),
    ("run_ended", False),
    ("ended_at", None),
    ("trust", "vendor"),
    ("provenance", "claim"),
    ("run_status", "partial"),
    ("slice", "calendar"),
    ("identity_problem", "identity_unresolved"),
)


def states(policy: CompiledPolicy) -> st.SearchStrategy[State]:
    """Return questions about a policy: of each clause up to three observations near its bars, with a few things amiss."""
    held = {name: _several(policy, name, 10 * number) for number, name in enumerate(policy.clauses)}
    return st.fixed_dictionaries(held).map(lambda drawn: State(Facts("made-up-1", "sha256:1", "hr", {}, drawn, (), METRICS)))


def _several(policy: CompiledPolicy, name: str, first: int) -> st.SearchStrategy[tuple[Candidate, ...]]:
    clause = policy.clauses[name]
    bars = sorted({item.bar for rule in policy.rules for item in assertions_of(rule.test) if item.clause.name == name})
    best, worst = extremes(policy, clause)
    near = {bar + by for bar in bars for by in (Decimal("-0.1"), Decimal(0), Decimal("0.1"), Decimal(-5), Decimal(5))}
    values = sorted(value for value in near if clause.minimum <= value and (clause.maximum is None or value <= clause.maximum))
    one = st.tuples(st.sampled_from([best, best, best, *values, worst]), st.lists(st.sampled_from(_TWISTS), max_size=2))
    return st.lists(one, max_size=3).map(
        lambda drawn: tuple(
            qualifying(policy, name, place=first + place, value=value, **dict(twists))
            for place, (value, twists) in enumerate(drawn)
        )
    )
