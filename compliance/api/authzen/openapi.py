"""The doors of AuthZEN in the published description: written by hand, as they are no views of the framework that makes the rest."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from compliance.api.authzen.discovery import ENDPOINTS
from compliance.api.authzen.frame import TEXT
from compliance.api.authzen.openapi_examples import ALLOW, BATCH, DENY, QUESTION, SEARCHES, found_page
from compliance.api.authzen.openapi_requests import NEXT, request_paths
from compliance.api.authzen.openapi_requests import SCHEMAS as REQUEST_SCHEMAS
from compliance.api.authzen.reading import MOST_ACTION, MOST_BYTES, MOST_DEPTH, MOST_ID, MOST_ITEMS
from compliance.api.authzen.search import DEFAULT_LIMIT, MAX_LIMIT
from compliance.services.decisions import Semantic

Value = dict[str, Any]
_TAG = "access"
_OBJECT: Value = {"type": "object", "additionalProperties": True}


def _text(most: int) -> Value:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _entity(*required: str) -> Value:
    members: Value = {"type": _text(MOST_ID), "id": _text(MOST_ID), "name": _text(MOST_ACTION), "properties": _OBJECT}
    names = ("name", "properties") if required == ("name",) else ("type", "id", "properties")
    return {"type": "object", "required": list(required), "properties": {name: members[name] for name in names}}


def _ref(name: str) -> Value:
    return {"$ref": f"#/components/schemas/{name}"}


_PAGE: Value = {
    "type": "object",
    "properties": {
        "token": {"type": "string", "description": "`page.next_token` of the page before; what is asked must be the same."},
        "limit": {"type": "integer", "minimum": 0, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    },
}
_SUBJECT, _ACTION, _RESOURCE = _entity("type", "id"), _entity("name"), _entity("type", "id")
_ANSWERED: Value = {
    "type": "object",
    "required": ["decision"],
    "properties": {
        "decision": {"type": "boolean", "description": "Nothing but `true` allows."},
        "context": {
            **_OBJECT,
            "description": (
                "`evaluation_id`, `evaluated_at`, `reason` and `reasons` of a denial, `subject`, `system`, `action`, `policies`, "
                "`grants`, `evidence`, `waived`, `valid_until` of an allow, `entry`. An item that was no question has `error` alone."
            ),
            "properties": NEXT,
        },
    },
}
_CONTEXT = (
    "Ignored but for `observe`, where true marks a question of somebody who only looks on, and `approval`, which changes no answer: a "
    "denial says in `reason` what became of it (`approval_expired`, `out_of_scope`, `grant_pending`, `policy_denied`, "
    "`approval_unverifiable`)."
)
SCHEMAS: Value = {
    "AccessSubject": {
        **_SUBJECT,
        "description": (
            "`type` is a kind (`model`, `agent`, `route`), `subject` for any of them, or `alias`; `id` a key, `key@number`, or a name "
            "in use. `properties.fingerprint` is the digest of the version that runs, and is compared."
        ),
    },
    "AccessAction": _ACTION,
    "AccessResource": {**_RESOURCE, "description": "`type` is `system`, `id` its key."},
    "AccessDecision": _ANSWERED,
    "AccessPage": _PAGE,
}
_PARTS: Value = {
    "subject": _ref("AccessSubject"),
    "action": _ref("AccessAction"),
    "resource": _ref("AccessResource"),
    "context": {**_OBJECT, "description": _CONTEXT},
}
_QUESTION: Value = {"type": "object", "required": ["subject", "action", "resource"], "properties": _PARTS}
_BATCH: Value = {
    "type": "object",
    "properties": {
        **_PARTS,
        "evaluations": {
            "type": "array",
            "maxItems": MOST_ITEMS,
            "items": {"type": "object", "properties": _PARTS},
            "description": "Each a question; what it leaves out is taken, whole, from beside the list.",
        },
        "options": {
            "type": "object",
            "properties": {"evaluations_semantic": {"type": "string", "enum": [str(word) for word in Semantic]}},
        },
    },
}


def _search(sought: str) -> Value:
    parts = {name: held for name, held in _PARTS.items() if name != sought or sought != "action"}
    if sought != "action":
        parts[sought] = _entity("type")
    required = [name for name in ("subject", "action", "resource") if name in parts]
    return {"type": "object", "required": required, "properties": {**parts, "page": _ref("AccessPage")}}


def _found(sought: str) -> Value:
    entity = _ACTION if sought == "action" else _SUBJECT
    return {
        "type": "object",
        "required": ["results", "page"],
        "properties": {
            "results": {"type": "array", "items": entity},
            "page": {
                "type": "object",
                "required": ["next_token", "count"],
                "properties": {
                    "next_token": {"type": "string", "description": "Empty at the end; a page may be short before it."},
                    "count": {"type": "integer"},
                },
            },
        },
    }


_ERRORS: Mapping[str, str] = {
    "400": f"No question: not I-JSON, more than {MOST_DEPTH} levels deep, or something missing, misshapen or too long.",
    "401": "There is no token, or it does not hold.",
    "403": "The token lacks the scope `decide`.",
    "413": f"The body has more than {MOST_BYTES} bytes.",
    "429": "More than the gate takes of one token or address; `Retry-After` says when to ask again.",
    "500": "Something broke on our side. This is never a permission.",
}


class _Shown(NamedTuple):
    """Examples of a door: a body, and answers by title."""

    body: Value
    answers: Mapping[str, Value]


def _operation(name: str, summary: str, body: Value, answer: Value, unavailable: Value, shown: _Shown) -> Value:
    sentence = {TEXT: {"schema": {"type": "string"}}}
    asked = {"schema": body, "examples": {"an agent and a system": {"value": shown.body}}}
    answered = {"schema": answer, "examples": {title: {"value": value} for title, value in shown.answers.items()}}
    return {
        "operationId": f"access_{name}",
        "summary": summary,
        "description": "OpenID AuthZEN Authorization API 1.0. Errors are one sentence of text.",
        "tags": [_TAG],
        "parameters": [
            {
                "in": "header",
                "name": "X-Request-ID",
                "schema": {"type": "string", "maxLength": 128},
                "description": "Comes back, and stands in the record; made here where there is none.",
            }
        ],
        "requestBody": {"required": True, "content": {"application/json": asked}},
        "security": [{"token": []}],
        "responses": {
            "200": {"description": "", "content": {"application/json": answered}},
            **{status: {"description": words, "content": sentence} for status, words in _ERRORS.items()},
            "503": {"description": "There is no database to ask; the answer is no.", "content": unavailable},
        },
    }


def _operations() -> Value:
    denial = {"application/json": {"schema": _ref("AccessDecision")}}
    sentence = {TEXT: {"schema": {"type": "string"}}}
    many: Value = {"type": "object", "required": ["evaluations"]}
    many["properties"] = {"evaluations": {"type": "array", "items": _ref("AccessDecision")}}
    found: Value = {
        "/access/v1/evaluation": _operation(
            "evaluation",
            "May this subject do this to that system, now?",
            _QUESTION,
            _ref("AccessDecision"),
            denial,
            _Shown(QUESTION, {"an allow": ALLOW, "a denial that people can sign": DENY}),
        ),
        "/access/v1/evaluations": _operation(
            "evaluations",
            "Many questions at once",
            _BATCH,
            {"anyOf": [many, _ref("AccessDecision")]},
            denial,
            _Shown(BATCH, {"an answer an item": {"evaluations": [ALLOW, DENY]}}),
        ),
    }
    for sought, words in (
        ("subject", "Who may do this there?"),
        ("resource", "Where may it do this?"),
        ("action", "What may it do?"),
    ):
        asked, results = SEARCHES[sought]
        shown = _Shown(asked, {"the only page": found_page(results)})
        found[f"/access/v1/search/{sought}"] = _operation(
            f"search_{sought}", words, _search(sought), _found(sought), sentence, shown
        )
    return found


def _discovery() -> Value:
    members = ("policy_decision_point", *ENDPOINTS, "signed_metadata")
    document: Value = {"type": "object", "required": [*members[:2]]}
    document["properties"] = {name: {"type": "string"} for name in members}
    document["properties"]["capabilities"] = {"type": "array", "items": {"type": "string"}}
    return {
        "operationId": "authzen_configuration",
        "summary": "Where the doors are",
        "description": "Open to everybody. A public address with a path has its document at that path behind this one.",
        "tags": [_TAG],
        "security": [{}],
        "responses": {
            "200": {"description": "", "content": {"application/json": {"schema": document}}},
            "404": {
                "description": "The public address of the service is not set.",
                "content": {TEXT: {"schema": {"type": "string"}}},
            },
        },
    }


def describe_doors(result: Value, **_: Any) -> Value:
    """Add the doors to a generated description."""
    result["components"].setdefault("schemas", {}).update({**SCHEMAS, **REQUEST_SCHEMAS})
    result["paths"].update({path: {"post": operation} for path, operation in _operations().items()})
    result["paths"].update(request_paths())
    result["paths"]["/.well-known/authzen-configuration"] = {"get": _discovery()}
    return result
