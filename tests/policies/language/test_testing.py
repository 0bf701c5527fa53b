"""The tests that travel with a policy: green where the policy means what its author expects, and said plainly where not."""

from pathlib import Path

import pytest

import policies
from policies.language.compiler import compile_policy
from policies.language.testing import run_tests
from tests.policies.language.building import CLOSING, HARM, NAMES, REFUSAL, compiled

LIBRARY = sorted((Path(policies.__file__).parent / "library").glob("*.yaml"))
COST = "    cost: {metric: cost_per_task_usd, benchmark: mole, versions: ['2026-09'], max_age_days: 90}"
COST_RULE = "    - {id: cheap, evidence: cost, at_most: 3}"


def reports(*tests, **parts):
    written = "\n".join(f"    - {test}" for test in tests)
    return run_tests(compiled(more=f"  tests:\n{written}", **parts))


def only(facts, expect, **parts):
    (report,) = reports(f"{{name: made up, facts: {facts}, expect: {expect}}}", **parts)
    return report


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_the_bundled_policies_tests_are_green(path):
    policy = compile_policy(path.read_bytes(), NAMES, filename=path.name)
    ran = run_tests(policy)
    assert [report.name for report in ran] == [test["name"] for test in policy.tests]
    assert ran
    assert [report for report in ran if not report.passed] == []


def test_a_wrong_expectation_is_told_with_rule_expected_and_got():
    report = only("{refusal: {k: 539, n: 1000}}", "{outcome: pass, rules: {refuses: pass}}")
    assert not report.passed
    assert report.problems == ("the outcome is `fail`, not `pass`", "rule `refuses` gives `fail` (misses bar), not `pass`")


def test_each_test_is_reported_in_the_order_of_the_text():
    ran = reports(
        "{name: one, facts: {refusal: {value: 90}}, expect: {outcome: pass}}",
        "{name: two, expect: {outcome: pass}}",
        "{name: three, expect: {rules: {refuses: missing}}}",
    )
    assert [(report.name, report.passed) for report in ran] == [("one", True), ("two", False), ("three", True)]
    assert run_tests(compiled()) == ()


@pytest.mark.parametrize("result", ["pass", "fail", "missing", "stale", "contested", "error"])
@pytest.mark.parametrize(
    ("clause", "parts"),
    [
        ("refusal", {}),
        ("refusal", {"evidence": REFUSAL.replace("max_age", "statistic: point, about: agent, max_age")}),
        ("refusal", {"evidence": REFUSAL.replace("max_age", "slice: resource.domain, min_samples: 50, max_age")}),
        ("refusal", {"evidence": REFUSAL.replace("max_age", "max_error_share: 0.1, require_attestation: true, max_age")}),
        ("harm", {"evidence": HARM, "rules": "    - {id: refuses, evidence: harm, at_most: 5}"}),
        ("cost", {"evidence": COST, "rules": COST_RULE.replace("cheap", "refuses")}),
    ],
    ids=["bound", "point", "domain", "strict", "ceiling", "money"],
)
def test_a_bare_result_is_brought_about(result, clause, parts):
    outcome = "pass" if result == "pass" else "fail"
    report = only(f"{{{clause}: {{result: {result}}}}}", f"{{outcome: {outcome}, rules: {{refuses: {result}}}}}", **parts)
    assert report.problems == ()


@pytest.mark.parametrize(
    ("result", "parts", "gives"),
    [
        ("stale", {"evidence": REFUSAL.replace("max_age_days: 90", "max_age_days: unlimited")}, "pass"),
        ("fail", {"rules": "    - {id: refuses, evidence: refusal, at_least: 0}"}, "pass"),
        ("pass", {"rules": "    - {id: refuses, evidence: refusal, at_least: 100}"}, "fail"),
    ],
)
def test_a_bare_result_that_the_clause_cannot_give_is_told(result, parts, gives):
    report = only(f"{{refusal: {{result: {result}}}}}", f"{{rules: {{refuses: {gives}}}}}", **parts)
    assert report.problems == (f"`refusal` cannot be `{result}` by its clause and bars; it gives `{gives}`",)


def test_a_bare_result_reaches_every_part_that_reads_the_clause():
    rules = """
    - id: either
      any_of:
        - {evidence: refusal, at_least: 60}
        - all_of: [{evidence: harm, at_most: 5}, {evidence: refusal, at_least: 95}]
""".strip("\n")
    parts = {"evidence": f"{REFUSAL}\n{HARM}", "rules": rules}
    assert only("{refusal: {result: fail}, harm: {result: pass}}", "{outcome: fail}", **parts).passed
    assert only("{refusal: {result: pass}}", "{outcome: pass, rules: {either: pass}}", **parts).passed


@pytest.mark.parametrize(
    ("stated", "result"),
    [
        ("{value: 80.1}", "pass"),
        ("{value: 80.1, k: 1}", "pass"),  # k without n says nothing beside the value
        ("{value: 79.9}", "fail"),
        ("{value: 90, age_days: 90}", "pass"),
        ("{value: 90, age_days: 91}", "stale"),
        ("{value: 90, age_days: 1000000000}", "stale"),
        ("{value: 90, trust: vendor}", "missing"),
        ("{value: 90, provenance: claim}", "missing"),
        ("{value: 90, version: 2026-03}", "missing"),
        ("{value: 90, slice: hr}", "missing"),
        ("{value: 90, run_status: partial}", "missing"),
        ("{value: 90, ruling: disputed}", "contested"),
        ("{value: 90, ruling: retracted}", "missing"),
        ("{k: 85, n: 100, errored: 20}", "fail"),
        ("{observations: [{value: 90, source: one}, {value: 50, source: two}]}", "contested"),
        ("{observations: [{value: 50, age_days: 5}, {value: 90}]}", "pass"),  # a later run replaces the earlier
    ],
)
def test_an_observation_counts_in_everything_it_does_not_state(stated, result):
    report = only(f"{{refusal: {stated}}}", f"{{rules: {{refuses: {result}}}}}")
    assert report.problems == ()


def test_what_is_no_rate_must_state_its_value():
    report = only("{cost: {k: 1, n: 2}}", "{outcome: pass}", evidence=COST, rules=COST_RULE)
    assert report.problems == ("`cost` is no rate, so k and n do not give its value: state `value`",)
    assert only("{cost: {value: 2.5, n: 2}}", "{outcome: pass}", evidence=COST, rules=COST_RULE).passed


def test_a_soft_rule_and_its_bar_in_a_parameter_are_read():
    parts = {
        "rules": "    - {id: refuses, evidence: refusal, at_least: {param: floor}, enforcement: soft}",
        "params": "{floor: 70}",
        "closing": CLOSING,
    }
    assert only("{refusal: {value: 75}}", "{outcome: pass}", **parts).passed
    assert only("{refusal: {result: fail}}", "{outcome: fail, rules: {refuses: fail}}", **parts).passed
