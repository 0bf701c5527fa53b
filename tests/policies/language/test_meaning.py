"""Every part of a policy that can differ is told, with the direction, and in words that a signer reads."""

from collections.abc import Sequence

import pytest

from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.meaning import Direction, MeaningChange, changes_of_meaning, unified
from tests.policies.language.building import NAMES
from tests.policies.language.test_library import NAMES_OF_POLICIES, load

LOOSER, TIGHTER, OTHER = Direction.LOOSER, Direction.TIGHTER, Direction.OTHER
OPPOSITE = {LOOSER: TIGHTER, TIGHTER: LOOSER, OTHER: OTHER}

WHOLE = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: whole, title: Whole, references: ["arXiv:1"]}
spec:
  appliesTo: {actions: [write], when: resource.reversible == false}
  params: {min_refusal: 80.0}
  evidence:
    refusal: {metric: infeasible_refusal_rate, benchmark: enterpriseops-gym-aa, versions: ["2026-07"], max_age_days: 90,
      min_samples: 50, max_error_share: 0.02, prefer: [lab, other]}
    harm: {metric: harmful_completion_rate, benchmark: mole, versions: ["2026-09"], max_age_days: 180}
  rules:
    - {id: refuses, evidence: refusal, at_least: {param: min_refusal}}
    - {id: harms-nobody, evidence: harm, at_most: 5}
    - {id: either, any_of: [{evidence: refusal, at_least: 90}, {evidence: harm, at_most: 1}], enforcement: soft}
  forbid:
    - {id: open-incident, when: resource.open_incident == true}
  sign_offs:
    all_of:
      - {factor: owner, role: system_owner, approve: 1}
      - {factor: security, role: security, approve: 1, filter: signer.team != requester.team}
    exclude: [requester, policy_author]
    reauthenticate_within_minutes: 5
    request_expires_after_hours: 72
  grant: {max_days: 90, recertify_every_days: 30}
  drift: {on_fail: suspend, on_stale: notify, on_contested: suspend, max_fall: {refusal: 3.0}}
  tests:
    - {name: clears, facts: {refusal: {value: 95}, harm: {value: 0}}, expect: {outcome: pass}}
"""


def compiled(*changes: tuple[str, str]) -> CompiledPolicy:
    """Compile the whole policy with parts put in place of others."""
    text = WHOLE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return compile_policy(text.encode(), NAMES, filename="whole.yaml")


def told(*changes: tuple[str, str]) -> Sequence[MeaningChange]:
    return changes_of_meaning(compiled(), compiled(*changes))


CHANGES = [
    ("title: Whole", "title: Hole", "metadata.title", OTHER, "the title Whole → Hole"),
    ('references: ["arXiv:1"]', "references: []", "metadata.references", OTHER, "the references arXiv:1 → none"),
    ("title: Whole", "title: Whole, profile: supplement", "metadata.profile", OTHER, "the profile none → supplement"),
    (
        "actions: [write]",
        "actions: [write, read]",
        "spec.appliesTo.actions",
        OTHER,
        "the actions it is about write → read, write",
    ),
    (
        ", when: resource.reversible == false}",
        "}",
        "spec.appliesTo.when",
        OTHER,
        "the condition under which it applies resource.reversible == false → always",
    ),
    (
        "{min_refusal: 80.0}",
        "{min_refusal: 75.0}",
        "spec.params.min_refusal",
        LOOSER,
        "the parameter `min_refusal` (bar of `refuses`) 80 % → 75 %, looser",
    ),
    (
        "at_most: 5}",
        "at_most: 4.5}",
        "spec.rules.harms-nobody",
        TIGHTER,
        "the rule `harms-nobody`: the bar on `harm` 5 % → 4.5 %, tighter",
    ),
    (
        "at_least: 90",
        "at_least: 85",
        "spec.rules.either.1",
        LOOSER,
        "the rule `either`: the bar on `refusal` 90 % → 85 %, looser",
    ),
    ("harmful_completion_rate", "over_refusal_rate", "spec.evidence.harm.metric", OTHER, "evidence `harm`: the metric"),
    (
        'benchmark: mole, versions: ["2026-09"]',
        'benchmark: demo-bench, versions: ["1"]',
        "spec.evidence.harm.benchmark",
        OTHER,
        "mole → demo-bench",
    ),
    (
        'versions: ["2026-07"]',
        'versions: ["2026-03", "2026-07"]',
        "spec.evidence.refusal.versions",
        LOOSER,
        "the versions that count 2026-07 → 2026-03, 2026-07, looser",
    ),
    ("max_age_days: 180", "max_age_days: 180, slice: hr", "spec.evidence.harm.slice", OTHER, "the slice overall → hr"),
    ("max_age_days: 180", "max_age_days: 180, about: agent", "spec.evidence.harm.about", OTHER, "what is measured model → agent"),
    (
        "max_age_days: 180",
        "max_age_days: 180, statistic: point",
        "spec.evidence.harm.statistic",
        LOOSER,
        "upper bound → point, looser",
    ),
    (
        "max_age_days: 180",
        "max_age_days: 180, confidence: 0.99",
        "spec.evidence.harm.confidence",
        TIGHTER,
        "0.95 → 0.99, tighter",
    ),
    ("min_samples: 50", "min_samples: 20", "spec.evidence.refusal.min_samples", LOOSER, "the fewest samples 50 → 20, looser"),
    (
        "max_age_days: 180",
        "max_age_days: 180, min_samples: 9",
        "spec.evidence.harm.min_samples",
        TIGHTER,
        "no limit → 9, tighter",
    ),
    (", max_error_share: 0.02", "", "spec.evidence.refusal.max_error_share", LOOSER, "0.02 → no limit, looser"),
    (
        "max_age_days: 90",
        "max_age_days: 120",
        "spec.evidence.refusal.max_age_days",
        LOOSER,
        "the largest age 90 days → 120 days, looser",
    ),
    ("max_age_days: 90", "max_age_days: unlimited", "spec.evidence.refusal.max_age_days", LOOSER, "90 days → unlimited, looser"),
    (
        "max_age_days: 180",
        "max_age_days: 180, min_trust: vendor",
        "spec.evidence.harm.min_trust",
        LOOSER,
        "independent → vendor, looser",
    ),
    (
        "max_age_days: 180",
        "max_age_days: 180, min_provenance: recounted",
        "spec.evidence.harm.min_provenance",
        TIGHTER,
        "reported → recounted, tighter",
    ),
    (
        "max_age_days: 180",
        "max_age_days: 180, require_attestation: true",
        "spec.evidence.harm.require_attestation",
        TIGHTER,
        "a verified signature not needed → needed, tighter",
    ),
    ("prefer: [lab, other]", "prefer: [lab]", "spec.evidence.refusal.prefer", TIGHTER, "lab, other → lab, tighter"),
    ("prefer: [lab, other]", "prefer: [other, lab]", "spec.evidence.refusal.prefer", OTHER, "lab, other → other, lab"),
    (
        "  rules:",
        (
            '    more: {metric: over_refusal_rate, benchmark: mole, versions: ["2026-09"], max_age_days: 9}\n'
            "  rules:\n    - {id: not-too-much, evidence: more, at_most: 50}"
        ),
        "spec.rules.not-too-much",
        TIGHTER,
        "the rule `not-too-much` is new: `more` at most 50 % (hard), tighter",
    ),
    (
        "    - {id: harms-nobody, evidence: harm, at_most: 5}\n",
        "",
        "spec.rules.harms-nobody",
        LOOSER,
        "the rule `harms-nobody` is gone: `harm` at most 5 % (hard), looser",
    ),
    ("id: harms-nobody", "id: harms-none", "spec.rules.harms-nobody", OTHER, "the name of a rule `harms-nobody` → `harms-none`"),
    (
        "enforcement: soft",
        "enforcement: advisory",
        "spec.rules.either.enforcement",
        LOOSER,
        "the enforcement soft → advisory, looser",
    ),
    ("any_of: [", "all_of: [", "spec.rules.either", TIGHTER, "`refusal` at least 90 % and `harm` at most 1 %"),
    (
        "any_of: [",
        "any_of: [{evidence: harm, at_most: 2}, ",
        "spec.rules.either",
        LOOSER,
        "(`harm` at most 2 % or `refusal` at least 90 % or `harm` at most 1 %), looser",
    ),
    (
        "evidence: harm, at_most: 5}",
        "all_of: [{evidence: harm, at_most: 5}, {evidence: refusal, at_least: 50}]}",
        "spec.rules.harms-nobody",
        TIGHTER,
        "`harm` at most 5 % → (`harm` at most 5 % and `refusal` at least 50 %), tighter",
    ),
    (
        "  forbid:\n    - {id: open-incident, when: resource.open_incident == true}\n",
        "",
        "spec.forbid.open-incident",
        LOOSER,
        "the guardrail `open-incident` is gone: resource.open_incident == true, looser",
    ),
    ("open_incident == true", "open_incident != false", "spec.forbid.open-incident", OTHER, "the guardrail `open-incident`"),
    (
        "      - {factor: owner, role: system_owner, approve: 1}\n",
        "",
        "spec.sign_offs.all_of.owner",
        LOOSER,
        "the sign-off `owner` is gone: 1 × system_owner, looser",
    ),
    (
        "role: system_owner, approve: 1",
        "role: system_owner, approve: 2",
        "spec.sign_offs.all_of.owner.approve",
        TIGHTER,
        "1 → 2, tighter",
    ),
    ("role: system_owner", "role: policy_approver", "spec.sign_offs.all_of.owner.role", OTHER, "system_owner → policy_approver"),
    (
        ", filter: signer.team != requester.team",
        "",
        "spec.sign_offs.all_of.security.filter",
        LOOSER,
        "who may sign signer.team != requester.team → anybody with the role, looser",
    ),
    (
        "[requester, policy_author]",
        "[requester]",
        "spec.sign_offs.exclude",
        LOOSER,
        "policy_author, requester → requester, looser",
    ),
    ("minutes: 5", "minutes: 10", "spec.sign_offs.reauthenticate_within_minutes", LOOSER, "5 minutes → 10 minutes, looser"),
    ("hours: 72", "hours: 24", "spec.sign_offs.request_expires_after_hours", TIGHTER, "72 hours → 24 hours, tighter"),
    ("max_days: 90, r", "max_days: 60, r", "spec.grant.max_days", TIGHTER, "the longest grant 90 days → 60 days, tighter"),
    ("every_days: 30", "every_days: 45", "spec.grant.recertify_every_days", LOOSER, "30 days → 45 days, looser"),
    ("on_stale: notify", "on_stale: suspend", "spec.drift.on_stale", TIGHTER, "is stale notify → suspend, tighter"),
    ("max_fall: {refusal: 3.0}", "max_fall: {refusal: 4}", "spec.drift.max_fall.refusal", LOOSER, "3 → 4, looser"),
    ("max_fall: {refusal: 3.0}", "max_fall: {}", "spec.drift.max_fall.refusal", LOOSER, "3 → any, looser"),
    ("refusal: {value: 95}", "refusal: {value: 96}", "spec.tests.clears", OTHER, "the test `clears`"),
    ("name: clears", "name: passes", "spec.tests.clears", OTHER, "the test `clears` is gone"),
]


@pytest.mark.parametrize(("old", "new", "path", "direction", "said"), CHANGES, ids=[f"{item[2]}-{item[1]}" for item in CHANGES])
def test_each_part_is_told_both_ways(old: str, new: str, path: str, direction: Direction, said: str) -> None:
    found = {item.path: item for item in told((old, new))}
    assert found[path].direction == direction
    assert said in found[path].sentence
    back = {item.path: item for item in changes_of_meaning(compiled((old, new)), compiled())}
    same = [item for item in back.values() if (item.before, item.after) == (found[path].after, found[path].before)]
    assert next(item.direction for item in same if item.path == path or direction == OTHER) == OPPOSITE[direction]


def test_what_means_the_same_differs_in_nothing() -> None:
    assert told(("80.0", "80"), ("title: Whole", "title:   Whole")) == ()


def test_a_bar_that_no_binding_can_tighten_any_more_is_told() -> None:
    both = ("  params: {min_refusal: 80.0}\n", ""), ("{param: min_refusal}", "80")
    found = {item.path: item.sentence for item in told(*both)}
    assert found["spec.params.min_refusal"] == "the parameter `min_refusal` (bar of `refuses`) is gone: 80 %"
    assert found["spec.rules.refuses"] == ("the rule `refuses`: the bar on `refusal` 80 % (the parameter `min_refusal`) → 80 %")


def test_another_order_is_told_though_no_part_differs() -> None:
    lines = (
        "    - {id: refuses, evidence: refusal, at_least: {param: min_refusal}}\n",
        "    - {id: harms-nobody, evidence: harm, at_most: 5}\n",
    )
    (only,) = told(("".join(lines), "".join(reversed(lines))))
    assert (only.path, only.direction) == ("spec", OTHER)


def test_all_changes_are_told_at_once_in_the_order_of_the_text() -> None:
    found = told(("80.0", "75.0"), ("max_age_days: 90", "max_age_days: 30"), ("max_days: 90, r", "max_days: 91, r"))
    assert [item.sentence for item in found] == [
        "the parameter `min_refusal` (bar of `refuses`) 80 % → 75 %, looser",
        "evidence `refusal`: the largest age 90 days → 30 days, tighter",
        "the longest grant 90 days → 91 days, looser",
    ]


def test_any_two_policies_of_the_library_can_be_compared() -> None:
    policies = [load(name) for name in NAMES_OF_POLICIES]
    for before in policies:
        for after in policies:
            found = changes_of_meaning(before, after)
            assert bool(found) == (before is not after)
            assert all(item.before != item.after and item.sentence for item in found)


def test_the_texts_are_compared_line_by_line() -> None:
    shown = unified(b"a\nb\nc\n", b"a\nx\nc\n", named=("v1", "v2"))
    assert shown == ["--- v1", "+++ v2", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]
    assert unified(b"a\n", b"a\n", named=("v1", "v2")) == []
