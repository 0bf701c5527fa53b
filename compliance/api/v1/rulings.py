"""Disputes of evidence. Every other ruling is asked for, and signed, as a request of the kind `ruling`."""

import uuid
from collections.abc import Mapping, Sequence

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.asking import MAX_LINK
from compliance.api.bodies import BODY_REFUSALS, REASON, object_schema, read_body, reason_in
from compliance.api.parameters import Parameter
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import PeopleAlone
from compliance.api.sighted import act_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY, UID, RulingSerializer
from compliance.api.views import ApiView, existing
from compliance.selectors.evidence import get_evidence
from compliance.services.disputes import file_dispute
from compliance.vocabulary import Scope

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
