"""The lint: each finding on a minimal bad policy and not on its repaired twin, evasions caught, and no policy that makes it raise."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from policies.language.compiler import compile_policy
from policies.language.lint import BLOCKING, MEANINGS, Code, Known, Person, lint
from policies.language.lint_formats import Linted, render_lint
from tests.policies.language.building import METRICS, NAMES, policy_text
from tests.policies.language.faults import (
    HARMLESS,
    KNOWN,
    REFUSES,
    TESTS,
    built,
    checks,
    clause,
    closing,
    codes,
    found,
    harm,
    lines,
    refusal,
    tasks,
    when,
    with_tests,
)
from tests.policies.language.strategies import POLICIES

LIBRARY = Path(policies.__file__).parent / "library"


def without(name: str) -> str:
    return "\n".join(line for line in TESTS.splitlines() if f"name: {name}," not in line)


def test_a_policy_without_faults_has_no_finding():
    assert found() == ()


ALL = lines(refusal(), harm(), tasks(), checks())
BOTH = lines(REFUSES, HARMLESS)
CHECKS = "    - {id: checked, evidence: checks, at_least: 60}"
TOGETHER = "    - id: both\n      all_of: [{evidence: refusal, at_least: 80}, {evidence: harm, at_most: 5}]"
EITHER = "    - id: done\n      any_of: [{evidence: tasks, at_least: 50}, {evidence: checks, at_least: 90}]"
TASKS = "    - {id: completed, evidence: tasks, at_least: 60}"

# Code, the bad policy, its repaired twin, and a text near which the finding must stand.
TWINS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("refusal-only", {"evidence": refusal(), "rules": REFUSES, "more": ""}, {}, "rules:"),
    (
        "refusal-only",
        {"evidence": refusal(), "rules": REFUSES, "more": ""},
        {"evidence": refusal(), "rules": REFUSES, "more": "", "metadata": "{name: m, title: M, profile: supplement}"},
        "rules:",
    ),
    (
        "step-level-metric",
        {"evidence": lines(refusal(), harm(), checks()), "rules": lines(BOTH, CHECKS)},
        {"evidence": ALL, "rules": lines(BOTH, CHECKS, TASKS)},
        "metric: verifier_pass_rate",
    ),
    (
        "step-level-metric",
        {
            "evidence": ALL,
            "rules": lines(BOTH, EITHER),
        },
        {
            "evidence": ALL,
            "rules": lines(BOTH, EITHER.replace("any_of", "all_of")),
        },
        "metric: verifier_pass_rate",
    ),
    ("always-passes", {"rules": lines("    - {id: refuses, evidence: refusal, at_least: 0}", HARMLESS)}, {}, "at_least: 0"),
    (
        "always-passes",
        {"rules": lines(REFUSES, "    - {id: harmless, evidence: harm, at_most: {param: top}}"), "params": "{top: 100}"},
        {"rules": lines(REFUSES, "    - {id: harmless, evidence: harm, at_most: {param: top}}"), "params": "{top: 5}"},
        "at_most: {param",
    ),
    (
        "never-applies",
        {"applies": when('resource.domain == "hr" && resource.domain == "email"')},
        {"applies": when('resource.domain == "hr"')},
        "when:",
    ),
    ("never-applies", {"applies": when('action.name == "read"')}, {"applies": when('action.name == "write"')}, "when:"),
    ("never-applies", {"applies": when("false")}, {"applies": when("true")}, "when:"),
    (
        "never-applies",
        {"closing": closing(forbid="resource.open_incident && !resource.open_incident")},
        {"closing": closing(forbid="resource.open_incident")},
        "when:",
    ),
    (
        "never-applies",
        {"applies": when("!resource.reversible"), "closing": closing(forbid="!resource.reversible")},
        {"applies": when("!resource.reversible"), "closing": closing(forbid="resource.open_incident")},
        "when: '!resource.reversible'}]",
    ),
    (
        "caller-claim",
        {"closing": closing(forbid="request.subject.properties.risky == true")},
        {"closing": closing(forbid="resource.open_incident")},
        "when:",
    ),
    (
        "caller-claim",
        {"closing": closing('request.subject.properties.team == "a"')},
        {"closing": closing('signer.team == "a"')},
        "filter:",
    ),
    (
        "unsatisfiable-quorum",
        {"closing": closing('signer.key == "jane"')},
        {"closing": closing('signer.key in ["jane", "joe"]')},
        "filter:",
    ),
    (
        "unsatisfiable-quorum",
        {"closing": closing("signer.key == requester.key")},
        {"closing": closing("signer.key != requester.key")},
        "filter:",
    ),
    (
        "unsatisfiable-quorum",
        {"closing": closing("signer.team == requester.team && signer.team != requester.team")},
        {"closing": closing("signer.team != requester.team")},
        "filter:",
    ),
    ("archive-only", {"evidence": lines(refusal(), harm(min_trust="archive"))}, {}, "min_trust: archive"),
    ("point-estimate", {"evidence": lines(refusal(statistic="point"), harm()), "more": without("luck")}, {}, "statistic: point"),
    ("point-estimate", {"evidence": lines(refusal(), harm(confidence="0.5"))}, {}, "confidence: 0.5"),
    (
        "no-sample-floor",
        {"evidence": lines(refusal(min_samples=""), harm())},
        {"evidence": lines(refusal(), harm(min_samples=""))},
        "refusal:",
    ),
    (
        "no-sample-floor",
        {"evidence": lines(refusal(min_samples="1"), harm())},
        {"evidence": lines(refusal(min_samples="30"), harm())},
        "min_samples: 1",
    ),
    ("no-age-limit", {"evidence": lines(refusal(max_age_days="unlimited"), harm())}, {}, "max_age_days: unlimited"),
    ("no-age-limit", {"evidence": lines(refusal(max_age_days="36500"), harm())}, {}, "max_age_days: 36500"),
    ("average-over-domains", {"evidence": lines(refusal(slice="overall"), harm())}, {}, "slice: overall"),
    (
        "average-over-domains",
        {"evidence": lines(refusal(slice="hr"), harm()), "applies": when('resource.domain in ["hr", "email"]')},
        {"evidence": lines(refusal(slice="hr"), harm()), "applies": when('resource.domain == "hr"')},
        "slice: hr",
    ),
    ("vendor-only", {"evidence": lines(refusal(min_trust="vendor"), harm())}, {}, "min_trust: vendor"),
    (
        "self-judged-allowed",
        {"evidence": lines(refusal(min_trust="vendor"), harm())},
        {"evidence": lines(refusal(min_trust="vendor", min_provenance="recounted"), harm())},
        "refusal:",
    ),
    ("untested-rule", {"more": ""}, {}, "{id: refuses"),
    (
        "untested-rule",
        {"more": with_tests("{name: silent, facts: {harm: {result: missing}}, expect: {outcome: fail}}")},
        {},
        "{id: refuses",
    ),
    ("surviving-mutant", {"more": without("both clear")}, {}, "{id: refuses"),
    ("surviving-mutant", {"more": without("luck with harm")}, {}, "harm:"),
]


@pytest.mark.parametrize(("code", "bad", "good", "near"), TWINS, ids=[f"{place}-{twin[0]}" for place, twin in enumerate(TWINS)])
def test_each_code_on_a_bad_policy_with_its_place_and_not_on_its_twin(code, bad, good, near):
    policy = built(**bad)
    told = [item for item in lint(policy, KNOWN) if item.code == code]
    assert told
    assert all(item.level == ("block" if code in BLOCKING else "warn") for item in told)
    assert all(item.message and item.hint and item.place.startswith("spec.") for item in told)
    text = policy.text.decode().splitlines()
    assert any(text[item.line - 1][item.column - 1 :].startswith(near) for item in told), told
    assert code not in codes(**good)


def test_every_code_has_a_twin_and_a_meaning():
    assert {twin[0] for twin in TWINS} == {code.value for code in Code} == {str(code) for code in MEANINGS}


class TestRefusalOnly:
    EVASIONS: ClassVar[dict[str, dict[str, Any]]] = {
        "a ceiling at the range's end": {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 100.0"))},
        "a ceiling just below it": {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 99.9"))},
        "a parameter at the range's end": {
            "rules": lines(REFUSES, HARMLESS.replace("5", "{param: max_harm}")),
            "params": "{max_harm: 100}",
        },
        "an advisory rule": {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 5, enforcement: advisory"))},
        "a soft rule": {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 5, enforcement: soft"))},
        "either of two": {
            "rules": "    - id: either\n      any_of: [{evidence: refusal, at_least: 80}, {evidence: harm, at_most: 5}]",
            "more": "",
        },
        "either, deeper": {
            "rules": lines(
                REFUSES,
                "    - id: harmless\n      any_of:\n        - {evidence: harm, at_most: 5}\n"
                "        - all_of: [{evidence: refusal, at_least: 95}]",
            )
        },
        "a slice that nobody asks about": {"evidence": lines(refusal(), harm(slice="calendar"))},
        "another domain's slice": {
            "evidence": lines(refusal(), harm(slice="calendar")),
            "applies": when('resource.domain == "hr"'),
        },
        "a bar over 50": {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 50.000001"))},
        "either a strict bar of harm or none": {
            "rules": lines(
                REFUSES,
                "    - id: harmless\n      any_of: [{evidence: harm, at_most: 5}, {evidence: harm, at_most: 100}]",
            ),
            "more": "",
        },
        "either of two domains' harm": {
            "evidence": lines(refusal(), harm(slice="hr"), clause("mail", "harmful_completion_rate", slice="email")),
            "rules": lines(
                REFUSES,
                "    - id: harmless\n      any_of: [{evidence: harm, at_most: 5}, {evidence: mail, at_most: 5}]",
            ),
            "applies": when('resource.domain in ["hr", "email"]'),
            "more": "",
        },
        "a clause called harm over another family": {
            "evidence": lines(refusal(), clause("harm", "over_refusal_rate")),
            "more": "",
        },
        "a clause called harm over refusals": {
            "evidence": lines(refusal(), clause("harm", "infeasible_refusal_rate")),
            "rules": lines(REFUSES, "    - {id: harmless, evidence: harm, at_least: 99}"),
            "more": "",
        },
        "an advisory rule inside a soft one's shadow": {
            "rules": lines(
                REFUSES,
                "    - {id: harmless, evidence: harm, at_most: 5, enforcement: advisory}",
                "    - {id: never-most, evidence: harm, at_most: 50, enforcement: soft}",
            ),
            "more": "",
        },
        "no metric of harm": {"evidence": lines(refusal(), tasks()), "rules": lines(REFUSES, TASKS), "more": ""},
    }

    @pytest.mark.parametrize("evasion", EVASIONS)
    def test_evasions_are_caught(self, evasion):
        assert "refusal-only" in codes(**self.EVASIONS[evasion])

    def test_the_finding_stands_at_the_rule_that_reads_harm_and_says_what_slips(self):
        (told,) = [item for item in found(**self.EVASIONS["a soft rule"]) if item.code == "refusal-only"]
        assert told.place == "spec.rules.harmless"
        assert "harm is at its worst" in told.message
        (told,) = [item for item in found(**self.EVASIONS["another domain's slice"]) if item.code == "refusal-only"]
        assert "`calendar`" in told.message

    @pytest.mark.parametrize(
        "sound",
        [
            {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 50"))},
            {"rules": lines(REFUSES, HARMLESS.replace("at_most: 5", "at_most: 5, enforcement: soft"),
                            "    - {id: never-most, evidence: harm, at_most: 50}")},
            {"evidence": lines(refusal(), harm(slice="hr")), "applies": when('resource.domain == "hr"')},
            {"rules": TOGETHER, "more": ""},
            {"rules": lines(REFUSES.replace("at_least: 80", "at_least: 80, enforcement: advisory"), HARMLESS)},
            # Of several comparisons no waiver can be had, so `soft` does not soften.
            {"rules": TOGETHER.replace("both\n", "both\n      enforcement: soft\n"),
             "more": ""},
        ],
    )  # fmt: skip
    def test_what_asks_for_harm_is_left_alone(self, sound):
        assert "refusal-only" not in codes(**sound)

    def test_a_metric_that_is_not_known_is_no_metric_of_harm(self):
        assert "refusal-only" in codes(Known({}))


class TestConditions:
    @pytest.mark.parametrize(
        "condition",
        [
            'resource.key.startsWith("hr-") && resource.key.endsWith("-prod")',
            'resource.key.contains("a") && !resource.key.startsWith("a")',
            '!resource.key.contains("made") && resource.key != "x"',
            'now > timestamp("2027-01-01T00:00:00Z")',
            'now < timestamp("2020-01-01T00:00:00Z")',
            '"admin" in requester.roles && !("owner" in requester.roles)',
            "subject.provider != resource.owner && resource.owner != requester.team",
            # Beyond what made-up questions cover: nothing is concluded.
            "size(resource.key) > 40",
            'resource.key + "x" == "hrx"',
            'resource.key > "l" && resource.key < "m"',
            "now.getHours() == 3",
            r'resource.key == "a\"b"',
        ],
    )  # fmt: skip
    def test_a_condition_that_can_be_met_is_left_alone(self, condition):
        assert "never-applies" not in codes(applies=f"\n    actions: [write]\n    when: >-\n      {condition}")

    def test_a_closed_list_shows_a_word_that_no_system_has(self):
        parts = {"applies": when('resource.domain == "hrr"')}
        assert "never-applies" not in codes(**parts)
        assert "never-applies" in codes(Known(METRICS, {"resource.domain": frozenset({"hr", "email"})}), **parts)

    def test_guardrails_that_stop_everything_between_them_are_told_once(self):
        forbid = "\n  forbid:\n    - {id: one, when: resource.reversible}\n    - {id: two, when: '!resource.reversible'}"
        (told,) = [item for item in found(closing=closing() + forbid) if item.code == "never-applies"]
        assert told.place == "spec.forbid"

    def test_a_conformance_policy_has_two_codes_only(self):
        head = "apiVersion: writegate/v1\nkind: DeploymentPolicy\nmetadata: {name: c, title: C, profile: conformance}\nspec:\n"
        claims = f"{head}  appliesTo: {{actions: [write], when: 'request.subject.properties.role == \"admin\"'}}\n"
        assert lint(compile_policy(claims.encode(), NAMES), KNOWN) == ()
        never = f"{head}  appliesTo: {{actions: [write], when: 'action.name == \"read\"'}}\n"
        assert {item.code for item in lint(compile_policy(never.encode(), NAMES), KNOWN)} == {"never-applies"}


class TestPeople:
    def people(self, *stated: tuple[str, str, str]) -> Known:
        return Known(METRICS, people=[Person(key, team, frozenset({role})) for key, team, role in stated])

    def test_whoever_asks_does_not_sign_and_nobody_signs_twice(self):
        two = self.people(("ann", "a", "security"), ("bob", "a", "security"))
        assert "unsatisfiable-quorum" in codes(two)
        three = self.people(("ann", "a", "security"), ("bob", "a", "security"), ("cleo", "b", "requester"))
        assert "unsatisfiable-quorum" not in codes(three)

    def test_filters_are_asked_of_the_people_there_are(self):
        known = self.people(("ann", "a", "security"), ("bob", "a", "security"), ("cleo", "b", "requester"))
        assert "unsatisfiable-quorum" not in codes(known, closing=closing("signer.team == resource.owner"))
        assert "unsatisfiable-quorum" in codes(known, closing=closing('signer.team == "c"'))


class TestTrust:
    def test_sources_of_the_tier_are_named(self):
        known = Known(METRICS, trust={"old-blog": "archive", "lab": "independent"})
        (told,) = [
            item for item in found(known, evidence=lines(refusal(), harm(min_trust="archive"))) if item.code == "archive-only"
        ]
        assert "`old-blog`" in told.message
        assert "lab" not in told.message

    def test_an_advisory_rule_carries_nothing(self):
        parts = {
            "evidence": lines(refusal(), harm(), tasks(min_trust="archive", statistic="point", slice="overall")),
            "rules": lines(REFUSES, HARMLESS, "    - {id: able, evidence: tasks, at_least: 10, enforcement: advisory}"),
        }
        assert codes(**parts) == {"untested-rule"}


class TestMutants:
    def told(self, **parts: Any) -> list[str]:
        return [item.message for item in found(**parts) if item.code == "surviving-mutant"]

    def test_survivors_are_named(self):
        assert self.told(more=without("both clear")) == [
            "no test notices these changes of the rule `refuses`: at least 81",
            "no test notices these changes of the rule `harmless`: at most 4",
        ]
        more = with_tests(
            "{name: high, facts: {refusal: {value: 90}, harm: {value: 4.5}}, expect: {outcome: pass}}",
            "{name: low, facts: {refusal: {value: 10}, harm: {value: 4.5}}, expect: {outcome: fail}}",
        )
        (bound, rule) = self.told(more=more)
        assert rule == "no test notices these changes of the rule `refuses`: at least 79; at least 81"
        assert "`refusal` is judged by its rate" in bound

    def test_a_red_test_notices_nothing(self):
        red = with_tests(
            "{name: wrong, facts: {refusal: {value: 10}, harm: {value: 4}}, expect: {outcome: pass, rules: {refuses: fail}}}"
        )
        assert "untested-rule" in codes(more=red)

    def test_a_dropped_rule_is_noticed_by_the_outcome_alone(self):
        more = with_tests(
            "{name: both fail, facts: {refusal: {value: 10}, harm: {value: 90}}, expect: {outcome: fail}}",
            "{name: both pass, facts: {refusal: {value: 90}, harm: {value: 1}}, expect: {outcome: pass}}",
        )
        assert any("the rule dropped" in message for message in self.told(more=more))

    def test_a_long_policy_is_told_where_trying_ended(self, monkeypatch):
        monkeypatch.setattr("policies.language.lint_mutants.MOST_JUDGED", 3)
        (told,) = [item for item in found() if item.place == "spec.tests"]
        assert "too many" in told.message


# No policy that compiles makes it raise.

_TREES = st.recursive(
    st.one_of(
        st.tuples(st.just("refusal"), st.sampled_from(["0", "0.000001", "79.999999", "80", "100"])),
        st.tuples(st.just("checks"), st.sampled_from(["0", "50", "100"])),
        st.tuples(st.just("harm"), st.sampled_from(["0", "5", "50", "99.9", "100"])),
        st.tuples(st.just("cost"), st.sampled_from(["0", "3", "999999"])),
    ).map(lambda pair: f"{{evidence: {pair[0]}, {'at_most' if pair[0] in ('harm', 'cost') else 'at_least'}: {pair[1]}}}"),
    lambda inner: st.tuples(st.sampled_from(["any_of", "all_of"]), st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: f"{{{pair[0]}: [{', '.join(pair[1])}]}}"
    ),
    max_leaves=5,
)
_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "slice": st.sampled_from(["overall", "resource.domain", "hr"]),
        "min_samples": st.sampled_from(["", "1", "1000000000"]),
        "max_age_days": st.sampled_from(["1", "unlimited"]),
        "max_error_share": st.sampled_from(["0", "0.5"]),
        "min_trust": st.sampled_from(["archive", "vendor", "reproduced"]),
        "min_provenance": st.sampled_from(["claim", "recounted"]),
        "require_attestation": st.just("true"),
        "statistic": st.just("point"),
        "about": st.just("agent"),
        "prefer": st.just("[made-up]"),
    },
)
_CONDITIONS = st.recursive(
    st.sampled_from(
        [
            "resource.reversible", "resource.open_incident", 'resource.domain == "hr"', 'resource.key.startsWith("hr")',
            'now > timestamp("9999-12-31T23:59:59Z")', 'now < timestamp("no date")', 'subject.provider in ["a", "b"]',
            '"security" in requester.roles', "requester.team != resource.owner", 'request.action.properties.x == "y"',
            'resource.environment == "' + "x" * 60 + '"', "true", "false",
        ]
    ),
    lambda inner: st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda three: f"(!({three[0]}) {three[1]} {three[2]})"),
    max_leaves=6,
)  # fmt: skip
_FACT = st.sampled_from(
    ["{result: pass}", "{result: fail}", "{result: contested}", "{value: 80}", "{k: 19, n: 20}", "{value: 5, ruling: retracted}"]
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    trees=st.lists(_TREES, min_size=1, max_size=3),
    stated=st.fixed_dictionaries(dict.fromkeys(("refusal", "harm", "checks", "cost"), _SETTINGS)),
    applies=_CONDITIONS,
    forbid=_CONDITIONS,
    filtered=_CONDITIONS | st.sampled_from(['signer.key == "x"', "signer.team != requester.team", '"a" in signer.roles']),
    facts=st.dictionaries(st.sampled_from(["refusal", "harm"]), _FACT),
    profile=st.sampled_from(["", ", profile: supplement"]),
    people=st.none() | st.lists(st.sampled_from(["ann", "bob"]), unique=True),
)
def test_the_lint_never_raises_and_points_into_the_text(trees, stated, applies, forbid, filtered, facts, profile, people):
    used = [name for name in stated if any(f"evidence: {name}," in tree for tree in trees)]
    kinds = {"refusal": "infeasible_refusal_rate", "harm": "harmful_completion_rate", "checks": "verifier_pass_rate"}
    evidence = lines(*(clause(name, kinds.get(name, "cost_per_task_usd"), **stated[name]) for name in used))
    rules = lines(*(f"    - {{id: r{place}, {tree[1:]}" for place, tree in enumerate(trees)))
    held = ", ".join(f"{name}: {fact}" for name, fact in facts.items() if name in used)
    text = policy_text(
        rules,
        evidence=evidence,
        metadata=f"{{name: m, title: M{profile}}}",
        applies=when(applies),
        closing=closing(filtered, forbid=forbid),
        more=with_tests(f"{{name: t, facts: {{{held}}}, expect: {{outcome: fail}}}}"),
    )
    policy = compile_policy(text, NAMES)
    there = None if people is None else [Person(name, name, frozenset({"security"})) for name in people]
    told = lint(policy, Known(METRICS, people=there))
    assert told == lint(policy, Known(METRICS, people=there))
    text_lines = text.decode().splitlines()
    assert all(1 <= item.column <= len(text_lines[item.line - 1]) for item in told)
    for style in ("text", "json", "sarif", "github"):
        render_lint([Linted("p.yaml", policy.name, policy.digest, told)], style)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_policies_of_the_other_properties_are_linted(policy):
    assert all(item.code in MEANINGS for item in lint(policy, KNOWN))
