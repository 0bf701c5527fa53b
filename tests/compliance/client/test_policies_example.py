"""The GitHub Actions example for policies, run step by step as a runner does: it ends where something blocks, and shows the impact."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from policies.selectors.bundled import bundled_path
from tests.compliance.client.test_actions_example import Run, Runner
from tests.compliance.client.test_cli import ROOT
from tests.compliance.management.test_policy_command import NAMES
from tests.support import world
from tests.support.cluster import Database

EXAMPLE = ROOT / "compliance" / "client" / "examples" / "policies-github-actions.yml"
IMPACT = "Show whom it would newly permit or refuse"

pytestmark = pytest.mark.slow


@pytest.fixture
def workflow() -> Any:
    return YAML(typ="safe").load(EXAMPLE)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with one policy that is fit for activation, and what it may name."""
    made = tmp_path / "work"
    (made / "policies").mkdir(parents=True)
    (made / "policies" / "demo-writes.yaml").write_bytes(bundled_path("demo-writes").read_bytes())
    (made / "policies" / "known.json").write_text(json.dumps(NAMES))
    return made


def run(workspace: Path, workflow: Any, *, database: str = "") -> Run:
    variables = {"WRITEGATE_PACKAGE": "https://example.org/w.whl#sha256=0", "WRITEGATE_IMPACT": "yes" if database else ""}
    runner = Runner(workspace, variables=variables, secrets={"DATABASE_URL": database})
    python = f'WRITEGATE_DATA_DIR={workspace.parent / "data"} PYTHONPATH={ROOT} exec {sys.executable} "$@"'
    runner._command("python", python)
    return runner.run(workflow)


def test_the_workflow_is_one_that_a_runner_takes(workflow: Any) -> None:
    assert set(workflow) == {"name", "on", "permissions", "defaults", "env", "jobs"}
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert not {"continue-on-error"} & set(step)
    holders = [step["name"] for step in job["steps"] if "secrets." in str(step)]
    assert holders == [IMPACT], "no other step sees the database"


def test_a_sound_policy_passes_without_a_database(workspace: Path, workflow: Any) -> None:
    done = run(workspace, workflow)
    assert done.failed == "", done.log
    assert done.steps == ["Install Writegate", "Lint", "Test"]
    report = ET.parse(workspace / "policy-tests.xml").getroot()
    assert len(list(report.iter("testcase"))) > 0
    assert not list(report.iter("failure"))


def test_a_policy_that_rests_on_refusal_alone_ends_at_its_lint(workspace: Path, workflow: Any) -> None:
    only = world.ONE_RULE.format(name="only", bar=80).replace("benchmark: bench", "benchmark: demo-bench")
    (workspace / "policies" / "only.yaml").write_text(only)
    done = run(workspace, workflow)
    assert done.failed == "Lint"
    assert "::error file=policies/only.yaml,line=" in done.log
    assert "refusal-only" in done.log


def test_a_red_test_ends_it(workspace: Path, workflow: Any) -> None:
    path = workspace / "policies" / "demo-writes.yaml"
    text = path.read_text(encoding="utf-8")
    assert "outcome: pass" in text
    path.write_text(text.replace("outcome: pass", "outcome: fail", 1), encoding="utf-8")
    done = run(workspace, workflow)
    assert done.failed == "Test", done.log
    assert list(ET.parse(workspace / "policy-tests.xml").getroot().iter("failure"))


def test_it_shows_the_impact_where_it_reaches_the_database(workspace: Path, workflow: Any, committed_db: Database) -> None:
    world.load("demo", ["demo-writes"])
    world.judge_all()
    done = run(workspace, workflow, database=committed_db.roles.runtime_url)
    assert done.failed == "", done.log
    assert done.steps[-1] == IMPACT
    assert done.summary.startswith("### Whom the policies would newly permit or refuse\n```\n")
    assert "demo-writes" in done.summary
    assert committed_db.roles.runtime_url not in done.log + done.summary
