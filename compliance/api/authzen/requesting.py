"""Access requests: a denial becomes a request that people sign, and its task is looked at until they have.

The draft profile "Access Request and Approval" of AuthZEN 1.0, for one subject, resource and action at a time. Whoever has a token
with the scope `request` files about a denial that a token of the same person was given. Errors are problem details; those that the
profile names have its types.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections, connection

from compliance.api.authentication import CHALLENGE, token_actor
from compliance.api.authzen import limits
from compliance.api.authzen.callers import Meta, address_of, request_id_of, token_digest_of, why_unheard
from compliance.api.authzen.denials import task_address
from compliance.api.authzen.frame import Incoming, Outgoing, json_answer
from compliance.api.authzen.problems import Refusal, UnknownTask, problem_of
from compliance.api.authzen.reading import make_question, read_entity, read_object
from compliance.api.bodies import parse_instant
from compliance.api.requests import REQUEST_ID_HEADER
from compliance.api.sighted import systems_of
from compliance.models import ServiceToken
from compliance.selectors.access import find_live_token
from compliance.selectors.access_tasks import STATUS, Task, approval_value, find_task
from compliance.selectors.sight import sight_of
from compliance.services.access_requests import Denial, DenialNotBound, Wanted, request_denied_access
from compliance.services.notices import request_path
from compliance.services.sign_offs import withdraw_request
from compliance.services.tokens import note_token_use
from compliance.vocabulary import RequestStatus, Scope
from evaluations.kernel.canonical import digest_of, timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem

COST = 50
"""What one of these takes of a token's questions: a dossier is built for it."""
POLL_SECONDS = 5
PENDING = STATUS[RequestStatus.OPEN]
CANCELLED_BECAUSE = "cancelled by the machine that asked"

_TOO_MUCH = "more than the gate takes of one token"
_TASK = re.compile(r"requests/([^/]{1,200})(/cancel)?\Z")

Act = Callable[["Filing"], Outgoing]


class Filing(NamedTuple):
    """One request: what came in, its id, and the token that was let in."""

    incoming: Incoming
    request_id: str
    token: ServiceToken

    @property
    def act(self) -> dict[str, Any]:
        """The arguments that every service takes: who, under which idempotency key, in which request."""
        key = self.incoming.meta.get("HTTP_IDEMPOTENCY_KEY")
        return {"actor": token_actor(self.token), "idempotency_key": key, "request_id": self.request_id}


def task_door(path: str) -> Callable[[Incoming], Outgoing] | None:
    """Return the door of a task's own address, under the prefix that all doors share; None for any other path."""
    found = _TASK.match(path)
    if found is None:
        return None
    name, method, act = found[1], "POST" if found[2] else "GET", _cancel if found[2] else _look
    return lambda incoming: _answer(incoming, method, lambda filing: act(filing, name))


def access_requests(incoming: Incoming) -> Outgoing:
    """`POST /access/v1/requests`: ask for what was denied."""
    return _answer(incoming, "POST", _file)


def _file(filing: Filing) -> Outgoing:
    body = read_object(filing.incoming)
    for member, instead in (
        ("items", "ask for one subject, resource and action at a time"),
        ("callback", "ask `status_endpoint` now and then; operators set up webhooks for events"),
    ):
        if body.get(member) is not None:
            raise InputRefused([Problem(f"`{member}` is not taken here", field=member, code="unsupported", hint=instead)])
    subject, action, resource = (read_entity(body, name) for name in ("subject", "action", "resource"))
    if not filing.token.holds(Scope.REQUEST, system=resource.id):
        raise Refusal(403, "scope_missing", f"the token may not ask for anything at `{resource.id}`")
    made = request_denied_access(
        denial=_denial(body, make_question(subject, action, resource)),
        wanted=_wanted(body),
        body_digest=digest_of(json.dumps(body, sort_keys=True).encode()),
        **filing.act,
    )
    found = _found(filing.token, made.uid, now())
    return _shown(found, status=202 if found.status == PENDING else 201, headers={"Location": task_address(made.uid)})


def _look(filing: Filing, name: str) -> Outgoing:
    """`GET /access/v1/requests/ID`: where a request stands, and its approval once it is signed."""
    return _shown(_found(filing.token, _uid(name), now()))


def _cancel(filing: Filing, name: str) -> Outgoing:
    """`POST /access/v1/requests/ID/cancel`: take one's own request back."""
    found = _found(filing.token, _uid(name), now())
    if found.request.requester_id != filing.token.person_id:
        raise Refusal(403, "not_the_requester", "only whoever asked takes a request back")
    if found.status != PENDING:
        raise Refusal(409, "invalid_task_state", f"the task is {found.status}: there is nothing to cancel")
    withdraw_request(request=found.request, reason=CANCELLED_BECAUSE, **filing.act)
    return _shown(_found(filing.token, found.request.uid, now()))


# --- what is asked


def _denial(body: Any, question: Any) -> Denial:
    given = _object(body, "denial")
    named = given.get("evaluation_id")
    if named is None:
        raise DenialNotBound(
            "send the `context.evaluation_id` of the denial as `denial.evaluation_id`; no binding tokens are given here"
        )
    try:
        uid = UUID(named) if isinstance(named, str) else None
    except ValueError:
        uid = None
    if uid is None:
        raise DenialNotBound("`denial.evaluation_id` is none of ours")
    expires_at = _instant(given, "expires_at", "denial.expires_at")
    if expires_at is None:
        hint = "send the `context.access_request.expires_at` of the denial"
        raise InputRefused([Problem("it is missing", field="denial.expires_at", code="missing", hint=hint)])
    return Denial(uid, question, expires_at)


def _wanted(body: Any) -> Wanted:
    context, wanted = _object(body, "context"), _object(body, "requested_access")
    said, emergency = context.get("business_justification"), wanted.get("emergency")
    problems = []
    if said is not None and not isinstance(said, str):
        problems.append(Problem("it is no text", field="context.business_justification"))
    if emergency is not None and not isinstance(emergency, bool):
        problems.append(Problem("it is neither true nor false", field="requested_access.emergency"))
    if problems:
        raise InputRefused(problems)
    until = _instant(wanted, "requested_until", "requested_access.requested_until")
    return Wanted(until, said or "", bool(emergency))


def _object(body: Any, member: str) -> dict[str, Any]:
    value = body.get(member)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputRefused([Problem("it is no object", field=member)])
    return value


def _instant(given: dict[str, Any], member: str, field: str) -> datetime | None:
    text = given.get(member)
    if text is None:
        return None
    try:
        return parse_instant(text if isinstance(text, str) else "")
    except ValueError as fault:
        raise InputRefused([Problem("it is no instant", field=field, hint=str(fault))]) from None


# --- what is told


def _uid(name: str) -> UUID:
    try:
        return UUID(name)
    except ValueError:
        raise UnknownTask from None


def _found(token: ServiceToken, uid: UUID, at: datetime) -> Task:
    """Return a task that the token's person sees, within what the token is for. Raises `UnknownTask`, `Refusal`."""
    sight = sight_of(token.person_id, at=at, systems=systems_of(token, Scope.REQUEST))
    found = find_task(sight, uid=uid, at=at)
    if found is None:
        raise UnknownTask
    if found.is_over(at):
        raise Refusal(410, "task_expired", "the task is over for long; its request stands in the console")
    return found


def _shown(found: Task, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Outgoing:
    uid, page = found.request.uid, f"{settings.NOTICE_ORIGIN}{request_path(found.request)}"
    value: dict[str, Any] = {
        "id": str(uid),
        "status": found.status,
        "status_endpoint": task_address(uid),
        "expires_at": timestamp(found.expires_at),
        "links": {"ticket": page, "review": page},
    }
    told: dict[str, Any] = {"task": value}
    if found.progress is not None:
        value["progress"] = found.progress._asdict()
    if found.status == PENDING:
        value["links"]["cancel"] = f"{task_address(uid)}/cancel"
        headers = {**(headers or {}), "Retry-After": str(POLL_SECONDS)}
    elif found.grant is not None:
        approval = approval_value(found)
        times = {name: timestamp(approval[name]) for name in ("approved_at", "approved_until")}
        told["result"] = {"mode": "reevaluate", "approval": {**approval, **times}}
    return json_answer(told, status=status, headers=headers)


# --- the frame


def _answer(incoming: Incoming, method: str, act: Act) -> Outgoing:
    """Answer a request by a bearer token: no session, no cookie, no negotiation, whatever goes wrong as a problem."""
    request_id = request_id_of(incoming.meta)
    if not connection.in_atomic_block:
        # The short way starts no handler of Django's, which would look after the connection.
        close_old_connections()
    try:
        if incoming.method != method:
            raise Refusal(405, "method_not_allowed", f"send it by {method}", {"Allow": method})
        answer = act(Filing(incoming, request_id, _admitted(incoming.meta)))
    except Exception as error:
        answer = problem_of(error, request_id)
    return answer._replace(headers={**answer.headers, REQUEST_ID_HEADER: request_id, "Cache-Control": "no-store"})


def _admitted(meta: Meta) -> ServiceToken:
    """Return the token that asks, its requests counted, and those that are refused counted by their address. Raises `Refusal`."""
    address, digest = address_of(meta), token_digest_of(meta)
    # As at the other doors: a token that held a moment ago is heard whatever else comes from its address.
    known = digest is not None and digest in limits.questions()
    if not known:
        _wait_for(limits.failures().wait(address), "too many requests from this address were refused")
    elif digest is not None:
        _wait_for(limits.questions().wait(digest), _TOO_MUCH)
    at = now()
    token = None if digest is None else find_live_token(token_digest=digest, at=at)
    if token is None:
        limits.failures().take(address)
        if digest is not None:
            limits.questions().forget(digest)
        raise Refusal(401, "not_authenticated", why_unheard(meta), {"WWW-Authenticate": CHALLENGE})
    if systems_of(token, Scope.REQUEST) == frozenset():
        if known:
            limits.questions().take(token.token_digest)
        else:
            limits.failures().take(address)
        raise Refusal(403, "scope_missing", f"the token lacks the scope `{Scope.REQUEST}`")
    _wait_for(limits.questions().take(token.token_digest, COST), _TOO_MUCH)
    note_token_use(token=token, at=at)
    return token


def _wait_for(seconds: float, why: str) -> None:
    if seconds > 0:
        raise Refusal(429, "too_many", f"{why}; ask again later", {"Retry-After": str(math.ceil(seconds))})
