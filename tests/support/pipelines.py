"""Services that a pipeline or an agent's host talks to, and the repository that a pipeline works in."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.gate_answers import Reply
from tests.support.gate_server import GateServer, gate_server


@dataclass(frozen=True)
class Service:
    """A service that a pipeline talks to, with a token for `register`, `submit_evidence` and `decide:hr-prod`."""

    url: str
    token: str
    gate: GateServer = field(default_factory=GateServer)


Serve = Callable[[Reply], AbstractContextManager[Service]]


@contextmanager
def serving(*replies: Reply) -> Iterator[Service]:
    """Serve a gate that answers so; it knows the models of the agent, and the source `lab`."""
    with gate_server(*replies) as gate:
        yield Service(gate.url, "wg_very-secret", gate)


def deployable(made: Path, agent: Callable[[Path], Path], evidence: Callable[[Path], object]) -> Path:
    """Make the repository of an agent, with evidence and a deployment that leaves a file `deployed` behind."""
    agent(made / "agents" / "hr")
    (made / "evidence").mkdir()
    evidence(made / "evidence" / "run.json")
    (made / "deploy.sh").write_text('#!/bin/sh\necho "$1 ${WRITEGATE_TOKEN:-}" > deployed\n')
    (made / "deploy.sh").chmod(0o755)
    return made
