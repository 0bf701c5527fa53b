"""Subjects and systems registered and changed over the API: bodies read strictly, and a key that makes a retry harmless."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from compliance.models import RoleMembership
from compliance.selectors.running import running_version
from compliance.selectors.systems import known_teams, may_manage_system
from compliance.services.bodies import Body, read_object
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from evaluations.importers.fields import closest
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import Subject, SubjectVersion
from evaluations.services.agents import (
    HARNESS_PARTS,
    Registered,
    apply_register_agent,
    apply_register_model,
    apply_register_route,
)
from evaluations.vocabulary import SubjectKind
from policies.models import System
from policies.selectors.systems import FIELDS
from policies.services.systems import (
    apply_register_system,
    apply_set_open_incident,
    apply_update_system,
)

MAX_NAMES = 1_000
AGENT_EXAMPLE = '{"kind": "agent", "key": "hr-agent", "models": ["claude-opus-4.8"], …}'
SYSTEM_EXAMPLE = '{"key": "hr-prod", "title": "HR production", "domain": "hr"}'
CHANGE_EXAMPLE = '{"reversible": true, "reason": "backups are restored every week"}'
INCIDENT_EXAMPLE = '{"open": true, "reason": "payroll is down"}'

_OF_SUBJECT = ("kind", "key", "title", "provider", "candidate")
_OF_KIND = {
    SubjectKind.AGENT.value: ("models", "prompt_digest", "tool_manifest_digest", "harness", "closed"),
    SubjectKind.ROUTE.value: ("models", "closed"),
    SubjectKind.MODEL.value: ("snapshot", "effort", "quantisation", "fallbacks"),
}
_ANSWERED = re.compile(r"subject_version (.+)@([0-9]+) (new|known)\Z")
_ANSWERED_SYSTEM = re.compile(r"system (.+) (new|known)\Z")


class RoleMissing(DomainError):
    """Who asks holds no role that may do this."""

    code = "role_missing"
    kind = ErrorKind.FORBIDDEN


class AcceptedSystem(NamedTuple):
    """A system, and whether this request registered it (of a retry: whether the first one did)."""

    system: System
    is_new: bool


class SystemExists(DomainError):
    """The key is taken by a system of which something else is stated."""

    code = "system_exists"
    kind = ErrorKind.CONFLICT


@service(refused="subject_version.refused")
def accept_subject(
    *,
    actor: Actor,
    body: bytes,
    kinds: Collection[str],
    subject: Subject | None = None,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Registered:
    """Register the subject and version in a body, or, with `subject`, the further version of it; `kinds` are those the caller may.

    With a key, the same body again gets the first answer. Raises `InputRefused`, `RoleMissing`, `SubjectExists`, and
    `IdempotencyKeyReused` for another body under a used key; a refused body leaves its key unused.
    """

    def make() -> Registered:
        return _register(actor, body, kinds, subject, request_id)

    def cite(made: Registered) -> str:
        return f"subject_version {made.subject.key}@{made.version.number} {'new' if made.is_new else 'known'}"

    place = f"subjects/{subject.key}/versions" if subject else "subjects"
    return _once(make, cite, _recall_version, actor=actor, place=place, body=body, key=idempotency_key)


@service(refused="system.refused")
def accept_system(
    *,
    actor: Actor,
    body: bytes,
    person_roles: Iterable[RoleMembership],
    only_keys: Collection[str] | None = None,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> AcceptedSystem:
    """Register the system in a body; the same again returns what is there. `only_keys` narrows to what a token is for.

    Raises `InputRefused`, `RoleMissing`, `SystemExists`, `IdempotencyKeyReused`.
    """
    roles = list(person_roles)

    def make() -> AcceptedSystem:
        stated = _system_of(read_object(body, example=SYSTEM_EXAMPLE))
        if only_keys is not None and stated["key"] not in only_keys:
            raise RoleMissing("the token is for another system")
        _refuse_stranger(roles, System(owner=stated["owner"]))
        known = System.objects.filter(key=stated["key"]).first()
        if known is not None and any(getattr(known, field) != stated[field] for field in FIELDS):
            raise SystemExists(f"`{known.key}` is registered, with other facts: change it instead")
        return AcceptedSystem(apply_register_system(actor=actor, request_id=request_id, **stated), known is None)

    return _once(make, _cite_system, _recall_system, actor=actor, place="systems", body=body, key=idempotency_key)


@service(refused="system.refused")
def accept_change(
    *,
    actor: Actor,
    system: System,
    body: bytes,
    person_roles: Iterable[RoleMembership],
    expected_digest: str,
    request_id: str = "",
) -> System:
    """Change a system by the members of a body; null means not known. Raises `InputRefused`, `RoleMissing`, `SystemChanged`."""
    _refuse_stranger(person_roles, system)
    given = Body(read_object(body, example=CHANGE_EXAMPLE), (*FIELDS, "reason"))
    stated = _statements(given, required=False)
    reason = given.text("reason", required=True, limit=500)
    given.done()
    changes = {field: stated[field] for field in FIELDS if field in given}
    if not changes:
        hint = f"one or more of {', '.join(FIELDS)}"
        raise InputRefused([Problem("nothing is to be changed", field="reason", code="missing", hint=hint)])
    return apply_update_system(
        actor=actor, system=system, changes=changes, reason=reason, expected_digest=expected_digest, request_id=request_id
    )


@service(refused="incident.refused")
def accept_incident(
    *,
    actor: Actor,
    system: System,
    body: bytes,
    person_roles: Iterable[RoleMembership],
    idempotency_key: str | None = None,
    request_id: str = "",
) -> System:
    """Move a system's open-incident switch as a body says. Raises `InputRefused`, `RoleMissing`, `IdempotencyKeyReused`."""
    _refuse_stranger(person_roles, system)

    def make() -> AcceptedSystem:
        given = Body(read_object(body, example=INCIDENT_EXAMPLE), ("open", "reason", "link"))
        is_open, reason = given.flag("open"), given.text("reason", required=True, limit=500)
        link = given.text("link", limit=500)
        given.done()
        moved = apply_set_open_incident(
            actor=actor, system=system, is_open=is_open, reason=reason, link=link, request_id=request_id
        )
        return AcceptedSystem(moved, is_new=False)

    place = f"systems/{system.key}/incident"
    answered = _once(make, _cite_system, _recall_system, actor=actor, place=place, body=body, key=idempotency_key)
    accepted: System = answered.system
    return accepted


def _once(
    make: Callable[[], Any],
    cite: Callable[[Any], str],
    recall: Callable[[str], Any],
    *,
    actor: Actor,
    place: str,
    body: bytes,
    key: str | None,
) -> Any:
    """Make a thing, or return what the first request under this key made. The place is part of what the key was used for."""
    if key is None:
        return make()
    claim = {"caller": actor.reference, "key": key, "request_digest": digest_of(f"{place}\n".encode() + body)}
    known = apply_claim_key(**claim)
    if known is not None:
        return recall(known)
    made = make()
    apply_use_key(**claim, reference=cite(made))
    return made


def _recall_version(reference: str) -> Registered:
    match = _ANSWERED.match(reference)
    if match is None:
        raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
    version = SubjectVersion.objects.select_related("subject").get(subject__key=match[1], number=int(match[2]))
    return Registered(version.subject, version, match[3] == "new")


def _cite_system(made: AcceptedSystem) -> str:
    return f"system {made.system.key} {'new' if made.is_new else 'known'}"


def _recall_system(reference: str) -> AcceptedSystem:
    match = _ANSWERED_SYSTEM.match(reference)
    if match is None:
        raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
    return AcceptedSystem(System.objects.get(key=match[1]), match[2] == "new")


def _refuse_stranger(person_roles: Iterable[RoleMembership], system: System) -> None:
    if not may_manage_system(person_roles, system):
        raise RoleMissing("this needs the role system_owner of the system's own team, security or administrator")


# --- subjects -------------------------------------------------------------------------------------------------------------------


def _register(actor: Actor, body: bytes, kinds: Collection[str], subject: Subject | None, request_id: str) -> Registered:
    raw = read_object(body, example=AGENT_EXAMPLE)
    kind = subject.kind if subject else raw.get("kind")
    # Of a kind that is none, nothing else can be said to be unknown.
    known = _OF_KIND.get(kind) if isinstance(kind, str) else None
    members = (*(() if subject else _OF_SUBJECT), *(known if known is not None else tuple(raw)))
    given = Body(raw, members)
    if known is None:
        given.wrong("kind", "it is missing" if kind is None else "it is no kind of subject", f"one of {', '.join(_OF_KIND)}")
        given.done()
    facts: dict[str, Any] = {"actor": actor, "request_id": request_id, "running": running_version}
    if subject is None:
        facts |= {
            "key": given.text("key", required=True),
            "title": given.text("title"),
            "provider": given.text("provider"),
            "candidate": given.flag("candidate", default=True),
        }
    else:
        facts |= {
            "key": subject.key,
            "provider": subject.provider,
            "candidate": subject.candidate,
        }
    register, pinned = _READERS[str(kind)]
    facts |= pinned(given)
    given.done()
    if kind not in kinds:
        raise RoleMissing(f"no role of yours may register a {kind}")
    made: Registered = register(**facts)
    return made


def _agent(given: Body) -> dict[str, Any]:
    harness = given.inner("harness", HARNESS_PARTS)
    return {
        **_route(given),
        "prompt_digest": given.text("prompt_digest"),
        "tool_manifest_digest": given.text("tool_manifest_digest"),
        "harness": {part: harness.text(part) for part in HARNESS_PARTS} if harness is not None else {},
    }


def _route(given: Body) -> dict[str, Any]:
    return {"models": given.texts("models", most=MAX_NAMES), "closed": given.flag("closed", default=True)}


def _model(given: Body) -> dict[str, Any]:
    return {
        "snapshot": given.text("snapshot"),
        "effort": given.text("effort") or None,
        "quantisation": given.text("quantisation") or None,
        "fallbacks": given.texts("fallbacks", most=MAX_NAMES),
    }


_READERS: dict[str, tuple[Callable[..., Registered], Callable[[Body], dict[str, Any]]]] = {
    SubjectKind.AGENT.value: (apply_register_agent, _agent),
    SubjectKind.ROUTE.value: (apply_register_route, _route),
    SubjectKind.MODEL.value: (apply_register_model, _model),
}


# --- systems --------------------------------------------------------------------------------------------------------------------


def _system_of(raw: dict[str, Any]) -> dict[str, Any]:
    given = Body(raw, ("key", *FIELDS))
    stated = {"key": given.text("key", required=True), **_statements(given, required=True)}
    given.done()
    return stated


def _statements(given: Body, *, required: bool) -> dict[str, Any]:
    """Return what a body states about a system, by `FIELDS`; what may be unknown is None where it is absent or null."""
    owner = given.text("owner")
    if owner and owner not in (teams := known_teams()):
        given.wrong("owner", f"no team `{owner}`", closest(owner, teams, what="teams"), "unknown_team")
    if not required:
        for field in ("title", "domain", "environment", "reversible"):
            if field in given and given.given[field] is None:
                given.wrong(field, "it cannot be unknown", "give it, or leave it as it is")
    return {
        "title": given.text("title", required=required),
        "domain": given.text("domain", required=required),
        "environment": given.text("environment") or ("production" if required else ""),
        "reversible": given.flag("reversible", default=False),
        "owner": owner,
        "people_affected": given.count("people_affected"),
        "writes_per_day": given.count("writes_per_day"),
        "holds_personal_data": given.optional_flag("holds_personal_data"),
        "money_at_stake_usd": given.decimal("money_at_stake_usd"),
    }
