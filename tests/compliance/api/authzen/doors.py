"""Clients of the doors of AuthZEN, over HTTP through the whole middleware."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from compliance import checks
from compliance.models import SignOffRequest
from compliance.selectors.dossiers.base import REQUESTER_GONE
from compliance.selectors.dossiers.build import build_dossier
from compliance.vocabulary import RequestKind
from evaluations.kernel.clock import now
from policies.models import PolicyVersion
from tests.support import quorum

PATH = "/access/v1"


class Doors:
    """A client that asks by one token, as a program does: no cookie, no session."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.client = Client()

    def send(self, path: str, body: Any, **headers: str) -> HttpResponse:
        """POST a value as JSON, or bytes as they are. A header given as "" is left out."""
        given = {"Authorization": f"Bearer {self.token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        kind = given.pop("Content-Type", "application/json")
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        held = {name: value for name, value in given.items() if value}
        return self.client.generic("POST", f"{PATH}/{path}", content, content_type=kind, headers=held)

    def decide(self, body: Any, path: str = "evaluation") -> bool:
        """Return the decision of an answer that is one."""
        answer = self.send(path, body)
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == "application/json"
        decision = answer.json()["decision"]
        assert isinstance(decision, bool)
        return decision

    def decisions(self, body: Any) -> list[bool]:
        """Return the decisions of a batch."""
        answer = self.send("evaluations", body)
        assert answer.status_code == 200, answer.content
        assert "decision" not in answer.json()
        return [one["decision"] for one in answer.json()["evaluations"]]

    def found(self, sought: str, body: Any) -> list[str]:
        """Return the names that a search finds on its first page."""
        answer = self.send(f"search/{sought}", body)
        assert answer.status_code == 200, answer.content
        return [one.get("id", one.get("name")) for one in answer.json()["results"]]


def question(subject: str = "model-a", system: str = "hr-prod", action: str = "write", kind: str = "model") -> dict[str, Any]:
    """Return a question as the protocol has it."""
    return {
        "subject": {"type": kind, "id": subject},
        "action": {"name": action},
        "resource": {"type": "system", "id": system},
    }


CERTIFIED = {
    "subject": {"type": "user", "id": "alice"},
    "action": {"name": "read"},
    "resource": {"type": "record", "id": "record-1"},
}
"""A question of the certification, which its policy allows."""


def obstacles(version: PolicyVersion) -> list[str]:
    """Return what keeps a policy version from coming into force, besides signatures and that nobody has really asked for it."""
    uid = quorum.signed_request(RequestKind.ACTIVATION, policy_version=version)
    found = build_dossier(SignOffRequest.objects.get(uid=uid), at=now()).obstacles
    return [obstacle.code for obstacle in found if obstacle != REQUESTER_GONE]


def findings() -> list[str]:
    """Return what the start-up check says about the conformance profile on this database."""
    return [str(finding.id) for finding in checks.check_conformance(None, databases=["default"])]
