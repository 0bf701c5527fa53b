"""The GitHub Actions example, run step by step as a runner does: it deploys while the gate allows, and not otherwise."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer
from ruamel.yaml import YAML

from compliance.services.people import create_token
from evaluations.models import SubjectVersion
from tests.compliance.client.test_cli import ROOT
from tests.compliance.client.test_fingerprint import agent
from tests.compliance.client.test_sending import evidence
from tests.support import signing, world
from tests.support.gate_answers import ODD, Asked, right
from tests.support.pipelines import Serve, Service, deployable, serving

EXAMPLE = ROOT / "compliance" / "client" / "examples" / "github-actions.yml"
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]

_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
_OUTPUT = re.compile(r"([A-Za-z_][\w-]*)=(.*)\Z")


@pytest.fixture
def serve() -> Serve:
    """Makes a service whose gate answers so; it knows the models of the agent, and the source `lab`."""
    return serving


@dataclass
class Run:
    """One run of the workflow's only job."""

    steps: list[str] = field(default_factory=list)
    failed: str = ""
    log: str = ""
    summary: str = ""
    deployed: bool = False


class Runner:
    """Runs the shell steps of a workflow, as far as the example needs: contexts `vars`, `secrets`, `steps`, and `x != ''`."""

    def __init__(self, workspace: Path, *, variables: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        self.workspace = workspace
        self.contexts: dict[str, Any] = {"vars": variables, "secrets": secrets, "steps": {}}
        self.private = workspace.parent / "runner"
        self.commands = self.private / "bin"
        self.commands.mkdir(parents=True, exist_ok=True)
        self._command("writegate", f'PYTHONPATH={ROOT} exec {sys.executable} -m compliance.client "$@"')
        # What the client is installed from is the operator's; here it is there already.
        self._command("pip", 'printf "%s\\n" "$@" > "$(dirname "$0")/../pip-arguments"')

    def run(self, workflow: Any) -> Run:
        done = Run()
        (job,) = workflow["jobs"].values()
        for step in job["steps"]:
            if "run" not in step:
                continue
            if "if" in step and self.value(step["if"]) is not True:
                continue
            done.steps.append(step["name"])
            environment = {name: self.value(text) for name, text in {**workflow["env"], **step.get("env", {})}.items()}
            if not self._run(step, environment, done):
                done.failed = step["name"]
                break
        done.summary = self._read("summary")
        done.deployed = (self.workspace / "deployed").exists()
        return done

    def value(self, text: str) -> Any:
        """The value of a text with expressions in it."""
        whole = _EXPRESSION.fullmatch(text)
        if whole and whole[1].endswith(" != ''"):
            return self._look_up(whole[1].removesuffix(" != ''")) != ""
        return _EXPRESSION.sub(lambda found: self._look_up(found[1]), text)

    def _look_up(self, path: str) -> str:
        found: Any = self.contexts
        for name in path.split("."):
            found = found.get(name, {})
        return found or ""

    def _run(self, step: Mapping[str, Any], environment: Mapping[str, str], done: Run) -> bool:
        script = self.private / "step.sh"
        script.write_text(step["run"])
        assert not _EXPRESSION.search(step["run"]), "values come by the environment: in a script they would be code"
        files = {name: self.private / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        files["GITHUB_OUTPUT"].write_text("")
        got = subprocess.run(
            [*BASH, str(script)],
            cwd=self.workspace,
            env={
                "PATH": f"{self.commands}:{os.environ['PATH']}",
                "HOME": str(self.private),
                "CI": "true",
                "GITHUB_RUN_ID": "4711",
                "GITHUB_RUN_ATTEMPT": "1",
                **{name: str(file) for name, file in files.items()},
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        done.log += got.stdout
        lines = [_OUTPUT.match(line) for line in files["GITHUB_OUTPUT"].read_text().splitlines()]
        self.contexts["steps"][step.get("id", "")] = {"outputs": {found[1]: found[2] for found in lines if found}}
        return got.returncode == 0

    def _read(self, name: str) -> str:
        file = self.private / f"github_step_{name}"
        return file.read_text() if file.exists() else ""

    def _command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return deployable(tmp_path / "work", agent, evidence)


@pytest.fixture
def workflow() -> Any:
    return YAML(typ="safe").load(EXAMPLE)


def run(workspace: Path, workflow: Any, service: Service, *, source: str = "lab") -> Run:
    variables = {
        "WRITEGATE_SERVER": service.url,
        "WRITEGATE_PACKAGE": "https://example.org/w.whl#sha256=0",
        "EVIDENCE_SOURCE": source,
    }
    done = Runner(workspace, variables=variables, secrets={"WRITEGATE_TOKEN": service.token}).run(workflow)
    assert service.token not in done.log + done.summary
    return done


def test_the_workflow_is_one_that_a_runner_takes(workflow: Any) -> None:
    assert set(workflow) == {"name", "on", "permissions", "concurrency", "env", "defaults", "jobs"}
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["defaults"]["run"]["shell"] == "bash"
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert not {"continue-on-error"} & set(step)
    names = [step.get("name") for step in job["steps"]]
    assert names.index("Ask the gate") == names.index("Deploy") - 1
    holders = [step["name"] for step in job["steps"] if "WRITEGATE_TOKEN" in step.get("env", {})]
    assert holders == ["Register it", "Hand in evidence", "Ask the gate"], "no other step sees the token"


def test_it_deploys_what_the_gate_allows(workspace: Path, workflow: Any, serve: Serve) -> None:
    with serve(right) as service:
        done = run(workspace, workflow, service)
    assert (done.failed, done.deployed) == ("", True), done.log
    assert done.steps == [
        "Install the client",
        "Say what is about to run",
        "Register it",
        "Hand in evidence",
        "Ask the gate",
        "Deploy",
    ]
    assert "allow  hr-agent@1 may write at hr-prod" in done.log
    assert done.summary.startswith("### Writegate: allow\n")
    installed = (workspace.parent / "runner" / "pip-arguments").read_text().splitlines()
    assert installed == ["install", "writegate @ https://example.org/w.whl#sha256=0"]

    def sent(path: str) -> Asked:
        (one,) = [asked for asked in service.gate.asked if asked.path == path]
        return one

    question = sent("/access/v1/evaluation").value
    assert question["subject"] == {"type": "agent", "id": "hr-agent", "properties": {"fingerprint": service.gate.digest}}
    assert (
        sent("/api/v1/evidence/uploads?file_name=run.json&source=lab").body == (workspace / "evidence" / "run.json").read_bytes()
    )
    assert sent("/api/v1/subjects").value["key"] == "hr-agent"


@pytest.mark.parametrize("name", ["deny", "cut after 20 bytes", 'decision "true"', "503 with an allow", "another fingerprint"])
def test_it_deploys_nothing_else(name: str, workspace: Path, workflow: Any, serve: Serve) -> None:
    with serve(ODD[name]) as service:
        done = run(workspace, workflow, service)
    assert (done.failed, done.deployed) == ("Ask the gate", False), done.log
    assert done.summary.startswith("### Writegate: DENY\n")


def test_it_stops_where_the_agent_cannot_be_registered(workspace: Path, workflow: Any, serve: Serve) -> None:
    settings = workspace / "agents" / "hr" / "writegate.toml"
    settings.write_text(settings.read_text().replace("harness_version", "harness_verison"))
    with serve(right) as service:
        done = run(workspace, workflow, service)
        assert not service.gate.asked
    assert (done.failed, done.deployed) == ("Say what is about to run", False)


def test_evidence_is_optional(workspace: Path, workflow: Any, serve: Serve) -> None:
    (workspace / "evidence" / "run.json").unlink()
    with serve(right) as service:
        done = run(workspace, workflow, service, source="")
    assert done.deployed, done.log
    assert "Hand in evidence" not in done.steps


def test_observing_lets_it_pass_and_says_what_would_be_denied(workspace: Path, workflow: Any, serve: Serve) -> None:
    (job,) = workflow["jobs"].values()
    step = next(one for one in job["steps"] if one.get("name") == "Ask the gate")
    step["run"] = step["run"].replace("writegate check", "writegate check --observe")
    with serve(ODD["deny"]) as service:
        done = run(workspace, workflow, service)
        assert service.gate.questions[0].value["context"] == {"observe": True}
    assert done.deployed
    assert "WOULD DENY" in done.log
    assert done.summary.startswith("### Writegate: WOULD DENY\n")


@pytest.mark.slow
def test_against_the_service_itself_it_deploys_once_people_have_signed(
    workspace: Path, workflow: Any, committed_db: object, run_tasks_inline: None
) -> None:
    land = signing.ground()
    live = LiveServer("127.0.0.1")
    scopes = ["register", "submit_evidence", "decide:hr-prod"]
    service = Service(live.url, create_token(actor=world.ACTOR, name="ci", scopes=scopes, person=land.asker.person).secret)
    settings = workspace / "agents" / "hr" / "writegate.toml"
    settings.write_text(settings.read_text().replace('["model-b", "model-a@1", "model-b"]', '["model-a"]'))
    newer = world.submission("model-a", world.observation("92"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
    (workspace / "evidence" / "run.json").write_text(json.dumps(newer))
    try:
        done = run(workspace, workflow, service)
        assert (done.failed, done.deployed) == ("Ask the gate", False), done.log
        assert "DENY  no_grant" in done.log
        version = SubjectVersion.objects.get(subject__key="hr-agent")
        signing.granted(land._replace(version=version))
        done = run(workspace, workflow, service)
        assert (done.failed, done.deployed) == ("", True), done.log
        assert "allow  hr-agent@1 may write at hr-prod" in done.log
        (workspace / "deployed").unlink()
        (workspace / "agents" / "hr" / "prompts" / "system.md").write_text("You help, and more.")
        done = run(workspace, workflow, service)
        assert (done.failed, done.deployed) == ("Ask the gate", False), "what people signed is not what would run"
    finally:
        live.stop()
        connections.close_all()
