"""The doors of access requests in the published description, by hand as those of the questions."""

from typing import Any

from compliance.api.authzen.denials import REQUESTS
from compliance.api.authzen.problems import STATUSES, TYPE_PREFIX
from compliance.api.authzen.requesting import POLL_SECONDS
from compliance.api.errors import PROBLEM_TYPE
from compliance.deciding.next_steps import REQUESTABLE_FOR, NextAction
from compliance.selectors.access_tasks import STATUS
from compliance.services.access_requests import DEFAULT_DAYS, MAX_JUSTIFICATION

Value = dict[str, Any]
_TEXT: Value = {"type": "string"}
_ADDRESS: Value = {"type": "string", "format": "uri"}
_INSTANT: Value = {"type": "string", "format": "date-time"}
_UUID: Value = {"type": "string", "format": "uuid"}


def _object(*required: str, **properties: Any) -> Value:
    described: Value = {"type": "object", "properties": properties}
    return {**described, "required": list(required)} if required else described


NEXT: Value = {
    "next_action": {
        "type": "string",
        "enum": [word.value for word in NextAction],
        "description": "Of a denial: ask people for a grant, ask the gate again, or neither.",
    },
    "retry_after": {"type": "integer", "description": "In how many seconds the gate is asked again, where that is the way."},
    "access_request": _object(
        "expires_at",
        expires_at={**_INSTANT, "description": f"Until then a request may be filed: {REQUESTABLE_FOR} after the denial."},
        endpoint={**_ADDRESS, "description": "Where, if the public address of the service is set."},
        template=_TEXT,
        display=_object(title=_TEXT, description=_TEXT),
    ),
}
NEXT["access_request"]["description"] = "Only of a denial that a signed grant would cure whole."
SCHEMAS: Value = {
    "AccessTask": _object(
        "task",
        task=_object(
            "id",
            "status",
            "status_endpoint",
            id={**_UUID, "description": "The request's own id."},
            status={"type": "string", "enum": list(STATUS.values())},
            status_endpoint=_ADDRESS,
            expires_at={**_INSTANT, "description": "Until then it can be signed; once it is closed, it is told of."},
            progress=_object(
                current_step={"type": "integer"},
                total_steps={"type": "integer", "description": "Signatures that are needed."},
                step_name={**_TEXT, "description": "The factor that the next signature fills."},
                awaiting={"type": "array", "items": _TEXT, "description": "The roles that are waited for; nobody is named."},
            ),
            links=_object(ticket=_ADDRESS, review=_ADDRESS, cancel=_ADDRESS),
        ),
        result=_object(
            "mode",
            "approval",
            mode={"type": "string", "enum": ["reevaluate"]},
            approval=_object(
                "id",
                "approved_until",
                id={**_UUID, "description": "The grant's id."},
                approved_at=_INSTANT,
                approved_until=_INSTANT,
                state={**_TEXT, "description": "The digest of what was signed."},
            ),
        ),
    ),
    "AccessProblem": _object(
        "type",
        "status",
        "code",
        "detail",
        type={**_TEXT, "description": f"`{TYPE_PREFIX}` and one of {', '.join(STATUSES)}; of everything else a type of ours."},
        title=_TEXT,
        status={"type": "integer"},
        code=_TEXT,
        detail=_TEXT,
        request_id=_TEXT,
        problems={"type": "array", "items": {"$ref": "#/components/schemas/Finding"}},
        task=_object(id=_UUID, status_endpoint=_ADDRESS),
    ),
}
SCHEMAS["AccessTask"]["description"] = (
    "`result` is there once it is approved: ask the gate again with its `approval` in `context`."
)
_REQUESTED: Value = _object(
    "subject",
    "action",
    "resource",
    "denial",
    subject={"$ref": "#/components/schemas/AccessSubject"},
    action={"$ref": "#/components/schemas/AccessAction"},
    resource={"$ref": "#/components/schemas/AccessResource"},
    context=_object(
        business_justification={"type": "string", "maxLength": MAX_JUSTIFICATION, "description": "Those who sign read it."}
    ),
    denial=_object(
        "evaluation_id",
        "expires_at",
        evaluation_id={**_UUID, "description": "`context.evaluation_id` of the denial."},
        expires_at={**_INSTANT, "description": "Its `context.access_request.expires_at`."},
    ),
    requested_access=_object(
        requested_until={**_INSTANT, "description": f"Default: {DEFAULT_DAYS} days, or fewer where the policies allow fewer."},
        emergency={"type": "boolean", "description": "Told to who signs; it changes nothing."},
    ),
)
_UID, _SIGNED = "9b2f6c1e-5d0a-4c55-9a57-3f0f6f0b8f11", "2026-12-31T00:00:00.000000Z"
_ASKED: Value = {
    "subject": {"type": "agent", "id": "hr-agent"},
    "action": {"name": "write"},
    "resource": {"type": "system", "id": "hr-prod"},
    "denial": {"evaluation_id": "01a22d7c-25d4-7f83-b3f6-2937dfdd8e3a", "expires_at": "2026-11-30T18:24:00.596459Z"},
    "context": {"business_justification": "the nightly sync needs it"},
    "requested_access": {"requested_until": _SIGNED, "emergency": False},
}
_PENDING: Value = {
    "task": {
        "id": _UID,
        "status": "pending",
        "status_endpoint": f"https://gate.example.org{REQUESTS}/{_UID}",
        "expires_at": "2026-12-03T17:24:00.691373Z",
        "links": {
            "ticket": "https://gate.example.org/admin/compliance/signoffrequest/3/change/",
            "review": "https://gate.example.org/admin/compliance/signoffrequest/3/change/",
            "cancel": f"https://gate.example.org{REQUESTS}/{_UID}/cancel",
        },
        "progress": {"current_step": 1, "total_steps": 2, "step_name": "system-owner", "awaiting": ["system_owner", "security"]},
    }
}
_LINKS: Value = {name: address for name, address in _PENDING["task"]["links"].items() if name != "cancel"}
_CLOSED: Value = {name: part for name, part in _PENDING["task"].items() if name != "progress"} | {"links": _LINKS}
_APPROVED: Value = {
    "task": {**_CLOSED, "status": "approved"},
    "result": {
        "mode": "reevaluate",
        "approval": {
            "id": "119fa6c9-a235-4998-b84a-f2e22c2c846c",
            "approved_at": "2026-11-30T19:02:11.000000Z",
            "approved_until": _SIGNED,
            "state": "sha256:caf9dad0796b693d56e60e5307bdb0ddd210f8a169b7954463d0fe70a8fc861b",
        },
    },
}
_CANCELLED: Value = {"task": {**_CLOSED, "status": "cancelled"}}
_EXAMPLES: Value = {
    "request": {"201": {"signed": _APPROVED}, "202": {"waits for signatures": _PENDING}},
    "task": {"200": {"waits for signatures": _PENDING, "signed": _APPROVED}},
    "task_cancel": {"200": {"taken back": _CANCELLED}},
}
_ANSWERS = {
    "200": "The task as it stands.",
    "201": "Filed, and closed by now: the same key was sent before.",
    "202": "It waits for signatures. `Location` is where to look, `Retry-After` when.",
}
_ERRORS = {
    "400": "It is misshapen, the denial is not yours or not to this question, or no request would cure it.",
    "401": "The token is missing, unknown, expired or revoked.",
    "403": "The token lacks the scope `request`, or its person may not ask.",
    "404": "There is no such task, or none that you see.",
    "409": "It was asked for before (`task` names it), cannot be approved as things stand, or the task is over.",
    "410": "The denial is too old, or the task is told of no longer.",
    "413": "The body is too large.",
    "429": "Too many requests: wait as many seconds as `Retry-After` says.",
    "500": "Something broke.",
    "503": "The database does not answer.",
}


def _operation(name: str, words: str, told: str, *answers: str, errors: str) -> Value:
    schema = {"$ref": "#/components/schemas/AccessTask"}
    tasks = {
        status: {"application/json": {"schema": schema, "examples": {title: {"value": task} for title, task in shown.items()}}}
        for status, shown in _EXAMPLES[name].items()
    }
    problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/AccessProblem"}}}
    return {
        "operationId": f"access_{name}",
        "summary": words,
        "description": told,
        "tags": ["access"],
        "security": [{"token": []}],
        "responses": {
            **{status: {"description": _ANSWERS[status], "content": tasks[status]} for status in answers},
            **{status: {"description": _ERRORS[status], "content": problem} for status in errors.split()},
        },
    }


def request_paths() -> Value:
    """Return the operations by path."""
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
        "description": "The same body again under the same key gives the same task.",
    }
    uid = {"name": "id", "in": "path", "required": True, "schema": _UUID}
    file = _operation(
        "request",
        "Ask people for what was denied",
        "AuthZEN's draft profile Access Request and Approval, for one subject, action and resource; no `items`, no `callback`.",
        "201",
        "202",
        errors="400 401 403 409 410 413 429 500 503",
    )
    body = {
        "required": True,
        "content": {"application/json": {"schema": _REQUESTED, "examples": {"what was denied": {"value": _ASKED}}}},
    }
    look = _operation(
        "task",
        "Where a request stands",
        f"While it is pending `Retry-After` says when to look again: every {POLL_SECONDS} seconds. Nothing but `approved` is.",
        "200",
        errors="401 403 404 410 429 500 503",
    )
    cancel = _operation(
        "task_cancel",
        "Take one's own request back",
        "While it is pending. Its body is not read.",
        "200",
        errors="400 401 403 404 409 410 429 500 503",
    )
    return {
        REQUESTS: {"post": {**file, "parameters": [key], "requestBody": body}},
        f"{REQUESTS}/{{id}}": {"get": {**look, "parameters": [uid]}},
        f"{REQUESTS}/{{id}}/cancel": {"post": {**cancel, "parameters": [uid, key]}},
    }
