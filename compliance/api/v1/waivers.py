"""Waivers: which failing soft rules are accepted, where, until when, and the way to take one back."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.bodies import BODY_REFUSALS, read_body, reason_in
from compliance.api.fields import Digest, Exact, Instant
from compliance.api.parameters import Parameter, flag, key
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import HasScopeOfAnySystem, ServiceJudges
from compliance.api.preconditions import IF_MATCH, PRECONDITIONS, etag
from compliance.api.sighted import act_of, require_unchanged, seen, sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.requests import WHY, SightedList
from compliance.api.v1.shapes import LINK
from compliance.api.views import ApiView, text_in_path
from compliance.models import Waiver, WaiverRevocation
from compliance.selectors.waivers import find_waiver, find_waivers, version_of_waiver
from compliance.services.waivers import revoke_waiver
from compliance.vocabulary import Scope
from evaluations.kernel.clock import now

UID = text_in_path("uid", "The waiver's id.", format="uuid")


class RevocationSerializer(serializers.Serializer[Any]):
    """That a waiver was taken back before its end."""

    reason = serializers.CharField()
    revoked_by = serializers.CharField()
    recorded_at = Instant()


class WaiverSerializer(serializers.Serializer[Any]):
    """A signed acceptance of one failing soft rule. It covers what was measured then, and nothing worse; the rule still fails."""

    uid = serializers.UUIDField()
    live = serializers.SerializerMethodField(help_text="Whether it counts at this moment.")
    subject_version = serializers.SerializerMethodField(help_text="`key@number`.")
    system = serializers.CharField(source="system.key")
    policy = serializers.CharField(source="policy.name")
    rule = serializers.CharField()
    rule_digest = Digest()
    measured = Exact()
    floor = serializers.BooleanField(help_text="Whether less would be worse.")
    reason = serializers.CharField()
    request = serializers.SerializerMethodField(help_text="The request that it was signed on; null where you do not see it.")
    starts_at = Instant()
    ends_at = Instant()
    waived_by = serializers.CharField()
    revocation = serializers.SerializerMethodField()

    def get_live(self, row: Waiver) -> bool:
        return row.starts_at <= self.context["at"] < row.ends_at and not hasattr(row, "revocation")

    def get_subject_version(self, row: Waiver) -> str:
        return f"{row.subject_version.subject.key}@{row.subject_version.number}"

    @extend_schema_field(LINK)
    def get_request(self, row: Any) -> str | None:
        return None if row.seen_request is None else str(row.seen_request)

    @extend_schema_field(RevocationSerializer(allow_null=True))
    def get_revocation(self, row: Waiver) -> Any:
        found: WaiverRevocation | None = getattr(row, "revocation", None)
        return None if found is None else RevocationSerializer(found).data


class WaiverList(SightedList):
    """Waivers that you may see, newest first."""

    filters = (
        key("subject", "Only those for the subject with this key."),
        key("system", "Only those at the system with this key."),
        key("policy", "Only those of rules of this policy."),
        flag("live", "Only those that count now, or only the others."),
    )
    serializer_class = WaiverSerializer

    def get_queryset(self) -> Any:
        at = self.get_serializer_context()["at"]
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return find_waivers(sight_for(self.request, Scope.READ, at=at), at=at, **chosen)


class WaiverDetail(ApiView):
    """One waiver."""

    permission_classes = (HasScopeOfAnySystem,)
    path_parameters = (UID,)
    serializer_class = WaiverSerializer

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        return _shown(request, uid)


class WaiverRevoke(ApiView):
    """The end of one waiver before its time."""

    scopes = {"POST": Scope.REQUEST}
    permission_classes = (ServiceJudges,)
    path_parameters = (UID,)
    parser_classes = (ExactJSON,)
    serializer_class = WaiverSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY, IF_MATCH)

    def problems_of(self, method: str) -> Mapping[str, str]:
        conflict = "It was taken back before, or the Idempotency-Key was used for something else."
        return {**super().problems_of(method), **BODY_REFUSALS, **PRECONDITIONS, "409": conflict}

    @extend_schema(
        request={"application/json": WHY},
        responses={200: WaiverSerializer},
        description="Take a waiver back: for security, administrators, owners of its system, and whoever asked for it.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        row = seen(request, find_waiver, at=now(), scope=Scope.REQUEST, uid=uid)
        require_unchanged(request, version_of_waiver(row))
        body = read_body(request, "reason", example='{"reason": "…"}')
        reason = reason_in(body)
        body.done()
        revoke_waiver(waiver=row, reason=reason, **act_of(request))
        return _shown(request, uid, scope=Scope.REQUEST)


def _shown(request: Request, uid: uuid.UUID, *, scope: str = Scope.READ) -> Response:
    at = now()
    row = seen(request, find_waiver, at=at, scope=scope, uid=uid)
    context = {"request": request, "at": at}
    return Response(WaiverSerializer(row, context=context).data, headers={"ETag": etag(version_of_waiver(row))})
