"""`manage.py policy`: what it prints, in which format, and with which exit code."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from django.core.management import call_command

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
        assert "[untested-rule]" in told

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
        assert "  passed  unverified is not safe" in told
        assert told.rstrip().endswith("6 passed, 0 failed")
        wrong = tmp_path / "wrong.yaml"
        wrong.write_bytes(bundled_path("refusal-gate").read_bytes().replace(b"{value: 80}", b"{value: 79}"))
        report = tmp_path / "report.xml"
        told = policy("test", str(wrong), "--junit", str(report), code=1)
        assert "  FAILED  the bar itself clears\n          the outcome is `fail`, not `pass`" in told
        (suite,) = ET.parse(report).getroot()
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "1", "0")
        assert [case.get("name") for case in suite if len(case)] == ["the bar itself clears"]

    def test_a_text_that_does_not_compile_is_no_green_test(self, refused: str, tmp_path: Path) -> None:
        report = tmp_path / "report.xml"
        assert "not compiled" in policy("test", refused, "--junit", str(report), code=2)
        (suite,) = ET.parse(report).getroot()
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        told = policy("test", bundled("refusal-gate"), "--junit", str(tmp_path / "no" / "report.xml"), code=2)
        assert "cannot be written" in told


class TestWithoutADatabase:
    def test_names_from_a_file(self, names: str) -> None:
        assert "0 blocking" in policy("lint", bundled("demo-writes"), "--known", names)
        assert "6 passed, 0 failed" in policy("test", bundled("demo-writes"), "--known", names)
        assert "unknown benchmark" in policy("lint", bundled("unattended-writes"), "--known", names, code=2)

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
