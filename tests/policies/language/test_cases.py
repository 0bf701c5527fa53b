"""Tests kept beside a policy: run like its own, and refused with file, line and column where they cannot be right."""

import pytest

from evaluations.kernel.errors import InputRefused, Problem
from policies.language.cases import read_cases
from policies.language.testing import run_tests
from tests.policies.language.building import compiled
from tests.policies.language.faults import with_tests

POLICY = compiled(more=with_tests("{name: own, expect: {outcome: fail}}"))
GOOD = """\
# Beside the policy.
tests:
  - {name: clears, facts: {refusal: {value: 90}}, expect: {outcome: pass}}
  - name: misses
    facts: {refusal: {value: 70}}
    expect: {rules: {refuses: fail}}
"""


def refused(text: str) -> list[Problem]:
    with pytest.raises(InputRefused) as error:
        read_cases(text.encode(), POLICY, filename="c.yaml")
    return list(error.value.problems)


def test_cases_run_after_the_policys_own_tests_and_keep_its_digest():
    cases = read_cases(GOOD.encode(), POLICY, filename="c.yaml")
    assert cases.lines == {"clears": 3, "misses": 4}
    whole = cases.added_to(POLICY)
    assert [(report.name, report.passed) for report in run_tests(whole)] == [("own", True), ("clears", True), ("misses", True)]
    assert whole.digest == POLICY.digest
    assert len(POLICY.tests) == 1


@pytest.mark.parametrize(
    ("text", "line", "code", "told"),
    [
        (GOOD.replace("{value: 90}", "{k: 3, n: 2}"), 3, "test_fact", "k is 3 of n 2"),
        (GOOD.replace("refusal: {value: 70}", "refusall: {value: 70}"), 5, "unknown_evidence", "did you mean `refusal`?"),
        (GOOD.replace("refuses: fail", "refusez: fail"), 6, "unknown_rule", "did you mean `refuses`?"),
        (GOOD.replace("name: misses", "name: clears"), 4, "duplicate_id", "already named in line 3"),
        (GOOD.replace("name: misses", "name: own"), 4, "duplicate_id", "of its own"),
        (GOOD.replace("outcome: pass", "outcome: perhaps"), 3, "word", "`pass`"),
        (GOOD.replace("expect: {outcome", "expct: {outcome"), 3, "unknown_key", "did you mean `expect`?"),
        (GOOD.replace("tests:", "test:"), 2, "unknown_key", "did you mean `tests`?"),
        ("tests: []\n", 1, "empty_list", ""),
        ("[]\n", 1, "shape", "a mapping"),
        ("", 1, "empty", ""),
        (GOOD + "rules: []\n", 7, "unknown_key", "known here: tests"),
        (GOOD.replace("{value: 90}", "&a {value: 90}"), 3, "anchor", ""),
    ],
)
def test_a_wrong_case_is_refused_at_its_place(text, line, code, told):
    found = [problem for problem in refused(text) if problem.code == code]
    assert [(problem.file, problem.line) for problem in found] == [("c.yaml", line)]
    assert told in f"{found[0].message} {found[0].hint}"


def test_everything_wrong_is_told_at_once():
    problems = refused(GOOD.replace("90", "x").replace("refuses", "refusez").replace("misses", "clears"))
    assert [problem.code for problem in problems] == ["number", "duplicate_id", "unknown_rule"]
