"""Disputes of evidence, and what rests on it. Every other ruling is asked for, and signed, as a request of the kind `ruling`."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.asking import MAX_LINK
from compliance.api.bodies import BODY_REFUSALS, REASON, object_schema, read_body, reason_in
from compliance.api.fields import Instant, Words
from compliance.api.parameters import Parameter
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import PeopleAlone
from compliance.api.sighted import act_of, sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY, UID, RulingSerializer
from compliance.api.views import ApiView, existing
from compliance.selectors.evidence import get_evidence
from compliance.selectors.grants import find_grants
from compliance.selectors.resting import grants_resting_on, read_resting
from compliance.services.disputes import file_dispute
from compliance.vocabulary import EffectiveStatus, Scope
from evaluations.kernel.clock import now
from policies.vocabulary import Result

DISPUTE = object_schema(
    ("reason",),
    reason=REASON,
    link={"type": "string", "maxLength": MAX_LINK, "description": "An address that shows why."},
)


class EvidenceDispute(ApiView):
    """A dispute of one evidence."""

    scopes = {"POST": Scope.REQUEST}
    permission_classes = (PeopleAlone,)
    path_parameters = (UID,)
    parser_classes = (ExactJSON,)
    serializer_class = RulingSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        conflict = {"409": "The Idempotency-Key was used for something else."}
        return {**super().problems_of(method), **BODY_REFUSALS, **conflict}

    @extend_schema(
        request={"application/json": DISPUTE},
        responses={201: RulingSerializer},
        description=(
            "Dispute evidence: everybody who reads it may, and what rests on it is contested at once. Dismissing or upholding it takes "
            "signatures: ask for that as a request of the kind `ruling`."
        ),
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        evidence = existing(get_evidence, uid=uid)
        body = read_body(request, "reason", "link", example='{"reason": "…", "link": "https://…"}')
        reason, link = reason_in(body), body.text("link", limit=MAX_LINK)
        body.done()
        ruling = file_dispute(evidence=evidence, reason=reason, link=link, **act_of(request))
        location = reverse("api-v1:evidence-detail", kwargs={"uid": uid}, request=request)
        return Response(RulingSerializer(ruling).data, status=status.HTTP_201_CREATED, headers={"Location": location})


class RestingVerdictSerializer(serializers.Serializer[Any]):
    """A verdict as it stood at one end of the comparison."""

    uid = serializers.UUIDField()
    result = Words(Result)


class RestingSerializer(serializers.Serializer[Any]):
    """One question that the evidence decides, or decided before the newest ruling on it."""

    policy = serializers.CharField(source="now.policy_version.policy.name")
    policy_version = serializers.IntegerField(source="now.policy_version.number")
    subject = serializers.CharField(source="now.subject_version.subject.key")
    subject_version = serializers.IntegerField(source="now.subject_version.number")
    domain = serializers.CharField(source="now.domain")
    before = RestingVerdictSerializer(allow_null=True)
    rested = serializers.BooleanField(help_text="Whether `before` names the evidence among what decided a rule.")
    now = RestingVerdictSerializer()
    rests = serializers.BooleanField(help_text="Whether `now` does.")


class RestingGrantSerializer(serializers.Serializer[Any]):
    """A grant of a subject that the evidence is about, or whose route reaches it."""

    uid = serializers.UUIDField()
    status = Words(EffectiveStatus, source="standing")


class EvidenceRestingSerializer(serializers.Serializer[Any]):
    """What rests on evidence."""

    ruled_at = Instant(allow_null=True, help_text="The newest ruling; null where there is none, and then `before` is `now`.")
    verdicts = RestingSerializer(many=True)
    verdicts_complete = serializers.BooleanField(help_text="False where there are more than are told.")
    grants = RestingGrantSerializer(many=True, help_text="Those that are not over, of those that you may see.")


class EvidenceResting(ApiView):
    """What rests on one evidence, before and after the newest ruling on it."""

    path_parameters = (UID,)
    serializer_class = EvidenceRestingSerializer

    @extend_schema(
        responses=EvidenceRestingSerializer,
        description="The verdicts that one evidence decides, beside those that stood before the newest ruling on it, and the grants.",
    )
    def get(self, request: Request, uid: uuid.UUID) -> Response:
        evidence = existing(get_evidence, uid=uid)
        at = now()
        found = read_resting(evidence, at=at)
        wider = [grant.pk for grant in grants_resting_on(evidence)]
        shown = {
            "ruled_at": found.ruled_at,
            "verdicts": found.verdicts,
            "verdicts_complete": not found.more,
            "grants": find_grants(sight_for(request, Scope.READ, at=at), now=at).filter(pk__in=wider).order_by("id"),
        }
        return Response(EvidenceRestingSerializer(shown).data)
