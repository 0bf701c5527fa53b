"""Made-up facts for the properties: few values, many collisions, so that every branch is met."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from policies.language.compiled import CompiledPolicy
from policies.language.facts import AliasUsed, Candidate, Facts
from policies.language.results import PROVENANCES, TRUST_TIERS, Ruling
from tests.policies.language.building import HARM, METRICS, NOW, REFUSAL, compiled, observation


def _refusal(settings: str) -> str:
    return REFUSAL.replace("max_age_days", f"{settings}, max_age_days")


_RULES = """
    - {id: floor, evidence: refusal, at_least: {param: floor}}
    - {id: ceiling, evidence: harm, at_most: {param: ceiling}, enforcement: soft}
""".strip("\n")
_TREE = """
    - id: tree
      any_of:
        - {evidence: refusal, at_least: {param: floor}}
        - all_of:
            - {evidence: harm, at_most: {param: ceiling}}
            - {evidence: refusal, at_least: 60}
""".strip("\n")

POLICIES: tuple[CompiledPolicy, ...] = tuple(
    compiled(rules=rules, evidence=f"{_refusal(settings)}\n{HARM}", params="{floor: 80, ceiling: 5}")
    for rules in (_RULES, _TREE)
    for settings in (
        "statistic: point, min_trust: secondary, min_provenance: claim",
        "min_samples: 50, max_error_share: 0.1",
        "statistic: point, prefer: [one, two]",
    )
)


# An observation qualifies, unless one or two of these twists say otherwise; most pass, so that passes and fails are both common.
_TWISTS: tuple[tuple[str, Any], ...] = (
    *(("source", name) for name in ("two", "two", "three")),
    *(("ended_at", NOW - timedelta(days=days)) for days in (-3, 0, 9, 9, 11, 60, 70, 80, 89, 90, 91, 179, 181, 400)),
    *(("harness", name) for name in ("react 2", "react 2")),
    *(("ruling", word.value) for word in Ruling if word),
    *(("supersedes", f"ev-{place}") for place in range(6)),
    *(("trust", tier) for tier in (TRUST_TIERS[1], TRUST_TIERS[2])),
    *(("errored", lost) for lost in (None, 60, 200)),
    ("unscored", 60),
    ("run_ended", False),
    ("ended_at", None),
    ("provenance", PROVENANCES[0]),
    ("run_status", "partial"),
    ("slice", "hr"),
    ("about", "agent"),
    ("identity_problem", "identity_unresolved"),
    ("attested", True),
    ("repeats", 3),
    ("ordinal", 7),
    *(("subject_as_written", text) for text in ('"', "\\", "caf\u00e9", "\U0001f600", "a\u2028b", "\x00\n\t\x7f")),
)
_REFUSALS = ((None, 950, 1000), (None, 900, 1000), (None, 850, 1000), (None, 799, 1000), (None, 500, 1000), (None, 19, 20))
_BARE_REFUSALS = (("80", None, None), ("79.999999", None, None), ("90", None, 60), ("95", None, 1000))
_HARMS = (
    (None, 0, 1000),
    (None, 5, 1000),
    (None, 20, 1000),
    (None, 40, 1000),
    (None, 400, 1000),
    ("5", None, 1000),
    ("0", None, None),
)


def _built(
    place: int, metric: dict[str, str], numbers: tuple[str | None, int | None, int | None], twists: list[tuple[str, Any]]
) -> Candidate:
    value, k, n = numbers
    held = {"k": k, "n": n, "errored": 0, "unscored": 0, **metric, "evidence": f"ev-{place}", "source": "one", **dict(twists)}
    return observation(value, **held)


def _several(metric: dict[str, str], numbers: tuple[Any, ...], first: int) -> st.SearchStrategy[tuple[Candidate, ...]]:
    one = st.tuples(st.sampled_from(numbers), st.lists(st.sampled_from(_TWISTS), max_size=2))
    return st.lists(one, max_size=3).map(
        lambda drawn: tuple(_built(first + place, metric, counted, twists) for place, (counted, twists) in enumerate(drawn))
    )


_ON_REFUSAL = {"metric": "infeasible_refusal_rate", "benchmark": "enterpriseops-gym-aa", "version": "2026-07"}
_ON_HARM = {"metric": "harmful_completion_rate", "benchmark": "mole", "version": "2026-09"}
REFUSALS = _several(_ON_REFUSAL, _REFUSALS + _BARE_REFUSALS, 0)
HARMS = _several(_ON_HARM, _HARMS, 3)
ALIASES = st.sampled_from([(), (AliasUsed("one", "Made-Up 1", "al-2"), AliasUsed("one", 'made "up"', "al-1"))])
PARAMS = st.fixed_dictionaries(
    {}, optional={"floor": st.sampled_from([Decimal(80), Decimal("90.5")]), "ceiling": st.just(Decimal("1.5"))}
)

# What lacks one thing only is where a fail could turn into a pass.
_SUPPORT = observation(k=950, n=1000, errored=0, unscored=0, source="three", evidence="ev-8", **_ON_REFUSAL)
_HARMLESS = observation(k=0, n=1000, errored=0, unscored=0, source="three", evidence="ev-9", **_ON_HARM)
NEAR_REFUSALS = REFUSALS.map(lambda drawn: (*drawn, _SUPPORT))
NEAR_HARMS = HARMS.map(lambda drawn: (*drawn, _HARMLESS))

FACTS: st.SearchStrategy[Facts] = st.builds(
    lambda refusal, harm, aliases, params, domain: Facts(
        "made-up-1", "sha256:1", domain, params, {"refusal": refusal, "harm": harm}, aliases, METRICS
    ),
    REFUSALS | NEAR_REFUSALS,
    HARMS | NEAR_HARMS | st.just((_HARMLESS,)),
    ALIASES,
    PARAMS,
    st.just("any"),
)
