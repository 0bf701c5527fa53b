"""Real failures of others, tried on the language: cases O-04 (bars written as comparisons) and O-07 (keys that stand twice)."""

import json

import pytest

from tests.policies.language.building import compiled, policy_text, problems_of

JSON = {
    "apiVersion": "writegate/v1",
    "kind": "DeploymentPolicy",
    "metadata": {"name": "made-up", "title": "Made up"},
    "spec": {
        "appliesTo": {"actions": ["write"]},
        "params": {"min_refusal": 80},
        "evidence": {
            "refusal": {
                "metric": "infeasible_refusal_rate",
                "benchmark": "enterpriseops-gym-aa",
                "versions": ["2026-07"],
                "max_age_days": 90,
            }
        },
        "rules": [{"id": "refuses", "evidence": "refusal", "at_least": {"param": "min_refusal"}}],
        "sign_offs": {"all_of": [{"factor": "security", "role": "security", "approve": 1}]},
        "grant": {"max_days": 90, "recertify_every_days": 30},
    },
}


def rule(bar: str, *, block: bool) -> str:
    """Return a rule with a bar written as it is given, in either style of YAML."""
    if block:
        return f"    - id: refuses\n      evidence: refusal\n      at_least: {bar}"
    return f"    - {{id: refuses, evidence: refusal, at_least: {bar}}}"


class TestO04:
    """A space changes the verdict. Here a bar is a number under `at_least` or `at_most`, so no comparison can fail to parse."""

    @pytest.mark.parametrize("block", [True, False])
    @pytest.mark.parametrize("bar", [">=80", ">= 80", "≥ 80", "=> 80", "80,0", "80 %", "> = 80"])
    def test_each_of_the_seven_is_refused_with_its_text_and_what_to_write(self, bar: str, block: bool) -> None:
        first, *_ = problems_of(rules=rule(bar, block=block))
        assert first.line == (11 if block else 9)
        # In a list in braces the comma ends the number: what stands behind it is the text that offends.
        offending = "0" if bar == "80,0" and not block else bar
        assert offending in first.message
        assert first.hint

    @pytest.mark.parametrize("block", [True, False])
    def test_one_number_has_one_meaning_however_it_is_spelled(self, block: bool) -> None:
        spelled = [compiled(rules=rule(bar, block=block)) for bar in ("80", "80.0", " 80.00 ")]
        assert len({policy.resolved_digest for policy in spelled}) == 1
        assert len({policy.digest for policy in spelled}) == 3


class TestO07:
    """The last of two keys wins. Here neither does, in YAML and in JSON."""

    def test_a_policy_may_be_given_as_json_and_means_the_same(self) -> None:
        yaml = policy_text(rule("{param: min_refusal}", block=False), params="{min_refusal: 80}")
        assert compiled(json.dumps(JSON).encode()).resolved_digest == compiled(yaml).resolved_digest

    @pytest.mark.parametrize(
        ("once", "twice"),
        [
            ('"min_refusal": 80\n', '"min_refusal": 80,\n"min_refusal": 8\n'),
            ('"id": "refuses",\n', '"id": "refuses",\n"id": "refuses",\n'),
            ('"kind": "DeploymentPolicy",\n', '"kind": "DeploymentPolicy",\n"kind": "DeploymentPolicy",\n'),
        ],
    )
    def test_a_key_that_stands_twice_in_json_is_refused_with_both_lines(self, once: str, twice: str) -> None:
        text = json.dumps(JSON, indent=0)
        assert once in text
        line = text[: text.index(once)].count("\n") + 1
        (problem,) = problems_of(text.replace(once, twice).encode())
        assert (problem.line, problem.code) == (line + 1, "duplicate_key")
        assert f"already in line {line}" in problem.message

    def test_a_parameter_that_stands_twice_is_refused_with_both_lines(self) -> None:
        params = "\n" + "\n".join(["    min_refusal: 80", *["    # between"] * 40, "    min_refusal: 8"])
        (problem,) = problems_of(rules=rule("{param: min_refusal}", block=True), params=params)
        assert (problem.line, problem.code) == (48, "duplicate_key")
        assert "already in line 7" in problem.message

    @pytest.mark.parametrize(
        ("key", "surprise"),
        [
            ("min_samples", "1_000"),
            ("min_samples", "0x10"),
            ("min_samples", "1e2"),
            ("max_age_days", "1:30"),
            ("max_age_days", "2026-01-01"),
            ("about", "off"),
            ("require_attestation", "yes"),
            ("confidence", ".95"),
        ],
    )
    def test_a_scalar_that_others_read_otherwise_is_refused(self, key: str, surprise: str) -> None:
        stated = {"max_age_days": "90", key: surprise}
        written = ", ".join(f"{name}: {value}" for name, value in stated.items())
        clause = (
            '    refusal: {metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, versions: ["2026-07"], '
            + written
            + "}"
        )
        (problem,) = problems_of(evidence=clause)
        assert (problem.code, problem.line) == ("surprising_scalar", 7)
        assert surprise in problem.message

    def test_what_was_understood_is_shown_beside_the_text(self) -> None:
        """The resolved form spells numbers as the judge reads them."""
        given = "metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, versions: [2026-07], max_age_days: 90.0"
        resolved = compiled(evidence=f"    refusal: {{{given}}}").resolved["spec"]["evidence"]["refusal"]
        assert (resolved["versions"], resolved["max_age_days"]) == (["2026-07"], 90)
