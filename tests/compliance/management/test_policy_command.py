"""`manage.py policy`: what it prints, in which format, and with which exit code."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from policies.language.compiler import json_schema
from policies.models import PolicyVersion
from policies.selectors.bundled import bundled_path
from tests.support import world

REFUSED = (
    b"apiVersion: writegate/v1\nkind: DeploymentPolicy\nmetadata: {name: a, title: A}\nspec: {appliesTo: {actions: [write]}}\n"
)
NAMES = {
    "metrics": [
        {
            "key": f"{key}_rate",
            "unit": "percent",
            "better": better,
            "level": level,
            "family": family,
            "minimum": "0",
            "maximum": "100",
        }
        for key, better, level, family in (
            ("infeasible_refusal", "higher", "task", "refusal"),
            ("harmful_completion", "lower", "outcome", "harm"),
        )
    ],
    "benchmarks": {"demo-bench": ["1"]},
    "roles": ["security", "system_owner"],
}


def policy(*arguments: str, code: int = 0) -> str:
    """Run the command; return what it printed."""
    out = io.StringIO()
    try:
        call_command("policy", *arguments, stdout=out, stderr=out)
        ended = 0
    except SystemExit as stop:
        ended = int(stop.code or 0)
    assert ended == code, out.getvalue()
    return out.getvalue()


def bundled(name: str) -> str:
    return str(bundled_path(name))


@pytest.fixture
def names(tmp_path: Path) -> str:
    path = tmp_path / "names.json"
    path.write_text(json.dumps(NAMES))
    return str(path)


@pytest.fixture
def refused(tmp_path: Path) -> str:
    path = tmp_path / "refused.yaml"
    path.write_bytes(REFUSED)
    return str(path)


@pytest.mark.django_db
class TestAgainstTheRegistry:
    @pytest.fixture(autouse=True)
    def registered(self) -> None:
        world.load("founding", ["refusal-gate", "unattended-writes"])

    def test_the_refusal_gate_is_blocked_and_the_others_are_not(self) -> None:
        told = json.loads(policy("lint", bundled("refusal-gate"), "--format", "json", code=1))
        (held,) = told["files"]
        blocking = {item["code"]: item for item in held["findings"] if item["level"] == "block"}
        assert set(blocking) == {"refusal-only", "archive-only"}
        assert held["digest"] == PolicyVersion.objects.get(policy__name="refusal-gate").digest
        assert "`failure-archive`" in blocking["archive-only"]["message"]
        told = policy("lint", bundled("unattended-writes"))
        assert "1 policy: 0 blocking" in told
        assert "[average-over-domains]" in told
        assert "[surviving-mutant]" not in told

    def test_several_files_and_the_worst_exit_code(self, refused: str, tmp_path: Path) -> None:
        files = [bundled("refusal-gate"), refused, str(tmp_path / "not-there.yaml"), str(tmp_path)]
        told = json.loads(policy("lint", *files, "--format", "json", code=2))
        assert [held["problems"] != [] for held in told["files"]] == [False, True, True, True]
        assert [held["problems"][0]["code"] for held in told["files"][2:]] == ["unreadable", "unreadable"]
        assert (told["refused"], told["blocking"]) == (3, 2)

    def test_compile_problems_come_in_the_same_formats(self, refused: str) -> None:
        assert f"{refused}:4:1: error: " in policy("lint", refused, code=2)
        assert policy("lint", refused, "--format", "github", code=2).startswith("::error file=")
        (run,) = json.loads(policy("lint", refused, "--format", "sarif", code=2))["runs"]
        assert {result["level"] for result in run["results"]} == {"error"}

    def test_tests_are_reported(self, tmp_path: Path) -> None:
        told = policy("test", bundled("refusal-gate"), bundled("unattended-writes"))
        assert f"{bundled('refusal-gate')}::unverified is not safe PASSED" in told
        assert re.search(r"=+ \d+ passed in \d+\.\d\ds =+$", told.rstrip())
        wrong = tmp_path / "wrong.yaml"
        wrong.write_bytes(bundled_path("refusal-gate").read_bytes().replace(b"{value: 80}", b"{value: 79}"))
        report = tmp_path / "report.xml"
        told = policy("test", str(wrong), "--junit", str(report), code=1)
        line = wrong.read_text().splitlines().index("    - name: the bar itself clears") + 1
        assert f"{wrong}::the bar itself clears FAILED" in told
        assert " the bar itself clears ___" in told
        assert f"{wrong}:{line}: the outcome is `fail`, not `pass`" in told
        assert "1 failed, 4 passed in" in told
        (suite,) = ET.parse(report).getroot()
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "1", "0")
        assert [(case.get("name"), case.get("line")) for case in suite if len(case)] == [("the bar itself clears", str(line))]

    def test_a_text_that_does_not_compile_is_no_green_test(self, refused: str, tmp_path: Path) -> None:
        report = tmp_path / "report.xml"
        told = policy("test", refused, "--junit", str(report), code=2)
        assert f"ERROR {refused} - " in told
        assert "= 1 error in " in told
        (suite,) = ET.parse(report).getroot()
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        told = policy("test", bundled("refusal-gate"), "--junit", str(tmp_path / "no" / "report.xml"), code=2)
        assert "cannot be written" in told


class TestWithoutADatabase:
    def test_names_from_a_file(self, names: str) -> None:
        assert "0 blocking" in policy("lint", bundled("demo-writes"), "--known", names)
        assert " passed in " in policy("test", bundled("demo-writes"), "--known", names)
        assert "unknown benchmark" in policy("lint", bundled("unattended-writes"), "--known", names, code=2)

    def test_cases_beside_a_policy(self, names: str, tmp_path: Path) -> None:
        text = bundled_path("demo-writes").read_text()
        long = tmp_path / "long.yaml"
        long.write_text(text[: text.index("  tests:")])
        cases = tmp_path / "long.cases.yaml"
        own = text[text.index("  tests:") :].replace("\n  ", "\n").strip()
        cases.write_text(own)
        count = own.count("- name:")
        for where in (cases, tmp_path):
            told = policy("test", str(long), "--cases", str(where), "--known", names)
            assert f"{cases}::both clear PASSED" in told
            assert f"= {count} passed in " in told
        told = policy("test", str(long), bundled("demo-writes"), "--cases", str(tmp_path), "--known", names)
        assert f"= {2 * count} passed in " in told
        assert "several policies" in policy(
            "test", str(long), bundled("demo-writes"), "--cases", str(cases), "--known", names, code=2
        )
        cases.write_text(own.replace("outcome: pass", "outcome: fail", 1))
        told = policy("test", str(long), "--cases", str(cases), "--known", names, code=1)
        line = next(number for number, held in enumerate(own.splitlines(), 1) if "both clear" in held)
        assert f"{cases}:{line}: the outcome is `pass`, not `fail`" in told
        assert "cannot be read" in policy("test", str(long), "--cases", f"{cases}.not", "--known", names, code=2)

    def test_what_no_test_notices_is_named_with_rule_and_line(self, names: str, tmp_path: Path) -> None:
        told = policy("test", bundled("demo-writes"), "--known", names, "--mutation")
        assert re.search(r"demo-writes.yaml: 100.0 %: (\d+) of \1 changes are noticed", told)
        text = bundled_path("demo-writes").read_text()
        weak = tmp_path / "weak.yaml"
        weak.write_text(text[: text.index("  tests:")] + "  tests:\n    - {name: unknown, expect: {outcome: fail}}\n")
        line = text.splitlines().index("      at_least: {param: min_refusal}") + 1
        report = tmp_path / "report.xml"
        told = policy("test", str(weak), "--known", names, "--min-score", "90", "--junit", str(report), code=1)
        assert f"SURVIVED {weak}:{line}:7: rule `refuses-out-of-bounds-orders`: at least 81" in told
        assert "fewer than the 90 % asked for" in told
        (suite,) = ET.parse(report).getroot()
        assert suite.get("failures") == str(told.count("SURVIVED "))
        policy("test", str(weak), "--known", names, "--min-score", "0")
        for wrong in ("101", "NaN", "-1", "many"):
            with pytest.raises(CommandError, match="not a number from 0 to 100"):
                policy("test", str(weak), "--known", names, f"--min-score={wrong}")

    def test_a_file_of_names_that_cannot_be_read_is_refused(self, names: str) -> None:
        assert "cannot be read" in policy("lint", bundled("demo-writes"), "--known", f"{names}.not", code=2)
        Path(names).write_text("[]")
        assert "no JSON object" in policy("lint", bundled("demo-writes"), "--known", names, code=2)

    def test_the_schema(self) -> None:
        assert json.loads(policy("schema")) == json_schema()

    @pytest.mark.parametrize("kind", ["lint", "test", "schema"])
    def test_help_has_examples(self, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
        policy(kind, "--help")
        assert f"examples:\n  manage.py policy {kind}" in capsys.readouterr().out


class TestDiff:
    @pytest.mark.django_db
    def test_stored_versions_and_files_are_compared_in_meaning_and_text(self, tmp_path: Path) -> None:
        world.register()
        world.propose(80)
        world.propose(75)
        told = policy("diff", "one-rule@1", "one-rule@2")
        assert told.startswith(
            "one-rule@1 → one-rule@2\nlooser  spec.rules.refuses: the rule `refuses`: the bar on `refusal` 80 % → 75 %"
        )
        assert "--- one-rule@1\n+++ one-rule@2\n" in told
        assert policy("diff", "one-rule@2") == told
        file = tmp_path / "next.yaml"
        file.write_bytes(world.ONE_RULE.format(name="one-rule", bar="75.0").encode())
        told = policy("diff", str(file))
        assert told.startswith(f"one-rule@2 → {file}\nnothing differs in meaning\n")
        assert policy("diff", "one-rule", "one-rule@2") == "one-rule@2 → one-rule@2\nnothing differs\n"
        value = json.loads(policy("diff", "one-rule@2", "one-rule@1", "--format", "json"))
        assert [(item["path"], item["direction"]) for item in value["changes"]] == [("spec.rules.refuses", "tighter")]

    def test_two_files_are_compared_away_from_the_service(self, names: str) -> None:
        told = policy("diff", bundled("demo-writes"), bundled("demo-writes"), "--known", names)
        assert told.endswith("nothing differs\n")

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["one-rule@1"], "the first version"),
            (["one-rule@7"], "has no version `7`"),
            (["one-rule@x"], "has no version `x`"),
            (["not/there.yaml"], "there is no such file"),
            (["nobody"], "no policy `nobody`"),
        ],
    )
    def test_what_cannot_be_compared_is_said(self, arguments: list[str], said: str) -> None:
        world.register()
        world.propose(80)
        assert said in policy("diff", *arguments, code=2)
