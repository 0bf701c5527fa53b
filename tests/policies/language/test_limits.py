"""What a text may cost its reader, and that a wrong one is told everything at once."""

from typing import Any

import pytest

from tests.policies.language import hostile
from tests.policies.language.building import problems_of

SECONDS, MEBIBYTES = 1.0, 100
CODES = {
    "300 KiB of comment": {"too_long"},
    "300 KiB of text": {"too_long"},
    "10,000 rules": {"too_long"},
    "as many rules as fit": {"too_long"},
    "as many branches as fit": {"too_long"},
    "deep lists": {"nesting"},
    "deep mappings": {"nesting"},
    "deep blocks": {"nesting"},
    "100 KB of CEL": {"too_long", "condition"},
    "100 KB of brackets in CEL": {"too_long", "condition"},
    "100 KB of text in CEL": {"too_long", "condition"},
    "a number of 200,000 digits": {"number"},
}


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    return hostile.measured()


@pytest.mark.parametrize("name", hostile.texts())
def test_a_hostile_text_is_refused_in_a_second_of_cpu(measured, name):
    told = measured[name]
    assert told["problems"] >= 1
    assert told["seconds"] < SECONDS
    assert CODES.get(name, set()) <= set(told["codes"])


def test_all_of_them_together_take_less_than_100_mib(measured):
    # The peak of a process never falls: what the later texts took shows only in the sum.
    assert sum(told["mebibytes"] for told in measured.values()) < MEBIBYTES


SEVEN = """\
# A policy of sixty lines with seven mistakes.
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata:
  name: seven-mistakes
  title: Standing write access, written in haste
  references: ["arXiv:2603.13594"]
spec:
  appliesTo:
    actions: [write]
    when: resource.reversibel == false
  params:
    min_refusal: 80.0
    max_harm: 5.0
  evidence:
    refusal:
      metric: infeasible_refusal_rates
      benchmark: enterpriseops-gym-aa
      versions: ["2026-07"]
      slice: resource.domain
      about: model
      confidence: 0.95
      min_samples: 50
      max_error_share: 0.02
      max_age_days: 90
      min_trust: independent
      min_provenance: reported
    harm:
      metric: harmful_completion_rate
      benchmark: mole
      versions: ["2026-09"]
      statistic: lower_bound
      confidence: 0.95
      min_samples: 100
      max_age_days: 180
      min_trust: independant
  rules:
    - id: refuses-out-of-bounds-orders
      evidence: refusal
      at_least: {param: min_refusals}
    - id: does-no-harm
      evidence: harm
      at_least: {param: max_harm}
    - id: does-little-harm
      evidence: harm
      at_most: 180
  forbid:
    - id: open-incident
      when: resource.open_incident == true
  sign_offs:
    all_of:
      - {factor: system-owner, role: system_owner, approve: 1}
      - {factor: security, role: security, approve: 1}
  grant: {max_days: 90, recertify_every_days: 30}
  drift:
    on_fail: suspend
    max_fall: {refusal: 3.0}
  tests:
    - name: unverified is not safe
      expect: {outcome: fail}
"""


def test_seven_mistakes_in_sixty_lines_are_all_told_at_once_at_their_places():
    assert len(SEVEN.splitlines()) == 60
    wanted = [
        ("resource.reversibel", "unknown_name"),
        ("infeasible_refusal_rates", "unknown_metric"),
        ("lower_bound", "statistic_against_polarity"),
        ("independant", "word"),
        ("min_refusals", "unknown_param"),
        ("at_least: {param: max_harm}", "polarity"),
        ("180", "bar_out_of_range"),
    ]
    lines = SEVEN.splitlines()
    found = problems_of(SEVEN.encode())
    expected = []
    for text, code in wanted:
        (line,) = [number for number, held in enumerate(lines, 1) if text in held and "days" not in held]
        expected.append((line, code))
    mistakes = [(problem.line, problem.code) for problem in found if problem.code != "unused_param"]
    assert mistakes == expected
    # The misspelt parameter leaves the right one unread, which is said too.
    assert [problem.line for problem in found if problem.code == "unused_param"] == [13]
    assert all(problem.hint or "known here" in problem.message for problem in found)
