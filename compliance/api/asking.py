"""The body that asks for signatures, read by its kind, and handed to the service of that kind."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework.request import Request

from compliance.api.bodies import INSTANT, REASON, instant_in, object_schema, reason_in
from compliance.api.parsers import body_of
from compliance.api.sighted import act_of, narrowed_to, sight_for, within_scope
from compliance.api.views import KEY_SCHEMA
from compliance.models import Grant, SignOffRequest
from compliance.selectors.evidence import get_evidence
from compliance.selectors.proposals import AskedWaiver
from compliance.selectors.registry import get_subject_version_named
from compliance.selectors.sight import Sight, visible_grants
from compliance.services.bodies import Body, read_object
from compliance.services.filing import (
    MAX_ACTIONS,
    MAX_SYSTEMS,
    request_activation,
    request_benchmark,
    request_binding,
    request_grant,
    request_metric,
    request_recertification,
    request_reinstatement,
    request_renewal,
    request_ruling,
    request_source,
    request_waiver,
)
from compliance.services.requests import MAX_TEXT
from compliance.vocabulary import RequestKind, Scope
from evaluations.importers.fields import MAX_NOTE_LENGTH, closest, shown
from evaluations.kernel.names import KEY_MAX_LENGTH
from evaluations.models import Evidence, SubjectVersion
from evaluations.services.definitions import BENCHMARK_MEMBERS, MAX_METRICS, MAX_TRUST_REASON, METRIC_MEMBERS, SOURCE_MEMBERS
from evaluations.vocabulary import Better, Domain, Exposure, Level, MetricFamily, RulingKind, TrustTier, Unit
from policies.models import Policy, PolicyVersion, System

MAX_WAIVERS = 50
MAX_PARAMS = 100
MAX_LINK = 1_000
EXAMPLE = (
    '{"kind": "grant", "subject": "acme/assistant@2", "systems": ["hr-prod"], "actions": ["write"], '
    '"ends_at": "2026-12-31T00:00:00Z", "reason": "…"}'
)
SIGNED_RULINGS = tuple(word for word in RulingKind.values if word != RulingKind.DISPUTED)
_WAIVER = ("policy", "rule", "system", "reason")
_VERSIONS = {"subject": "subject version", "version": "policy version"}
_TEXT = {"type": "string", "minLength": 1}
_LONG = {"type": "string", "minLength": 1, "maxLength": MAX_NOTE_LENGTH}
_GRANT = {"type": "string", "format": "uuid", "description": "The grant's id."}
_WAIVERS = {
    "type": "array",
    "maxItems": MAX_WAIVERS,
    "description": "Failing soft rules to be accepted, each for a system.",
    "items": object_schema(_WAIVER, policy=_TEXT, rule=_TEXT, system=KEY_SCHEMA, reason=REASON),
}


class AskedKind(NamedTuple):
    """How one kind is asked for: the body's members by name, those that must be there, and what files it."""

    members: Mapping[str, Any]
    required: tuple[str, ...]
    file: "Callable[[Asking], SignOffRequest]"


class Asking:
    """One body that asks for something, and who asks. Each reader keeps what is wrong; `done` raises all of it."""

    def __init__(self, request: Request, given: Mapping[str, Any], members: tuple[str, ...], at: datetime) -> None:
        self.request = request
        self.body = Body(given, ("kind", *members))
        self.sight: Sight = sight_for(request, Scope.REQUEST, at=at)
        self.act = act_of(request)

    def reason(self) -> str:
        return reason_in(self.body)

    def ends_at(self) -> datetime | None:
        return instant_in(self.body, "ends_at", required=True)

    def subject_version(self) -> SubjectVersion | None:
        name = self.body.text("subject", required=True, limit=300)
        return self._known("subject", get_subject_version_named(name)) if name else None

    def systems(self) -> list[System]:
        keys = self.body.texts("systems", most=MAX_SYSTEMS)
        within_scope(self.request, keys)
        return [system for place, key in enumerate(keys) if (system := self.system(key, f"systems[{place}]")) is not None]

    def system(self, key: str, member: str) -> System | None:
        found = System.objects.filter(key=key).first()
        if found is None:
            narrow = narrowed_to(self.request, Scope.REQUEST)
            known = System.objects.values_list("key", flat=True)
            hint = closest(key, known if narrow is None else narrow, what="systems")
            self.body.wrong(member, f"there is no system {shown(key)}", hint, "unknown")
        return found

    def waivers(self) -> list[AskedWaiver]:
        found = []
        for item in self.body.inners("waivers", _WAIVER, most=MAX_WAIVERS):
            texts = {member: item.text(member, required=True, limit=MAX_TEXT) for member in _WAIVER}
            found.append(AskedWaiver(**texts))
        return found

    def grant(self) -> Grant | None:
        """Return the grant that the body names, where who asks sees it: another one is not there."""
        uid = self._uid("grant")
        rows = visible_grants(self.sight).select_related("subject_version__subject")
        return None if uid is None else self._known("grant", rows.filter(uid=uid).first())

    def evidence(self) -> Evidence | None:
        uid = self._uid("evidence")
        return None if uid is None else self._known("evidence", get_evidence(uid=uid))

    def policy(self) -> Policy | None:
        name = self.body.text("policy", required=True)
        return self._known("policy", Policy.objects.filter(name=name).first()) if name else None

    def policy_version(self) -> PolicyVersion | None:
        policy, number = self.policy(), self.body.count("version")
        if number is None:
            self.body.wrong("version", "it is missing", "write the number of the policy's version", "missing")
        if policy is None or number is None:
            return None
        return self._known("version", PolicyVersion.objects.select_related("policy").filter(policy=policy, number=number).first())

    def params(self) -> dict[str, Decimal]:
        given = self.body.given.get("params")
        names = tuple(given) if isinstance(given, dict) else ()
        inner = self.body.inner("params", names)
        if len(names) > MAX_PARAMS:
            self.body.wrong("params", f"it has {len(names)} members", f"write at most {MAX_PARAMS}")
        found = {} if inner is None else {name: inner.decimal(name) for name in names[:MAX_PARAMS]}
        return {name: number for name, number in found.items() if number is not None}

    def given(self, members: tuple[str, ...]) -> dict[str, Any]:
        """Return members as they were given, for a service that reads them itself."""
        return {name: self.body.given[name] for name in members if name in self.body.given}

    def done(self) -> None:
        """Raise `InputRefused` with everything that was found wrong; nothing that is required is missing after it."""
        self.body.done()

    def _known(self, member: str, found: Any) -> Any:
        if found is None:
            word = _VERSIONS.get(member, member)
            self.body.wrong(member, f"there is no {word} {shown(self.body.given.get(member))}", "look it up", "unknown")
        return found

    def _uid(self, member: str) -> UUID | None:
        text = self.body.text(member, required=True)
        try:
            return UUID(text) if text else None
        except ValueError:
            self.body.wrong(member, f"{shown(text)} is no id", "write a UUID")
            return None


def file_asked(request: Request, *, at: datetime) -> SignOffRequest:
    """File what a body asks for. Raises `InputRefused` naming every problem, and what the service of its kind raises."""
    given = read_object(body_of(request), example=EXAMPLE)
    head = Body({"kind": given.get("kind")}, ("kind",))
    word = head.text("kind", required=True)
    kind = KINDS.get(word)
    if word and kind is None:
        head.wrong("kind", f"nobody asks for {shown(word)}", closest(word, KINDS, what="kinds"), "unknown_word")
    head.done()
    found: AskedKind = KINDS[word]
    return found.file(Asking(request, given, tuple(found.members), at))


def asked_schema() -> dict[str, Any]:
    """Return the description of the body, one shape a kind."""
    return {
        "oneOf": [
            {"title": str(word), **object_schema(("kind", *kind.required), kind=_one(word), **kind.members)}
            for word, kind in KINDS.items()
        ]
    }


def _one(word: str) -> dict[str, Any]:
    return {"type": "string", "enum": [str(word)]}


def _grant(asking: Asking) -> SignOffRequest:
    version: Any = asking.subject_version()
    ends_at: Any = asking.ends_at()
    told: dict[str, Any] = {
        "systems": asking.systems(),
        "actions": asking.body.texts("actions", most=MAX_ACTIONS),
        "starts_at": instant_in(asking.body, "starts_at"),
        "reason": asking.reason(),
        "waivers": asking.waivers(),
    }
    asking.done()
    return request_grant(subject_version=version, ends_at=ends_at, **told, **asking.act)


def _renewal(asking: Asking) -> SignOffRequest:
    grant: Any = asking.grant()
    ends_at: Any = asking.ends_at()
    reason, waivers = asking.reason(), asking.waivers()
    asking.done()
    return request_renewal(grant=grant, ends_at=ends_at, reason=reason, waivers=waivers, **asking.act)


def _reinstatement(asking: Asking) -> SignOffRequest:
    grant: Any = asking.grant()
    reason = asking.reason()
    asking.done()
    return request_reinstatement(grant=grant, reason=reason, **asking.act)


def _recertification(asking: Asking) -> SignOffRequest:
    grant: Any = asking.grant()
    reason = asking.reason()
    asking.done()
    return request_recertification(grant=grant, reason=reason, **asking.act)


def _waiver(asking: Asking) -> SignOffRequest:
    grant: Any = asking.grant()
    ends_at: Any = asking.ends_at()
    reason, waivers = asking.reason(), asking.waivers()
    asking.done()
    return request_waiver(grant=grant, ends_at=ends_at, reason=reason, waivers=waivers, **asking.act)


def _activation(asking: Asking) -> SignOffRequest:
    within_scope(asking.request, ())
    version: Any = asking.policy_version()
    reason = asking.reason()
    asking.done()
    return request_activation(version=version, reason=reason, **asking.act)


def _binding(asking: Asking) -> SignOffRequest:
    key, domain = asking.body.text("system"), asking.body.text("domain")
    within_scope(asking.request, (key,) if key else ())
    policy: Any = asking.policy()
    system = asking.system(key, "system") if key else None
    params, reason = asking.params(), asking.reason()
    asking.done()
    return request_binding(policy=policy, params=params, reason=reason, system=system, domain=domain, **asking.act)


def _ruling(asking: Asking) -> SignOffRequest:
    within_scope(asking.request, ())
    evidence: Any = asking.evidence()
    kind, link = asking.body.text("ruling", required=True), asking.body.text("link", limit=MAX_LINK)
    reason = asking.reason()
    asking.done()
    return request_ruling(evidence=evidence, kind=kind, reason=reason, link=link, **asking.act)


def _metric(asking: Asking) -> SignOffRequest:
    within_scope(asking.request, ())
    reason = asking.reason()
    asking.done()
    return request_metric(definition=asking.given(METRIC_MEMBERS), reason=reason, **asking.act)


def _benchmark(asking: Asking) -> SignOffRequest:
    within_scope(asking.request, ())
    reason = asking.reason()
    asking.done()
    return request_benchmark(version=asking.given(BENCHMARK_MEMBERS), reason=reason, **asking.act)


def _source(asking: Asking) -> SignOffRequest:
    within_scope(asking.request, ())
    reason = asking.reason()
    asking.done()
    return request_source(source=asking.given(SOURCE_MEMBERS), reason=reason, **asking.act)


def _words(choices: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(choices.values)}


KINDS: Mapping[str, AskedKind] = {
    RequestKind.GRANT: AskedKind(
        {
            "subject": {**_TEXT, "description": "`key@number`, or `key` for its newest version."},
            "systems": {"type": "array", "minItems": 1, "maxItems": MAX_SYSTEMS, "items": KEY_SCHEMA},
            "actions": {"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": {"type": "string"}},
            "starts_at": {**INSTANT, "description": "Left out: as soon as it is signed."},
            "ends_at": INSTANT,
            "reason": REASON,
            "waivers": _WAIVERS,
        },
        ("subject", "systems", "actions", "ends_at", "reason"),
        _grant,
    ),
    RequestKind.RENEWAL: AskedKind(
        {"grant": _GRANT, "ends_at": INSTANT, "reason": REASON, "waivers": _WAIVERS}, ("grant", "ends_at", "reason"), _renewal
    ),
    RequestKind.REINSTATEMENT: AskedKind({"grant": _GRANT, "reason": REASON}, ("grant", "reason"), _reinstatement),
    RequestKind.RECERTIFICATION: AskedKind({"grant": _GRANT, "reason": REASON}, ("grant", "reason"), _recertification),
    RequestKind.WAIVER: AskedKind(
        {"grant": _GRANT, "waivers": {**_WAIVERS, "minItems": 1}, "ends_at": INSTANT, "reason": REASON},
        ("grant", "waivers", "ends_at", "reason"),
        _waiver,
    ),
    RequestKind.ACTIVATION: AskedKind(
        {"policy": _TEXT, "version": {"type": "integer", "minimum": 1}, "reason": REASON},
        ("policy", "version", "reason"),
        _activation,
    ),
    RequestKind.BINDING: AskedKind(
        {
            "policy": _TEXT,
            "system": KEY_SCHEMA,
            "domain": {"type": "string", "enum": list(Domain.values), "description": "Instead of `system`."},
            "params": {"type": "object", "maxProperties": MAX_PARAMS, "additionalProperties": {"type": "string"}},
            "reason": REASON,
        },
        ("policy", "params", "reason"),
        _binding,
    ),
    RequestKind.RULING: AskedKind(
        {
            "evidence": {"type": "string", "format": "uuid"},
            "ruling": {"type": "string", "enum": list(SIGNED_RULINGS)},
            "link": {"type": "string", "maxLength": MAX_LINK},
            "reason": REASON,
        },
        ("evidence", "ruling", "reason"),
        _ruling,
    ),
    RequestKind.METRIC: AskedKind(
        {
            "key": KEY_SCHEMA,
            "title": _TEXT,
            "unit": _words(Unit),
            "better": _words(Better),
            "level": _words(Level),
            "family": _words(MetricFamily),
            "population": {**_TEXT, "maxLength": 300, "description": "Of what it is measured."},
            "definition": _LONG,
            "minimum": {"type": "string", "description": "The smallest value; 0 for a rate in percent."},
            "maximum": {
                "type": "string",
                "description": "The largest value; 100 for a rate in percent, left out where there is none.",
            },
            "reason": REASON,
        },
        ("key", "title", "unit", "better", "level", "family", "population", "definition", "minimum", "reason"),
        _metric,
    ),
    RequestKind.BENCHMARK: AskedKind(
        {
            "benchmark": {**KEY_SCHEMA, "description": "The benchmark's key; a new one is registered with its first version."},
            "title": {**_TEXT, "description": "Required for a new benchmark; of a known one it stays as it is."},
            "publisher": {"type": "string", "maxLength": 200},
            "url": {"type": "string", "maxLength": 500, "description": "An https address."},
            "description": {"type": "string", "maxLength": MAX_NOTE_LENGTH},
            "version": {"type": "string", "minLength": 1, "maxLength": 80},
            "harness": {"type": "string", "maxLength": 200},
            "split": {"type": "string", "maxLength": 80},
            "exposure": {**_words(Exposure), "description": "Whether the tasks of the split lie open. Default: unknown."},
            "tasks": {"type": "integer", "minimum": 1},
            "data_digest": {"type": "string", "description": "Of the test's data: sha256: and 64 hexadecimal digits."},
            "metrics": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_METRICS,
                "items": {"type": "string", "minLength": 1, "maxLength": KEY_MAX_LENGTH},
                "description": "The keys of the metrics it carries; evidence of another one under this version is refused.",
            },
            "notes": {"type": "string", "maxLength": MAX_NOTE_LENGTH},
            "reason": REASON,
        },
        ("benchmark", "version", "metrics", "reason"),
        _benchmark,
    ),
    RequestKind.SOURCE: AskedKind(
        {
            "key": {**KEY_SCHEMA, "description": "The source's key; a new one is registered with its first trust."},
            "title": {**_TEXT, "description": "Required for a new source; of a known one it stays as it is."},
            "publisher": {"type": "string", "maxLength": 200},
            "url": {"type": "string", "maxLength": 500, "description": "An https address."},
            "tier": {**_words(TrustTier), "description": "How far it is trusted from the last signature on, weakest first."},
            "reason": {**REASON, "maxLength": MAX_TRUST_REASON},
        },
        ("key", "tier", "reason"),
        _source,
    ),
}
"""What may be asked for here. The review of a break-glass is filed with it."""
