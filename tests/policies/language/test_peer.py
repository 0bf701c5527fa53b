"""Our evaluator and an independent engine give the same answer, rule by rule, on made-up policies over made-up facts."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.evaluator import judge
from policies.language.facts import Facts
from tests.policies.language.building import NOW, compiled
from tests.policies.language.peer import TooNear, ask
from tests.policies.language.weakening import states

METRIC_OF = {
    "refusal": "infeasible_refusal_rate",
    "harm": "harmful_completion_rate",
    "tasks": "task_completion_rate",
    "cost": "cost_per_task_usd",
}
BARS = {"refusal": ["60", "80", "95.5"], "harm": ["5", "20", "2.5"], "tasks": ["50", "75"], "cost": ["0.93", "3"]}
FLOORS = {"refusal", "tasks"}


@st.composite
def policies(draw):
    """Draw a policy text's parts: two to four clauses with any settings, one to three rules that are trees over them."""
    names = draw(st.lists(st.sampled_from(sorted(METRIC_OF)), min_size=1, max_size=4, unique=True))
    params: dict[str, str] = {}
    rules = [f"    - {{id: r{place}, {draw(trees(names, params, 3))[1:]}" for place in range(draw(st.integers(1, 3)))]
    enforced = [
        draw(st.sampled_from(["", ", enforcement: soft", ", enforcement: advisory"])) if place else ""
        for place in range(len(rules))
    ]
    rules = [f"{rule[:-1]}{word}}}" for rule, word in zip(rules, enforced, strict=True)]
    used = [name for name in names if any(f"evidence: {name}," in rule for rule in rules)]
    evidence = [draw(clauses(name)) for name in used]
    written = ", ".join(f"{name}: {bar}" for name, bar in params.items())
    return compiled(rules="\n".join(rules), evidence="\n".join(evidence), params=f"{{{written}}}" if params else "")


@st.composite
def trees(draw, names, params, depth):
    kind = draw(st.sampled_from(["leaf", "leaf", "any_of", "all_of"])) if depth else "leaf"
    if kind != "leaf":
        branches = [draw(trees(names, params, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return f"{{{kind}: [{', '.join(branches)}]}}"
    name = draw(st.sampled_from(names))
    bar = draw(st.sampled_from(BARS[name]))
    if draw(st.booleans()):
        params[f"{name}-bar"] = params.get(f"{name}-bar", bar)
        bar = f"{{param: {name}-bar}}"
    return f"{{evidence: {name}, {'at_least' if name in FLOORS else 'at_most'}: {bar}}}"


@st.composite
def clauses(draw, name):
    optional = {
        "slice": ["overall", "resource.domain", "hr"],
        "min_samples": ["20", "100", "1000"],
        "max_error_share": ["0.02", "0"],
        "min_trust": ["archive", "vendor", "independent"],
        "min_provenance": ["claim", "reported", "run_log"],
        "require_attestation": ["true"],
        "prefer": ["[one]", "[two, one]", "[three, two]"],
    }
    if name != "cost":
        optional |= {"statistic": ["point"], "confidence": ["0.9", "0.99"]}
    stated = draw(st.fixed_dictionaries({}, optional={key: st.sampled_from(words) for key, words in optional.items()}))
    held = {
        "metric": METRIC_OF[name],
        "benchmark": "enterpriseops-gym-aa",
        "versions": draw(st.sampled_from(['["2026-07"]', '["2026-03", "2026-07"]'])),
        "max_age_days": draw(st.sampled_from(["90", "180", "unlimited"])),
        **stated,
    }
    return f"    {name}: {{{', '.join(f'{key}: {value}' for key, value in held.items())}}}"


@st.composite
def questions(draw):
    policy = draw(policies())
    given_facts = draw(states(policy)).facts._replace(domain=draw(st.sampled_from(["hr", "hr", "any"])))
    tightened = {}
    for name, param in policy.params.items():
        if draw(st.booleans()):
            tightened[name] = param.value + 1 if param.floor else param.value / 2
    return policy, given_facts._replace(params=tightened)


def agree(policy, given_facts: Facts) -> str:
    """Hold the two answers against each other; return ours, "" where the two need not agree."""
    ours = judge(policy, given_facts, as_of=NOW)
    try:
        theirs = ask(policy.resolved, given_facts, NOW)
    except TooNear:
        return ""
    results = {rule.id: rule.result for rule in ours.rules}
    assert theirs.results == results
    assert theirs.allow == (ours.outcome == "pass")
    if ours.result in {"missing", "stale", "contested", "error"}:
        assert not theirs.allow
    return ours.result


@settings(max_examples=60, deadline=None)
@given(questions())
def test_an_independent_engine_gives_the_same_answer(question):
    agree(*question)


@pytest.mark.slow
def test_an_independent_engine_gives_the_same_answer_2_000_times():
    seen: Counter[str] = Counter()

    @settings(max_examples=2_300, deadline=None, database=None)
    @given(questions())
    def hold(question):
        seen[agree(*question)] += 1

    hold()
    assert sum(count for word, count in seen.items() if word) >= 2_000
    # Had every answer been one and the same word, agreeing would say little.
    assert set(seen) >= {"pass", "fail", "missing", "stale", "contested", "error"}
    assert seen["pass"] >= 100
