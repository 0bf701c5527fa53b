"""The language once more, in Rego: a policy becomes a module, the facts its input, and an engine that is not ours judges them.

Written from the published description, not from our code. Rego has no confidence bounds, so rates and bounds are reckoned here, by
exact fractions and scipy's beta distribution, and handed over as whole millionths; all else is decided in Rego. Only models are
translated: for an agent the judgement is the worst over its models, which is one sentence more and no other rule.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, NamedTuple

import regopy
from scipy.stats import beta

from policies.language.facts import Candidate, Facts
from tests.policies.language.rego_texts import CLAUSE, LEAF, PREFERENCE, PRELUDE

MILLION = 1_000_000
TRUST = ["archive", "secondary", "vendor", "independent", "reproduced"]
PROVENANCE = ["claim", "reported", "run_log", "recounted"]


class Answer(NamedTuple):
    """What the peer says: `allow`, and the result of each rule."""

    allow: bool
    results: dict[str, str]


class TooNear(Exception):
    """A bound lies so near to a bar that two ways of rounding may differ: the two engines need not agree."""


def ask(resolved: dict[str, Any], facts: Facts, as_of: datetime) -> Answer:
    """Return what the peer says of a policy, given in its resolved form, over these facts. Raises `TooNear`."""
    spec = resolved["spec"]
    module = PRELUDE + "\n".join(_module(spec, facts))
    given = {
        "as_of": _micros(as_of),
        "domain": facts.domain,
        "candidates": {
            name: [_observation(item, clause, _bars(spec, facts, name)) for item in facts.candidates.get(name, ())]
            for name, clause in spec["evidence"].items()
        },
    }
    engine = regopy.Interpreter()
    engine.add_module("peer", module)
    engine.set_input(given)
    (value,) = json.loads(str(engine.query("data.peer.answer")))["expressions"]
    return Answer(value["allow"], value["results"])


# The policy.


def _module(spec: dict[str, Any], facts: Facts) -> Iterator[str]:
    for name, clause in spec["evidence"].items():
        yield f"q_{name} := {json.dumps(_clause(clause))}"
        yield CLAUSE.replace("NAME", name)
    deciding = [rule["id"] for rule in spec["rules"] if rule["enforcement"] != "advisory"]
    yield f"deciding := {json.dumps(deciding)}"
    names = []
    for place, rule in enumerate(spec["rules"]):
        name, lines = _node(rule, f"rule{place}", spec, facts)
        yield from lines
        names.append(f"{json.dumps(rule['id'])}: {name}")
    yield f"results := {{{', '.join(names)}}}"


def _node(test: dict[str, Any], name: str, spec: dict[str, Any], facts: Facts) -> tuple[str, list[str]]:
    """Return the name of the Rego rule that a test becomes, and the lines that define it."""
    if "evidence" in test:
        bar = str(_bar(test, spec, facts))
        prefer = spec["evidence"][test["evidence"]]["prefer"]
        chain = [PREFERENCE.replace("SOURCE", json.dumps(source)) for source in prefer]
        first = 'prefers_LEAF := "contested" if false\n' + "".join([*chain, '\nelse := "contested"\n'])
        return name, [
            LEAF.replace("PREFERENCE", first).replace("LEAF", name).replace("NAME", test["evidence"]).replace("BAR", bar)
        ]
    kind = "any_of" if "any_of" in test else "all_of"
    parts, lines = [], []
    for place, branch in enumerate(test[kind]):
        part, more = _node(branch, f"{name}_{place}", spec, facts)
        parts.append(part)
        lines += more
    ranks = f"[{', '.join(f'rank[{part}]' for part in parts)}]"
    pick = "max" if kind == "any_of" else "min"
    return name, [*lines, f"{name} := word if {{ some word, place in rank; place == {pick}({ranks}) }}"]


def _bar(test: dict[str, Any], spec: dict[str, Any], facts: Facts) -> int:
    bar = test.get("at_least", test.get("at_most"))
    if isinstance(bar, dict):
        bar = facts.params.get(bar["param"], spec["params"][bar["param"]])
    return int(Decimal(bar) * MILLION)


def _bars(spec: dict[str, Any], facts: Facts, name: str) -> set[int]:
    def within(test: dict[str, Any]) -> Iterator[int]:
        if "evidence" in test:
            if test["evidence"] == name:
                yield _bar(test, spec, facts)
        else:
            for branch in test.get("any_of", test.get("all_of", ())):
                yield from within(branch)

    return {bar for rule in spec["rules"] for bar in within(rule)}


LOWER_IS_BETTER = {"harmful_completion_rate", "over_refusal_rate", "cost_per_task_usd"}
NO_RATES = {"cost_per_task_usd"}


def _clause(clause: dict[str, Any]) -> dict[str, Any]:
    days, share = clause["max_age_days"], clause["max_error_share"]
    return {
        **{key: clause[key] for key in ("about", "metric", "benchmark", "versions", "slice", "statistic", "min_samples")},
        "require_attestation": clause["require_attestation"],
        "higher": clause["metric"] not in LOWER_IS_BETTER,
        "minimum": 0,
        "maximum": None if clause["metric"] in NO_RATES else 100 * MILLION,
        "min_trust": TRUST.index(clause["min_trust"]),
        "min_provenance": PROVENANCE.index(clause["min_provenance"]),
        "max_age": None if days == "unlimited" else int(days) * 86_400 * MILLION,
        "max_error_share": None if share is None else int(Decimal(share) * MILLION),
    }


# The facts.


def _observation(item: Candidate, clause: dict[str, Any], bars: set[int]) -> dict[str, Any]:
    lost = (item.errored or 0) + (item.unscored or 0)
    same = ("evidence", "source", "attested", "metric", "benchmark", "version", "slice", "n", "run_status", "run_ended", "harness",
            "about", "identity_problem", "ruling", "supersedes")  # fmt: skip
    return {
        **{name: getattr(item, name) for name in same},
        "trust": TRUST.index(item.trust),
        "provenance": PROVENANCE.index(item.provenance),
        "value": int(item.value * MILLION),
        "k": None if item.k is None else int(item.k * MILLION),
        "lost": lost,
        "errors_stated": None not in {item.n, item.errored, item.unscored},
        "ended": None if item.ended_at is None else _micros(item.ended_at),
        "measure": _measure(item, clause, lost, bars),
    }


def _measure(item: Candidate, clause: dict[str, Any], lost: int, bars: set[int]) -> int:
    """Return the judged statistic in millionths: errors count against the subject, every rounding goes against it."""
    stated = Fraction(item.value)
    if item.n is None or clause["metric"] in NO_RATES:
        return int(stated * MILLION)
    higher = clause["metric"] not in LOWER_IS_BETTER
    n = item.n
    if item.k is not None:
        share = min(Fraction(item.k), Fraction(n - lost)) if higher else min(Fraction(item.k) + lost, Fraction(n))
        rate, count = share * 100 / n, share
    else:
        rate, count = stated, stated * n / 100
        count = min(count, Fraction(n - lost)) if higher else max(count, Fraction(lost))
    if clause["statistic"] == "point" or (clause["min_samples"] is not None and n < clause["min_samples"]):
        return floor(rate * MILLION) if higher else ceil(rate * MILLION)
    whole = floor(count) if higher else ceil(count)
    if not 0 <= whole <= n:
        return 0  # a row that cannot be right: it is judged an error before its statistic is looked at
    bound = _bound(whole, n, float(clause["confidence"]), higher=higher)
    millionths = Fraction(bound) * 100 * MILLION
    if 0 < whole < n or (whole == n) == higher:
        for bar in bars:
            if abs(millionths - bar) < 2:
                raise TooNear
    return floor(millionths) if higher else ceil(millionths)


@lru_cache(maxsize=10_000)
def _bound(k: int, n: int, confidence: float, *, higher: bool) -> float:
    if higher:
        return 0.0 if k == 0 else float(beta.ppf(1 - confidence, k, n - k + 1))
    return 1.0 if k == n else float(beta.ppf(confidence, k + 1, n - k))


def _micros(moment: datetime) -> int:
    return round(moment.timestamp()) * MILLION + moment.microsecond
