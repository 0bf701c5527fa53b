"""Systems: what is stated about them, how much a wrong write could do, and the ways to register, change and stop them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import Exact, Instant, Words
from compliance.api.parameters import Parameter, flag, key, word
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.permissions import HasScopeOfSystem
from compliance.api.preconditions import IF_MATCH, PRECONDITIONS, PreconditionFailed, etag, seen_digest
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import KEY_SCHEMA, ApiView, DetailView, ListView, existing, key_in_path
from compliance.models import RoleMembership, ServiceToken
from compliance.selectors.systems import find_system, find_systems, roles_held
from compliance.services.bodies import MAX_BODY_BYTES
from compliance.services.registrations import accept_change, accept_incident, accept_system
from compliance.vocabulary import Scope
from evaluations.importers.fields import MAX_COUNT
from evaluations.kernel.clock import now
from evaluations.vocabulary import Domain
from policies.models import System
from policies.selectors.blast_radius import MOST, blast_radius
from policies.selectors.systems import system_digest
from policies.services.systems import MAX_REASON, MAX_TITLE, SystemChanged
from policies.vocabulary import BlastLevel, Environment

KEY = key_in_path("key", "The system's key.")

_COUNT = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT, "nullable": True}
_REASON = {"type": "string", "minLength": 1, "maxLength": MAX_REASON}
_STATEMENTS: Mapping[str, Any] = {
    "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
    "domain": {"type": "string", "enum": list(Domain.values)},
    "environment": {"type": "string", "enum": list(Environment.values), "description": "Default: production."},
    "reversible": {"type": "boolean", "description": "Whether writes can be taken back. Default: false."},
    "owner": {"type": "string", "description": "Key of the owning team."},
    "people_affected": {**_COUNT, "description": "How many people its records are about; null where not known."},
    "writes_per_day": {**_COUNT, "description": "How many writes a day it takes now; null where not known."},
    "holds_personal_data": {"type": "boolean", "nullable": True, "description": "Null where not known."},
    "money_at_stake_usd": {
        "type": "string",
        "pattern": r"^[0-9]{1,12}(\.[0-9]{1,6})?$",
        "nullable": True,
        "description": "The most that one wrong write can cost, in US dollars; null where not known.",
    },
}
SYSTEM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["key", "title", "domain"],
    "properties": {"key": KEY_SCHEMA, **_STATEMENTS},
}
CHANGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reason"],
    "properties": {**_STATEMENTS, "reason": _REASON},
}
INCIDENT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["open", "reason"],
    "properties": {
        "open": {"type": "boolean"},
        "reason": _REASON,
        "link": {"type": "string", "maxLength": MAX_REASON, "description": "An http or https address that tells more."},
    },
}
_BODY: Mapping[str, str] = {
    "411": "The body came without its length.",
    "413": f"The body is larger than {MAX_BODY_BYTES} bytes.",
    "415": "The body is not application/json.",
}


class PartSerializer(serializers.Serializer[Any]):
    """One part of a blast radius."""

    name = serializers.CharField()
    value = serializers.CharField(source="value_text")
    weight = serializers.IntegerField()
    most = serializers.IntegerField(help_text="What this part can weigh at most.")
    why = serializers.CharField()


class BlastRadiusSerializer(serializers.Serializer[Any]):
    """How much a wrong write could do. What the owner has not stated counts as the worst."""

    level = Words(BlastLevel)
    score = serializers.IntegerField(help_text=f"The sum of the parts' weights, at most {MOST}.")
    parts = PartSerializer(many=True)


class SystemSerializer(serializers.Serializer[Any]):
    """A system. Null means that its owner has not stated it."""

    key = serializers.CharField()
    title = serializers.CharField()
    domain = Words(Domain)
    environment = Words(Environment)
    reversible = serializers.BooleanField()
    owner = serializers.CharField(help_text="Key of the owning team, or empty.")
    open_incident = serializers.BooleanField()
    people_affected = serializers.IntegerField(allow_null=True)
    writes_per_day = serializers.IntegerField(allow_null=True)
    holds_personal_data = serializers.BooleanField(allow_null=True)
    money_at_stake_usd = Exact(allow_null=True)
    registered_at = Instant()
    blast_radius = serializers.SerializerMethodField(help_text="For the action `write`.")

    @extend_schema_field(BlastRadiusSerializer)
    def get_blast_radius(self, system: System) -> dict[str, Any]:
        return dict(BlastRadiusSerializer(blast_radius(system)).data)


def _roles(request: Request) -> list[RoleMembership]:
    """Return the roles of who asks, or of the person whose token does: a token does with systems what its person may."""
    credential: Any = request.auth if isinstance(request.auth, ServiceToken) else request.user
    return roles_held(person_id=credential.person_id, at=now())


def _only_keys(request: Request) -> frozenset[str] | None:
    """Return the systems that a token is narrowed to, None where it is not."""
    token = request.auth
    if not isinstance(token, ServiceToken) or token.holds(Scope.REGISTER):
        return None
    return frozenset(held.removeprefix(f"{Scope.REGISTER}:") for held in token.scopes if held.startswith(f"{Scope.REGISTER}:"))


class SystemList(ListView):
    """Systems, oldest first; and the way to register one."""

    permission_classes = (HasScopeOfSystem,)
    scopes = {"GET": Scope.READ, "POST": Scope.REGISTER}
    find = staticmethod(find_systems)
    filters = (
        word("domain", Domain, "Only systems of this domain."),
        word("environment", Environment, "Only systems of this environment."),
        key("owner", "Only systems that this team owns."),
        flag("reversible", "Only those whose writes can be taken back, or only the others."),
        flag("open_incident", "Only those with an open incident, or only the others."),
    )
    serializer_class = SystemSerializer
    parser_classes = (ExactJSON,)
    oldest_first = True

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        **_BODY,
        "409": "The key belongs to a system with other facts, or the Idempotency-Key was used with another body.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    @extend_schema(
        request={"application/json": SYSTEM},
        responses={201: SystemSerializer, 200: SystemSerializer},
        examples=[OpenApiExample("one", request_only=True, value={"key": "hr-prod", "title": "HR production", "domain": "hr"})],
        description=(
            "Register a system: for a system_owner of the team that is to own it, security, or an administrator. 200 where it is there "
            "already with the same facts."
        ),
    )
    def post(self, request: Request) -> Response:
        made = accept_system(
            actor=actor_of(request),
            body=body_of(request),
            person_roles=_roles(request),
            only_keys=_only_keys(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        location = reverse("api-v1:system", kwargs={"key": made.system.key}, request=request)
        return _shown(made.system, status.HTTP_201_CREATED if made.is_new else status.HTTP_200_OK, Location=location)


class SystemDetail(DetailView):
    """One system; and the way to change what is stated about it."""

    permission_classes = (HasScopeOfSystem,)
    scopes = {"GET": Scope.READ, "PATCH": Scope.REGISTER}
    http_method_names = ("get", "head", "patch")
    find = staticmethod(find_system)
    path_parameters = (KEY,)
    serializer_class = SystemSerializer
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IF_MATCH,) if method == "PATCH" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **({**_BODY, **PRECONDITIONS} if method == "PATCH" else {})}

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return _shown(existing(find_system, **kwargs))

    @extend_schema(
        request={"application/json": CHANGE},
        responses={200: SystemSerializer},
        description=(
            "Change what is stated, for those who manage the system. A member that is left out stays as it is; null means not known."
        ),
    )
    def patch(self, request: Request, key: str) -> Response:
        system = existing(find_system, key=key)
        try:
            changed = accept_change(
                actor=actor_of(request),
                system=system,
                body=body_of(request),
                person_roles=_roles(request),
                expected_digest=seen_digest(request),
                request_id=request_id_of(request._request),
            )
        except SystemChanged as refusal:
            raise PreconditionFailed(refusal.detail) from None
        return _shown(changed)


class SystemIncident(ApiView):
    """The open-incident switch of one system."""

    permission_classes = (HasScopeOfSystem,)
    scopes = {"POST": Scope.REGISTER}
    path_parameters = (KEY,)
    serializer_class = SystemSerializer
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **_BODY, "409": "The Idempotency-Key was used with another body."}

    @extend_schema(
        request={"application/json": INCIDENT},
        responses={200: SystemSerializer},
        description=(
            "Open or close the incident, for those who manage the system. Stating what stands changes nothing. Policies may say that "
            "nothing is written while an incident is open."
        ),
    )
    def post(self, request: Request, key: str) -> Response:
        moved = accept_incident(
            actor=actor_of(request),
            system=existing(find_system, key=key),
            body=body_of(request),
            person_roles=_roles(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        return _shown(moved)


def _shown(system: System, code: int = status.HTTP_200_OK, **headers: str) -> Response:
    return Response(SystemSerializer(system).data, status=code, headers={"ETag": etag(system_digest(system)), **headers})
