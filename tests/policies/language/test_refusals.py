"""Compile-time refusals: each with its code and place, what to write instead, and all of them at once."""

from decimal import Decimal

import pytest

from policies.language.names import Names
from tests.policies.language.building import (
    BENCHMARKS,
    CLOSING,
    HARM,
    METRICS,
    NAMES,
    REFUSAL,
    ROLES,
    codes_of,
    compiled,
    policy_text,
    problems_of,
)

BOTH = f"{REFUSAL}\n{HARM}"
COST = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: 90"


def rule(bar: str, name: str = "refusal") -> str:
    return f"    - {{id: refuses, evidence: {name}, {bar}}}"


def clause(**settings: str) -> str:
    """Return the refusal clause with settings put in or replaced; an empty one takes a key out."""
    held = {
        "metric": "infeasible_refusal_rate",
        "benchmark": "enterpriseops-gym-aa",
        "versions": '["2026-07"]',
        "max_age_days": "90",
        **settings,
    }
    return "    refusal: {" + ", ".join(f"{key}: {value}" for key, value in held.items() if value) + "}"


TEXT_BARS = {
    '">=80"': "write 80 alone",
    '">= 80"': "write 80 alone",
    '"≥ 80"': "write 80 alone",
    "≥ 80": "write 80 alone",
    "=> 80": "write 80 alone",
    '"> = 80"': "write 80 alone",
    "80 %": "the unit is the metric's",
    '"80%"': "the unit is the metric's",
    '"80"': "without quotes",
    '"9"': "without quotes",
    '"80,0"': "with a decimal point",
    '"8e1"': "plain digits",
    "eighty": "plain digits",
}


@pytest.mark.parametrize(("bar", "instead"), TEXT_BARS.items())
def test_a_bar_of_text_is_refused_with_the_text_and_what_to_write(bar, instead):
    (problem,) = problems_of(rules=f"    - id: refuses\n      evidence: refusal\n      at_least: {bar}")
    assert problem.code == "number"
    assert bar.strip('"') in problem.message
    assert instead in problem.hint
    assert (problem.file, problem.line, problem.column) == ("p.yaml", 11, 17)
    assert problem.field == "spec.rules[0].at_least"


@pytest.mark.parametrize("bar", [">=80", ">= 80", "> = 80"])
def test_a_bare_comparison_is_refused_at_its_place(bar):
    (problem,) = problems_of(rules=f"    - id: refuses\n      evidence: refusal\n      at_least: {bar}")
    assert problem.code == "yaml"
    assert bar in problem.message
    assert problem.line == 11


@pytest.mark.parametrize(
    ("bar", "code"),
    [
        ("80,0", "unknown_key"),  # in a flow mapping the comma ends the value: `0` is a key of its own
        ("true", "number"),
        ("[80]", "number"),
        ("{v: 80}", "bar"),
        ("{param: 80}", "bar"),
        ("8e1", "surprising_scalar"),
        (".nan", "surprising_scalar"),
        (".inf", "surprising_scalar"),
        ("-.inf", "surprising_scalar"),
        ("NaN", "number"),
        ("Infinity", "number"),
        ("1e400", "surprising_scalar"),
        ("79.99999999", "number"),
        ("101", "bar_out_of_range"),
        ("-1", "bar_out_of_range"),
        ("", "no_value"),
    ],
)
def test_a_bar_is_a_finite_number_in_range_or_a_parameter(bar, code):
    assert code in codes_of(problems_of(rules=rule(f"at_least: {bar}")))


def test_a_bar_at_the_ends_of_the_range_is_accepted():
    for end in (0, 100):
        assert compiled(rules=rule(f"at_least: {end}")).rules


REFUSED = {
    "unknown key": ({"evidence": clause(max_age_dayz="90")}, "unknown_key", "did you mean `max_age_days`?"),
    "missing key": ({"evidence": clause(max_age_days="")}, "missing_key", ""),
    "missing versions": ({"evidence": clause(versions="")}, "missing_key", ""),
    "empty versions": ({"evidence": clause(versions="[]")}, "empty_list", ""),
    "versions no list": ({"evidence": clause(versions='"2026-07"')}, "shape", "write `[…]`"),
    "version a number": ({"evidence": clause(versions="[1.0]")}, "text", 'put it in quotes: "1.0"'),
    "unknown metric": (
        {"evidence": clause(metric="infeasible_refusal")},
        "unknown_metric",
        "did you mean `infeasible_refusal_rate`?",
    ),
    "unknown benchmark": ({"evidence": clause(benchmark="enterpriseops")}, "unknown_benchmark", "did you mean"),
    "unknown version": ({"evidence": clause(versions='["2026-08"]')}, "unknown_version", "2026-07"),
    "version twice": ({"evidence": clause(versions='["2026-07", "2026-07"]')}, "duplicate_item", "keep one"),
    "unknown trust": ({"evidence": clause(min_trust="anyone")}, "word", "`archive`"),
    "unknown provenance": ({"evidence": clause(min_provenance="rumour")}, "word", "`claim`"),
    "unknown about": ({"evidence": clause(about="route")}, "word", "`model`"),
    "unknown statistic": ({"evidence": clause(statistic="mean")}, "word", "`point`"),
    "statistic against polarity": (
        {"evidence": clause(statistic="upper_bound")},
        "statistic_against_polarity",
        "write `lower_bound`",
    ),
    "confidence in percent": ({"evidence": clause(confidence="95")}, "range", "write 0.95"),
    "confidence of one": ({"evidence": clause(confidence="1")}, "range", "write 0.95"),
    "samples a fraction": ({"evidence": clause(min_samples="49.5")}, "whole_number", ""),
    "samples none": ({"evidence": clause(min_samples="0")}, "range", ""),
    "error share in percent": ({"evidence": clause(max_error_share="2")}, "range", "write 0.02"),
    "age a word": ({"evidence": clause(max_age_days="forever")}, "whole_number", "`unlimited`"),
    "age of no days": ({"evidence": clause(max_age_days="0")}, "range", "`unlimited`"),
    "attestation a text": ({"evidence": clause(require_attestation='"true"')}, "flag", "without quotes"),
    "source twice": ({"evidence": clause(prefer="[lab, lab]")}, "duplicate_item", "keep one"),
    "floor on lower-is-better": ({"evidence": HARM, "rules": rule("at_least: 5", "harm")}, "polarity", "write `at_most`"),
    "ceiling on higher-is-better": ({"rules": rule("at_most: 80")}, "polarity", "write `at_least`"),
    "bound without rate": (
        {"evidence": COST + ", statistic: upper_bound}", "rules": rule("at_most: 5", "cost")},
        "bound_without_rate",
        "write `point`",
    ),
    "both bars": ({"rules": rule("at_least: 80, at_most: 90")}, "rule_shape", ""),
    "no bar": ({"rules": "    - {id: refuses, evidence: refusal}"}, "rule_shape", ""),
    "bar without evidence": (
        {"rules": "    - {id: a, at_least: 80, any_of: [{evidence: refusal, at_least: 80}]}"},
        "rule_shape",
        "",
    ),
    "two kinds": ({"rules": rule("at_least: 80, all_of: [{evidence: refusal, at_least: 80}]")}, "rule_shape", ""),
    "an id in a branch": (
        {"rules": "    - {id: a, all_of: [{id: b, evidence: refusal, at_least: 80}]}"},
        "unknown_key",
        "known here",
    ),
    "empty any_of": ({"rules": "    - {id: a, any_of: []}"}, "empty_list", ""),
    "empty all_of": ({"rules": "    - {id: a, all_of: []}"}, "empty_list", ""),
    "unknown evidence": ({"rules": rule("at_least: 80", "refusals")}, "unknown_evidence", "did you mean `refusal`?"),
    "no id": ({"rules": "    - {evidence: refusal, at_least: 80}"}, "missing_key", ""),
    "id twice": ({"rules": f"{rule('at_least: 80')}\n{rule('at_least: 90')}"}, "duplicate_id", ""),
    "unknown enforcement": ({"rules": rule("at_least: 80, enforcement: maybe")}, "word", "`hard`"),
    "unused evidence": ({"evidence": BOTH}, "unused_evidence", "write a rule for it"),
    "unused param": ({"params": "{floor: 80}"}, "unused_param", ""),
    "unknown param": (
        {"rules": rule("at_least: {param: flor}"), "params": "{floor: 80}"},
        "unknown_param",
        "did you mean `floor`?",
    ),
    "param out of range": ({"rules": rule("at_least: {param: floor}"), "params": "{floor: 120}"}, "bar_out_of_range", ""),
    "param both ways": (
        {
            "rules": f"{rule('at_least: {param: p}')}\n    - {{id: b, evidence: harm, at_most: {{param: p}}}}",
            "evidence": BOTH,
            "params": "{p: 50}",
        },
        "param_both_ways",
        "two parameters",
    ),
    "no rules": ({"rules": "    []"}, "policy_has_no_requirements", ""),
    "advisory rules only": ({"rules": rule("at_least: 80, enforcement: advisory")}, "policy_has_no_requirements", "hard"),
    "no actions": ({"applies": "{actions: []}"}, "empty_list", ""),
    "unknown role": (
        {"closing": CLOSING.replace("role: security", "role: securty")},
        "unknown_role",
        "did you mean `security`?",
    ),
    "no factors": ({"closing": "  sign_offs: {all_of: []}\n  grant: {max_days: 9, recertify_every_days: 3}"}, "empty_list", ""),
    "nobody to approve": ({"closing": CLOSING.replace("approve: 1", "approve: 0")}, "range", ""),
    "nobody excluded": (
        {"closing": CLOSING.replace("approve: 1}]", "approve: 1}], exclude: []")},
        "empty_list",
        "leave `exclude` out",
    ),
    "no sign-offs": ({"closing": "  grant: {max_days: 90, recertify_every_days: 30}"}, "missing_key", ""),
    "no grant": ({"closing": "  sign_offs: {all_of: [{factor: a, role: security, approve: 1}]}"}, "missing_key", ""),
    "recertified after its end": (
        {"closing": CLOSING.replace("max_days: 90", "max_days: 20")},
        "recertify_after_end",
        "at most 20",
    ),
    "condition does not type-check": ({"applies": "{actions: [write], when: resource.key == 1}"}, "condition", ""),
    "condition names the unknown": ({"applies": "{actions: [write], when: resource.region == 'x'}"}, "unknown_name", ""),
    "condition of a macro": ({"applies": "{actions: [write], when: has(resource.key)}"}, "refused_construct", ""),
    "signer outside a filter": ({"applies": "{actions: [write], when: signer.key == 'x'}"}, "unknown_name", ""),
    "guardrail twice": ({"more": "  forbid: [{id: refuses, when: 'true'}]"}, "duplicate_id", ""),
    "fall of unknown evidence": ({"more": "  drift: {max_fall: {refuse: 3}}"}, "unknown_evidence", "did you mean `refusal`?"),
    "fall of nothing": ({"more": "  drift: {max_fall: {refusal: 0}}"}, "range", ""),
    "unknown drift": ({"more": "  drift: {on_fail: shrug}"}, "word", "`suspend`"),
    "test of unknown evidence": (
        {"more": "  tests: [{name: a, facts: {harm: {value: 1}}, expect: {outcome: fail}}]"},
        "unknown_evidence",
        "",
    ),
    "test of unknown rule": (
        {"more": "  tests: [{name: a, expect: {rules: {refuse: fail}}}]"},
        "unknown_rule",
        "did you mean `refuses`?",
    ),
    "test expects nothing": ({"more": "  tests: [{name: a, expect: {}}]"}, "empty_test", ""),
    "test k over n": (
        {"more": "  tests: [{name: a, facts: {refusal: {k: 3, n: 2}}, expect: {outcome: fail}}]"},
        "test_fact",
        "",
    ),
    "test without value": ({"more": "  tests: [{name: a, facts: {refusal: {n: 2}}, expect: {outcome: fail}}]"}, "test_fact", ""),
    "test result and value": (
        {"more": "  tests: [{name: a, facts: {refusal: {result: stale, value: 2}}, expect: {outcome: fail}}]"},
        "test_fact",
        "",
    ),
    "unknown profile": ({"metadata": "{name: a, title: A, profile: strict}"}, "word", "`supplement`"),
    "conformance with rules": ({"metadata": "{name: a, title: A, profile: conformance}"}, "profile", ""),
    "a name with capitals": ({"metadata": "{name: Made Up, title: A}"}, "name", "small letters"),
    "a blank title": ({"metadata": "{name: a, title: ' '}"}, "blank", ""),
    "rules no list": ({"rules": "    id: refuses"}, "shape", "write `[…]`"),
}


@pytest.mark.parametrize(("parts", "code", "instead"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_policy_is_refused_with_place_and_advice(parts, code, instead):
    found = [problem for problem in problems_of(**parts) if problem.code == code]
    assert found, [str(problem) for problem in problems_of(**parts)]
    for problem in found:
        assert problem.line
        assert problem.column
        assert problem.line >= 3
        assert "\n" not in str(problem)
        assert not problem.message.endswith(".")
        assert instead in problem.hint or instead in problem.message


@pytest.mark.parametrize(("parts", "code", "instead"), REFUSED.values(), ids=REFUSED)
def test_one_mistake_is_told_once(parts, code, instead):
    problems = problems_of(**parts)
    assert len({(problem.line, problem.column, problem.message) for problem in problems}) == len(problems)
    assert "pydantic" not in "".join(map(str, problems)).lower()


def test_all_problems_come_at_once_in_the_order_of_the_text():
    text = b"""\
apiVersion: writegate/v2
kind: DeploymentPolicy
metadata: {name: made-up}
spec:
  appliesTo: {actions: [write], when: resource.reversibel == false && 1/0 == 1}
  params: {floor: 80, unused: 1, floor: 8}
  evidence:
    refusal: {metric: refusal, benchmark: mole, versions: ["2026-10"], max_age_dayz: 1:30}
    harm: {metric: harmful_completion_rate, benchmark: mole, versions: ["2026-09"], max_age_days: 90, statistic: lower_bound}
  rules:
    - {id: a, evidence: refusal, at_least: {param: flor}}
    - {id: a, evidence: harm, at_least: 180}
  sign_offs: {all_of: [{factor: security, role: securty, approve: "1"}]}
"""
    problems = problems_of(text)
    assert codes_of(problems) >= {
        "word", "missing_key", "unknown_name", "refused_construct", "duplicate_key", "unused_param", "unknown_metric",
        "unknown_version", "unknown_key", "surprising_scalar", "statistic_against_polarity", "unknown_param", "duplicate_id",
        "polarity", "bar_out_of_range", "unknown_role", "whole_number",
    }  # fmt: skip
    places = [(problem.line, problem.column) for problem in problems]
    assert places == sorted(places)


def test_a_condition_is_refused_at_the_very_place_in_the_text():
    text = policy_text(applies="{actions: [write], when: resource.reversible == false && resource.region == 'x'}")
    (problem,) = problems_of(text)
    line = text.decode().splitlines()[(problem.line or 0) - 1]
    assert line[(problem.column or 0) - 1 :].startswith(".region")


def test_a_typo_on_line_forty_is_found_on_line_forty():
    padding = "\n".join("    # …" for _ in range(31))
    text = policy_text(rules=f"{padding}\n    - {{id: refuses, evidence: refusal, at_leest: 80}}")
    (first, *_) = [problem for problem in problems_of(text) if problem.code == "unknown_key"]
    assert (first.line, first.file) == (40, "p.yaml")
    assert "`at_leest`" in first.message
    assert "`at_least`" in first.hint


def test_a_text_that_is_no_mapping_is_refused():
    for text in (b"[]", b"80", b"a policy", b'"a"'):
        assert codes_of(problems_of(text)) == {"shape"}


def test_sources_and_slices_are_checked_where_they_are_known():
    names = Names(METRICS, BENCHMARKS, ROLES, sources=frozenset({"lab"}), slices=frozenset({"hr"}))
    text = policy_text(evidence=clause(prefer="[labb]", slice="hrr"))
    assert [problem.code for problem in problems_of(text, names=names)] == ["unknown_name", "unknown_name"]


def test_names_are_those_passed_in():
    bare = Names({}, {}, frozenset())
    assert codes_of(problems_of(policy_text(), names=bare)) == {"unknown_metric", "unknown_benchmark", "unknown_role"}
    assert NAMES.metrics["infeasible_refusal_rate"].maximum == Decimal(100)


def test_a_hostile_text_is_refused_without_a_long_wait():
    for bar in (f'"{" " * 200_000}x"', f'"{"<" * 200_000}"', "9" * 200_000):
        assert codes_of(problems_of(rules=rule(f"at_least: {bar}"))) == {"number"}
