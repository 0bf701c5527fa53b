"""Grants: who may write where, since when and until when; and the ways for one person to take access away at once."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import BODY_REFUSALS, REASON, instant, object_schema, read_body, reason_in
from compliance.api.fields import Digest, Instant, Words
from compliance.api.parameters import Parameter, key, text, word
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import HasScopeOfAnySystem, PeopleAlone, ServiceJudges
from compliance.api.preconditions import IF_MATCH, PRECONDITIONS, etag
from compliance.api.sighted import account_of, act_of, require_unchanged, seen, session_of, sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.requests import WHY, SightedList
from compliance.api.v1.shapes import LINK, PersonSerializer
from compliance.api.views import KEY_SCHEMA, ApiView, text_in_path
from compliance.models import Grant
from compliance.selectors.grants import find_grants, grants_in_scope, scope_exists, standing_of
from compliance.selectors.history import events_of, find_grant, version_of_grant
from compliance.selectors.links import with_grant_links
from compliance.selectors.registry import get_subject_version_named
from compliance.selectors.sight import visible_grants
from compliance.selectors.systems import systems_named
from compliance.services.break_glass import LEAST_JUSTIFICATION, LEAST_MINUTES, MOST_MINUTES, open_break_glass
from compliance.services.filing import MAX_ACTIONS, MAX_SYSTEMS
from compliance.services.requests import MAX_TEXT
from compliance.services.stopping import revoke_grant, stop_grants, suspend_grant
from compliance.vocabulary import EffectiveStatus, GrantKind, GrantMove, GrantStatus, Scope, StopScope
from evaluations.importers.fields import shown as quoted
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem

UID = text_in_path("uid", "The grant's id.", format="uuid")
STOP = object_schema(
    ("scope", "reason"),
    scope={"type": "string", "enum": list(StopScope.values)},
    key={"type": "string", "description": "Of the subject, system, provider or benchmark; left out for `all`."},
    reason=REASON,
)
BREAK_GLASS = object_schema(
    ("subject", "systems", "actions", "justification", "minutes"),
    subject={"type": "string", "description": "`key@number`, or `key` for its newest version."},
    systems={"type": "array", "minItems": 1, "maxItems": MAX_SYSTEMS, "items": KEY_SCHEMA},
    actions={"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": {"type": "string"}},
    justification={"type": "string", "minLength": LEAST_JUSTIFICATION, "maxLength": MAX_TEXT},
    minutes={"type": "integer", "minimum": LEAST_MINUTES, "maximum": MOST_MINUTES},
)


class GrantSerializer(serializers.Serializer[Any]):
    """A grant as it stands at this moment, by its row and the clock. `recorded_status` is what was last recorded of it."""

    uid = serializers.UUIDField()
    kind = Words(GrantKind)
    status = serializers.SerializerMethodField()
    usable = serializers.SerializerMethodField()
    cause = serializers.SerializerMethodField(help_text="Why it stands so.")
    until = serializers.SerializerMethodField(help_text="When time alone changes that; null where it does not.")
    recorded_status = Words(GrantStatus, source="status")
    subject_version = serializers.SerializerMethodField(help_text="`key@number`.")
    systems = serializers.ListField(child=serializers.CharField(), source="system_keys")
    actions = serializers.ListField(child=serializers.CharField())
    requester = serializers.SerializerMethodField()
    request = serializers.SerializerMethodField(help_text="The request that made it; null where there is none that you see.")
    renews = serializers.SerializerMethodField(help_text="The grant before it; null where there is none that you see.")
    starts_at = Instant()
    ends_at = Instant()
    begun_at = Instant(allow_null=True)
    recertify_by = Instant(allow_null=True)
    recertify_every_days = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    created_at = Instant()

    @extend_schema_field(Words(EffectiveStatus))
    def get_status(self, row: Any) -> str:
        return str(standing_of(row, at=self.context["at"]).status)

    def get_usable(self, row: Any) -> bool:
        return standing_of(row, at=self.context["at"]).usable

    def get_cause(self, row: Any) -> str:
        return str(standing_of(row, at=self.context["at"]).cause)

    @extend_schema_field(Instant(allow_null=True))
    def get_until(self, row: Any) -> str | None:
        until = standing_of(row, at=self.context["at"]).until
        return None if until is None else Instant().to_representation(until)

    def get_subject_version(self, row: Any) -> str:
        return f"{row.subject_version.subject.key}@{row.subject_version.number}"

    @extend_schema_field(PersonSerializer)
    def get_requester(self, row: Any) -> dict[str, Any]:
        return {"person": str(row.requester_id), "name": row.requester_name}

    @extend_schema_field(LINK)
    def get_request(self, row: Any) -> str | None:
        return None if row.seen_request is None else str(row.seen_request)

    @extend_schema_field(LINK)
    def get_renews(self, row: Any) -> str | None:
        return None if row.seen_renews is None else str(row.seen_renews)


class GrantEventSerializer(serializers.Serializer[Any]):
    """One move of a grant, with its cause."""

    number = serializers.IntegerField()
    move = Words(GrantMove)
    status = Words(GrantStatus)
    cause = serializers.CharField()
    detail = serializers.SerializerMethodField()
    dossier_digest = serializers.SerializerMethodField()
    recertify_by = Instant(allow_null=True)
    actor = serializers.CharField()
    at = Instant()

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_detail(self, row: Any) -> Any:
        return row.detail

    @extend_schema_field(Digest(allow_null=True))
    def get_dossier_digest(self, row: Any) -> str | None:
        return None if row.dossier is None else row.dossier.digest


class GrantDetailSerializer(GrantSerializer):
    """A grant, and every move it made, oldest first."""

    events = serializers.SerializerMethodField()

    @extend_schema_field(GrantEventSerializer(many=True))
    def get_events(self, row: Any) -> Any:
        return GrantEventSerializer(events_of(row), many=True).data


class StoppedSerializer(serializers.Serializer[Any]):
    """What one pull of the stop button suspended."""

    count = serializers.IntegerField()
    grants = serializers.ListField(child=serializers.UUIDField(), source="uids")


class StopCountSerializer(serializers.Serializer[Any]):
    """How many of the grants that you see a stop would suspend."""

    count = serializers.IntegerField()


class GrantList(SightedList):
    """Grants that you may see, newest first."""

    filters = (
        word("status", EffectiveStatus, "Only those that stand so now."),
        word("kind", GrantKind, "Only grants of this kind."),
        key("subject", "Only those of the subject with this key."),
        key("system", "Only those that reach the system with this key."),
        instant("at", "Only those that could be used at this instant, by what was recorded up to then: who could write then?"),
    )
    serializer_class = GrantSerializer

    def get_queryset(self) -> Any:
        at = self.get_serializer_context()["at"]
        sight = sight_for(self.request, Scope.READ, at=at)
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return with_grant_links(find_grants(sight, now=at, **chosen), sight)


class GrantView(ApiView):
    """Base of what belongs to one grant."""

    permission_classes = (HasScopeOfAnySystem,)
    path_parameters = (UID,)
    serializer_class = GrantDetailSerializer


class GrantDetail(GrantView):
    """One grant, and every move it made."""

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        return shown(request, uid)


class GrantAct(GrantView):
    """Base of what one person may do to one grant: take it away."""

    scopes = {"POST": Scope.REQUEST}
    permission_classes = (ServiceJudges,)
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY, IF_MATCH)

    def problems_of(self, method: str) -> Mapping[str, str]:
        conflict = "The grant is not live, or the Idempotency-Key was used for something else."
        return {**super().problems_of(method), **BODY_REFUSALS, **PRECONDITIONS, "409": conflict}

    def told(self, request: Request, uid: uuid.UUID) -> tuple[Grant, str]:
        """Return the grant as the caller saw it, and why it is to be taken away."""
        row = seen(request, find_grant, at=now(), scope=Scope.REQUEST, uid=uid)
        require_unchanged(request, version_of_grant(row, now()))
        body = read_body(request, "reason", example='{"reason": "…"}')
        reason = reason_in(body)
        body.done()
        return row, reason


class GrantSuspend(GrantAct):
    """Suspension of one grant."""

    @extend_schema(
        request={"application/json": WHY},
        responses={200: GrantDetailSerializer},
        description="Suspend an active grant at once: for security, administrators and owners of its systems. A quorum brings it back.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        grant, reason = self.told(request, uid)
        suspend_grant(grant=grant, reason=reason, **act_of(request))
        return shown(request, uid, scope=Scope.REQUEST)


class GrantRevoke(GrantAct):
    """The end of one grant."""

    @extend_schema(
        request={"application/json": WHY},
        responses={200: GrantDetailSerializer},
        description="End a grant for good: for those who may suspend it, and for whoever asked for it.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        grant, reason = self.told(request, uid)
        revoke_grant(grant=grant, reason=reason, **act_of(request))
        return shown(request, uid, scope=Scope.REQUEST)


class GrantStop(ApiView):
    """The stop button."""

    permission_classes = (PeopleAlone,)
    scopes = {"GET": Scope.READ, "POST": Scope.REQUEST}
    serializer_class = StoppedSerializer
    parser_classes = (ExactJSON,)

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        if method != "GET":
            return ()
        scope = word("scope", StopScope, "What is to be stopped.")
        return (
            Parameter(scope.name, scope.read, scope.schema, scope.description, required=True),
            text("key", "Of the subject, system, provider or benchmark; left out for `all`."),
        )

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        conflict = {"409": "The Idempotency-Key was used with another order."}
        return {**BODY_REFUSALS, **conflict} if method == "POST" else {}

    @extend_schema(
        responses={200: StopCountSerializer},
        description="How many of the grants that you see a stop would suspend. Changes nothing.",
    )
    def get(self, request: Request) -> Response:
        at = now()
        scope, name = StopScope(self.asked["scope"]), self.asked.get("key", "")
        if not scope_exists(scope, name):
            raise InputRefused([Problem(f"no {scope.label} {quoted(name)} is registered", field="key", hint="look the name up")])
        visible = visible_grants(sight_for(request, Scope.READ, at=at))
        return Response({"count": grants_in_scope(scope, name, at=at).filter(pk__in=visible.values("pk")).count()})

    @extend_schema(
        request={"application/json": STOP},
        responses={200: StoppedSerializer},
        description=(
            "Suspend every active grant within a scope at once: for security and administrators, and for owners of the system where "
            "that is the scope. Each comes back through its quorum alone. No token stops."
        ),
    )
    def post(self, request: Request) -> Response:
        body = read_body(request, "scope", "key", "reason", example='{"scope": "system", "key": "hr-prod", "reason": "…"}')
        order: dict[str, Any] = {"scope": body.text("scope", required=True), "key": body.text("key"), "reason": reason_in(body)}
        body.done()
        return Response(StoppedSerializer(stop_grants(**order, **act_of(request))).data)


class GrantBreakGlass(ApiView):
    """Break-glass: access at once, for hours, on one person's word; loud, and reviewed by others afterwards."""

    permission_classes = (PeopleAlone,)
    scopes = {"POST": Scope.REQUEST}
    serializer_class = GrantDetailSerializer
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {
            **BODY_REFUSALS,
            "409": "An earlier one waits for its review, or the Idempotency-Key was used for something else.",
        }

    @extend_schema(
        request={"application/json": BREAK_GLASS},
        responses={201: GrantDetailSerializer},
        description=(
            "Open access at once: for security, or the owner of every one of the systems, freshly re-authenticated by a second factor. "
            "It is told at once, and its review is asked for. No token opens one."
        ),
    )
    def post(self, request: Request) -> Response:
        members = ("subject", "systems", "actions", "justification", "minutes")
        body = read_body(request, *members, example='{"subject": "acme/assistant@2", "systems": ["hr-prod"], …}')
        name, keys = body.text("subject", required=True, limit=300), body.texts("systems", most=MAX_SYSTEMS)
        version, systems = get_subject_version_named(name) if name else None, systems_named(keys)
        if name and version is None:
            body.wrong("subject", f"there is no subject version {quoted(name)}", "look it up", "unknown")
        for place, one in enumerate(keys):
            if one not in systems:
                body.wrong(f"systems[{place}]", f"there is no system {quoted(one)}", "look it up", "unknown")
        told: dict[str, Any] = {"actions": body.texts("actions", most=MAX_ACTIONS), "minutes": body.count("minutes") or 0}
        justification = body.text("justification", required=True, limit=MAX_TEXT)
        body.done()
        chosen: Any = version
        opened = open_break_glass(
            account=account_of(request),
            session=session_of(request),
            subject_version=chosen,
            systems=[systems[one] for one in keys],
            justification=justification,
            **told,
            **act_of(request),
        )
        return shown(request, opened.grant.uid, code=status.HTTP_201_CREATED)


def shown(request: Request, uid: uuid.UUID, *, code: int = status.HTTP_200_OK, scope: str = Scope.READ) -> Response:
    """Return one grant as who asks sees it, with the tag of its state."""
    at = now()
    row = seen(request, find_grant, at=at, scope=scope, uid=uid)
    headers = {"ETag": etag(version_of_grant(row, at))}
    if code == status.HTTP_201_CREATED:
        headers["Location"] = reverse("api-v1:grant", kwargs={"uid": uid}, request=request)
    return Response(GrantDetailSerializer(row, context={"request": request, "at": at}).data, status=code, headers=headers)
