"""The GitLab CI example, run as a runner does: its job deploys while the gate allows, and not otherwise."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
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
from tests.support.gate_answers import ODD, right
from tests.support.pipelines import Service, deployable, serving

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "compliance" / "client" / "examples" / "gitlab-ci.yml"
GLOBAL = {"stages", "variables"}
HEAD = "set -eo pipefail\nset +o noclobber\n"
"""How a runner's shell begins; `before_script` and `script` are one script in one shell."""


@dataclass
class Run:
    """One run of the pipeline's only job."""

    code: int
    log: str
    summary: str
    deployed: str


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return deployable(tmp_path / "work", agent, evidence)


@pytest.fixture
def pipeline() -> Any:
    return YAML(typ="safe").load(EXAMPLE)


def job_of(pipeline: Any) -> Any:
    (job,) = (value for name, value in pipeline.items() if name not in GLOBAL)
    return job


def command(directory: Path, name: str, script: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(workspace: Path, pipeline: Any, service: Service, **variables: str) -> Run:
    job, private = job_of(pipeline), workspace.parent / "runner"
    command(private / "bin", "writegate", f'PYTHONPATH={ROOT} exec {sys.executable} -m compliance.client "$@"')
    # What the client is installed from is the operator's; here it is there already.
    command(private / "bin", "pip", 'printf "%s\\n" "$@" > "$(dirname "$0")/../pip-arguments"')
    script = private / "script.sh"
    script.write_text(HEAD + "\n".join([*job["before_script"], *job["script"]]) + "\n")
    got = subprocess.run(
        ["bash", "--noprofile", "--norc", str(script)],
        cwd=workspace,
        env={
            "PATH": f"{private / 'bin'}:{os.environ['PATH']}",
            "HOME": str(private),
            "CI": "true",
            "CI_PIPELINE_ID": "4711",
            "CI_JOB_ID": "12",
            **pipeline["variables"],
            "WRITEGATE_SERVER": service.url,
            "WRITEGATE_TOKEN": service.token,
            "WRITEGATE_PACKAGE": "https://example.org/w.whl#sha256=0",
            "EVIDENCE_SOURCE": "lab",
            **variables,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    told, done = (workspace / job["artifacts"]["paths"][0]), workspace / "deployed"
    made = Run(got.returncode, got.stdout, told.read_text() if told.exists() else "", done.read_text() if done.exists() else "")
    assert service.token not in made.log + made.summary + made.deployed, "what deploys does not see the token either"
    return made


def test_the_pipeline_is_one_that_a_runner_takes(pipeline: Any) -> None:
    job = job_of(pipeline)
    assert set(pipeline) - GLOBAL == {"deploy the HR agent"}
    assert job["stage"] in pipeline["stages"]
    assert set(job) == {
        *("stage", "image", "timeout", "resource_group", "interruptible", "environment", "rules"),
        *("before_script", "script", "artifacts"),
    }, "no `allow_failure`, and nothing that makes it one"
    assert job["environment"] == {"name": "production"}, "whose protection gives the token to the default branch alone"
    assert job["rules"] == [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}]
    assert all(isinstance(line, str) for line in [*job["before_script"], *job["script"]]), "a colon and a space make a mapping"
    assert job["script"][-2].startswith("writegate check ")
    assert job["script"][-1] == 'env -u WRITEGATE_TOKEN ./deploy.sh "$AGENT"'


def test_it_deploys_what_the_gate_allows(workspace: Path, pipeline: Any) -> None:
    with serving(right) as service:
        done = run(workspace, pipeline, service)
        (question,) = [asked.value for asked in service.gate.questions]
    assert (done.code, done.deployed) == (0, "agents/hr \n"), done.log
    assert "allow  hr-agent@1 may write at hr-prod" in done.log
    assert done.summary.startswith("### Writegate: allow\n")
    assert question["subject"] == {"type": "agent", "id": "hr-agent", "properties": {"fingerprint": service.gate.digest}}
    installed = (workspace.parent / "runner" / "pip-arguments").read_text().splitlines()
    assert installed == ["install", "writegate @ https://example.org/w.whl#sha256=0"]
    paths = [asked.path.partition("?")[0] for asked in service.gate.asked]
    assert [paths.index(path) for path in ("/api/v1/subjects", "/api/v1/evidence/uploads", "/access/v1/evaluation")] == sorted(
        paths.index(path) for path in ("/api/v1/subjects", "/api/v1/evidence/uploads", "/access/v1/evaluation")
    )


@pytest.mark.parametrize("name", ["deny", "cut after 20 bytes", 'decision "true"', "503 with an allow", "another fingerprint"])
def test_it_deploys_nothing_else(name: str, workspace: Path, pipeline: Any) -> None:
    with serving(ODD[name]) as service:
        done = run(workspace, pipeline, service)
    assert done.code != 0
    assert done.deployed == "", done.log
    assert done.summary.startswith("### Writegate: DENY\n")


def test_it_stops_where_the_agent_cannot_be_registered(workspace: Path, pipeline: Any) -> None:
    settings = workspace / "agents" / "hr" / "writegate.toml"
    settings.write_text(settings.read_text().replace('"model-a@1"', '"model-unheard-of"'))
    with serving(right) as service:
        done = run(workspace, pipeline, service)
        assert not service.gate.questions
    assert (done.code != 0, done.deployed) == (True, ""), done.log


def test_evidence_is_optional(workspace: Path, pipeline: Any) -> None:
    (workspace / "evidence" / "run.json").unlink()
    with serving(right) as service:
        done = run(workspace, pipeline, service, EVIDENCE_SOURCE="")
        assert not [asked for asked in service.gate.asked if "uploads" in asked.path]
    assert (done.code, done.deployed) == (0, "agents/hr \n"), done.log


def test_against_the_service_itself_it_deploys_once_people_have_signed(
    workspace: Path, pipeline: Any, committed_db: object, run_tasks_inline: None
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
        done = run(workspace, pipeline, service)
        assert (done.code, done.deployed) == (1, ""), done.log
        assert "DENY  no_grant" in done.log
        signing.granted(land._replace(version=SubjectVersion.objects.get(subject__key="hr-agent")))
        done = run(workspace, pipeline, service)
        assert (done.code, done.deployed) == (0, "agents/hr \n"), done.log
        (workspace / "deployed").unlink()
        (workspace / "agents" / "hr" / "prompts" / "system.md").write_text("You help, and more.")
        done = run(workspace, pipeline, service)
        assert (done.code, done.deployed) == (1, ""), "what people signed is not what would run"
    finally:
        live.stop()
        connections.close_all()
