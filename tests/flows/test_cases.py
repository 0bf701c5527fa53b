"""Real failures of others, tried on us: cases O-01 to O-07 and O-19, from intake to verdict, as far as evidence and policies go.

The numbers name the cases. Their halves about grants, sign-offs, forms and decisions belong to what builds those.
"""

import json
from decimal import Decimal

import pytest
from django.db import DataError, IntegrityError, transaction

from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.models import Evidence, Observation
from policies.models import PolicyVersion
from policies.selectors.gate import ask_gate
from tests.flows.planting import ask, insert_by_hand
from tests.support import world

pytestmark = pytest.mark.django_db


def raw(value: str) -> bytes:
    """Return a document whose value is written exactly as given, JSON or not."""
    return json.dumps(world.submission("m", world.observation("@"))).replace('"@"', value).encode()


def submit_or_refuse(value: str) -> str:
    """Import one value for `m`; return "taken" or the refusal's text."""
    try:
        world.submit(raw(value))
    except InputRefused as refusal:
        return str(refusal)
    return "taken"


class TestO01:
    """Missing data read as allow."""

    def test_five_candidates_without_a_number_are_missing_and_one_is_below_the_bar(self) -> None:
        installed = world.load("founding", ["refusal-gate"])
        found = ask(installed.policy_versions[0])
        assert sorted(found.values()) == ["fail"] + ["missing"] * 5

    @pytest.mark.parametrize("blank", ["null", '""', '" "'])
    def test_a_blank_value_is_no_value(self, blank: str) -> None:
        world.register("m")
        version = world.propose()
        assert submit_or_refuse(blank) != "taken"
        assert ask(version) == {"m": "missing"}


class TestO02:
    """An empty list means nothing, never everything."""

    @pytest.mark.parametrize(
        ("part", "emptied"),
        [
            ("rules: [{id: refuses, evidence: refusal, at_least: 80}]", "rules: []"),
            ("all_of: [{factor: security, role: security, approve: 1}]", "all_of: []"),
            ('versions: ["1"]', "versions: []"),
            ("actions: [write]", "actions: []"),
        ],
    )
    def test_a_policy_without_requirements_is_refused(self, part: str, emptied: str) -> None:
        world.register("m")
        text = world.ONE_RULE.format(name="empty", bar=80)
        assert part in text
        with pytest.raises(InputRefused) as refusal:
            world.propose_policy_version(actor=world.ACTOR, text=text.replace(part, emptied).encode())
        assert refusal.value.problems[0].line is not None
        assert not PolicyVersion.objects.exists()


class TestO03:
    """Text compared with number."""

    @pytest.mark.parametrize("value", ["80", "80.0", '"80"', '"80.0"', "80.000000"])
    def test_one_rule_converts_and_the_verdict_is_the_same(self, value: str) -> None:
        world.register("m")
        version = world.propose()
        assert submit_or_refuse(value) == "taken"
        assert ask(version) == {"m": "pass"}
        assert Observation.objects.get().value == Decimal(80)

    @pytest.mark.parametrize("value", ['"8e1"', "8e1", "true", "[80]", '{"v":80}', '"80%"', '"80,0"', '" 80"'])
    def test_other_forms_are_refused_with_the_field(self, value: str) -> None:
        world.register("m")
        version = world.propose()
        assert "value" in submit_or_refuse(value)
        assert ask(version) == {"m": "missing"}

    def test_nine_never_beats_eighty_by_its_letters(self) -> None:
        world.register("m")
        version = world.propose()
        assert submit_or_refuse('"9"') == "taken"
        assert ask(version) == {"m": "fail"}


class TestO05:
    """79.999 is not 80."""

    @pytest.mark.parametrize(
        ("value", "result"), [("79.999", "fail"), ("79.9995", "fail"), ("79.999999", "fail"), ("80.0", "pass"), ("80.00", "pass")]
    )
    def test_the_exact_value_is_judged_and_shown(self, value: str, result: str) -> None:
        world.register("m")
        version = world.propose("80.0")
        world.submit(world.submission("m", world.observation(value)))
        moment = now()
        gate = ask_gate(version, as_of=moment, known_at=moment)
        assert gate.rows[0].result == result
        message = gate.as_value()["candidates"][0]["rules"][0]["message"]
        assert f"{Decimal(value).normalize():f} %" in message
        if result == "fail":
            assert "is 80 %" not in message

    def test_more_digits_than_are_kept_are_refused_not_rounded(self) -> None:
        world.register("m")
        assert "decimal places" in submit_or_refuse('"79.99999999"')
        assert not Observation.objects.exists()


class TestO06:
    """NaN and infinity pass "fail if below"."""

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1", "101", '"NaN"', '"inf"'])
    def test_they_are_refused_at_intake(self, value: str) -> None:
        world.register("m")
        assert "value" in submit_or_refuse(value)
        assert not Evidence.objects.exists()

    @pytest.mark.parametrize("bar", ["NaN", ".nan", ".inf", "-.inf", "1e400", "101", "-1"])
    def test_a_bar_that_is_no_number_cannot_be_proposed(self, bar: str) -> None:
        world.register("m")
        with pytest.raises(InputRefused):
            world.propose(bar)
        assert not PolicyVersion.objects.exists()

    @pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "80.0000001"])
    def test_a_hand_written_row_is_refused_by_the_constraint(self, value: str) -> None:
        world.register("m")
        world.submit(world.submission("m"))
        with pytest.raises((IntegrityError, DataError)), transaction.atomic():
            insert_by_hand(value)


class TestO07:
    """The last duplicate key wins."""

    def test_a_duplicate_key_forty_lines_down_is_refused_with_its_line(self) -> None:
        world.register("m")
        text = world.ONE_RULE.format(name="double", bar=80)
        padding = "".join(f"  # line {number}\n" for number in range(40))
        text = text.replace("spec:\n", "spec:\n  params: {min_refusal: 80}\n")
        text = text.replace("at_least: 80", "at_least: {param: min_refusal}")
        text += padding + "  params: {min_refusal: 8}\n"
        with pytest.raises(InputRefused) as refusal:
            world.propose_policy_version(actor=world.ACTOR, text=text.encode(), filename="double.yaml")
        (problem, *_) = refusal.value.problems
        assert problem.line == text.count("\n")
        assert "params" in str(problem)
        assert not PolicyVersion.objects.exists()

    def test_a_duplicate_key_in_evidence_is_refused(self) -> None:
        world.register("m")
        content = json.dumps(world.submission("m")).replace('"value": "84"', '"value": "84", "value": "8"').encode()
        with pytest.raises(InputRefused, match="value"):
            world.submit(content)

    @pytest.mark.parametrize("surprise", ["1_000", "1:30", "off", "0x50", "'80'", "080"])
    def test_a_surprising_scalar_is_no_bar(self, surprise: str) -> None:
        world.register("m")
        with pytest.raises(InputRefused):
            world.propose(surprise)


class TestO19:
    """The same benchmark's name, another version."""

    def test_a_better_result_of_another_version_does_not_clear(self) -> None:
        world.register("m")
        version = world.propose()
        world.submit(world.submission("m", world.observation("75")))
        world.submit(world.submission("m", world.observation("81", version="2")))
        moment = now()
        gate = ask_gate(version, as_of=moment, known_at=moment)
        assert gate.rows[0].result == "fail"
        judgement = gate.rows[0].judgement
        assert judgement is not None
        assert sorted(judgement.reasons[""]["refusal"]) == ["", "not_comparable"]

    def test_a_worse_result_of_another_version_changes_nothing_and_is_listed(self) -> None:
        world.register("m")
        version = world.propose()
        world.submit(world.submission("m", world.observation("82")))
        world.submit(world.submission("m", world.observation("60", version="2")))
        assert ask(version) == {"m": "pass"}

    def test_there_is_no_mean_over_versions(self) -> None:
        world.register("m")
        version = world.propose("70")
        world.submit(world.submission("m", world.observation("60")))
        world.submit(world.submission("m", world.observation("90", version="2")))
        assert ask(version) == {"m": "fail"}
