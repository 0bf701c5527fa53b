"""Examples of what the doors of AuthZEN are asked and answer, in the published description; tests hold them against its schemas."""

from typing import Any

from compliance.api.authzen.denials import DISPLAY, REQUESTS, TEMPLATE
from compliance.deciding.codes import Code, Reason
from compliance.deciding.next_steps import STEPS

Value = dict[str, Any]

_DIGEST = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_GRANT, _VERDICT, _EVIDENCE = (
    "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "3f333df6-90a4-4fda-8dd3-9485d27cee36",
    "0b2f8d1c-5f6e-8a3b-9c4d-2e1f0a9b8c7d",
)
_AGENT, _WRITE, _SYSTEM = {"type": "agent", "id": "hr-agent"}, {"name": "write"}, {"type": "system", "id": "hr-prod"}
_OTHER = {"type": "system", "id": "erp-prod"}

QUESTION: Value = {
    "subject": {**_AGENT, "properties": {"fingerprint": _DIGEST}},
    "action": _WRITE,
    "resource": _SYSTEM,
}
_KNOWN: Value = {
    "evaluated_at": "2026-11-30T09:30:00.000000Z",
    "subject": {"key": "hr-agent", "version": 3, "digest": _DIGEST},
    "action": "write",
    "policies": [
        {
            "policy": "hr-writes",
            "version": 2,
            "digest": _DIGEST,
            "domain": "hr",
            "verdict": _VERDICT,
            "outcome": "pass",
        }
    ],
    "waived": [],
    "entry": {"id": "0192f7a0-0000-7000-8000-000000000002", "leaf_hash": "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="},
}
ALLOW: Value = {
    "decision": True,
    "context": {
        **_KNOWN,
        "evaluation_id": "0192f7a0-0000-7000-8000-000000000001",
        "reasons": [],
        "system": "hr-prod",
        "grants": [_GRANT],
        "evidence": [_EVIDENCE],
        "valid_until": "2026-12-30T09:00:00.000000Z",
    },
}
DENY: Value = {
    "decision": False,
    "context": {
        **_KNOWN,
        "evaluation_id": "0192f7a0-0000-7000-8000-000000000003",
        "reason": Code.NO_GRANT.value,
        "next_action": STEPS[Code.NO_GRANT].action.value,
        "access_request": {
            "expires_at": "2026-11-30T10:30:00.000000Z",
            "endpoint": f"https://gate.example.org{REQUESTS}",
            "template": TEMPLATE,
            "display": DISPLAY,
        },
        "reasons": [Reason(Code.NO_GRANT, {}).as_value()],
        "system": "erp-prod",
        "grants": [],
        "evidence": [],
    },
}
BATCH: Value = {
    "subject": QUESTION["subject"],
    "action": _WRITE,
    "evaluations": [{"resource": _SYSTEM}, {"resource": _OTHER}],
    "options": {"evaluations_semantic": "execute_all"},
}
SEARCHES: dict[str, tuple[Value, list[Value]]] = {
    "subject": ({"subject": {"type": "agent"}, "action": _WRITE, "resource": _SYSTEM, "page": {"limit": 100}}, [_AGENT]),
    "resource": ({"subject": _AGENT, "action": _WRITE, "resource": {"type": "system"}}, [_SYSTEM]),
    "action": ({"subject": _AGENT, "resource": _SYSTEM}, [_WRITE]),
}
"""What is searched, by what is sought, and what is found."""


def found_page(results: list[Value]) -> Value:
    """Return the only page of a search."""
    return {"results": results, "page": {"next_token": "", "count": len(results)}}
