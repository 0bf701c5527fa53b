"""Webhook endpoints: who is told of events, and by which secret the messages are signed."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import Instant
from compliance.api.parameters import Parameter
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.permissions import Administers
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import ApiView, DetailView, ListView, existing, text_in_path
from compliance.selectors.outbox import find_webhooks, get_webhook
from compliance.services.outbox import EVERY_EVENT
from compliance.services.outgoing import MAX_URL
from compliance.services.webhooks import MAX_BODY_BYTES, MAX_TITLE, disable_webhook, open_webhook, read_wish, rotate_secret
from compliance.vocabulary import NoticeKind

UID = text_in_path("uid", "The webhook's id.", format="uuid")
WISH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["url", "title", "events"],
    "properties": {
        "url": {
            "type": "string",
            "format": "uri",
            "maxLength": MAX_URL,
            "description": "https, outside of private networks, unless the operator allows its host and port.",
        },
        "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
        "events": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "enum": [EVERY_EVENT, *NoticeKind.values]},
            "description": "What to tell: kinds of notices, or `*` alone for all there are and will be.",
        },
    },
}


class WebhookSerializer(serializers.Serializer[Any]):
    """One endpoint. It is told of events as CloudEvents 1.0, signed as Standard Webhooks says; its secret is not shown again."""

    uid = serializers.UUIDField()
    title = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    created_by = serializers.CharField()
    created_at = Instant()
    previous_secret_until = Instant(
        source="previous_until", allow_null=True, help_text="Until then the secret before the last rotation signs too."
    )
    disabled_by = serializers.CharField(help_text="Who disabled it, or empty.")
    disabled_at = Instant(allow_null=True)


class NewWebhookSerializer(WebhookSerializer):
    """One endpoint with its secret, which is shown this once. On a retry by the same key it is null: rotate it if it was lost."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, endpoint: Any) -> str | None:
        return self.context["secret"] or None


class WebhookList(ListView):
    """Webhook endpoints, newest first; and the way to register one."""

    permission_classes = (Administers,)
    find = staticmethod(find_webhooks)
    serializer_class = WebhookSerializer
    parser_classes = (ExactJSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        "409": "The Idempotency-Key was used with another body.",
        "411": "The body came without its length.",
        "413": f"The body is larger than {MAX_BODY_BYTES} bytes.",
        "415": "The body is not application/json.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    @extend_schema(
        request={"application/json": WISH},
        responses={201: NewWebhookSerializer},
        description="Register an endpoint. The answer holds the secret that signs its messages, once.",
    )
    def post(self, request: Request) -> Response:
        made = open_webhook(
            actor=actor_of(request),
            **read_wish(body_of(request)),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        context = {**self.get_serializer_context(), "secret": made.secret}
        location = reverse("api-v1:webhook", kwargs={"uid": made.endpoint.uid}, request=request)
        answer = NewWebhookSerializer(made.endpoint, context=context).data
        return Response(answer, status=status.HTTP_201_CREATED, headers={"Location": location})


class WebhookDetail(DetailView):
    """One webhook endpoint."""

    permission_classes = (Administers,)
    find = staticmethod(get_webhook)
    path_parameters = (UID,)
    serializer_class = WebhookSerializer


class WebhookAct(ApiView):
    """Base of what is done to one endpoint."""

    permission_classes = (Administers,)
    path_parameters = (UID,)
    serializer_class = WebhookSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {
            "404": "There is no such webhook.",
            "409": "The state of the webhook does not allow it, or the Idempotency-Key was used for something else.",
        }

    def named(self, request: Request, uid: uuid.UUID) -> dict[str, Any]:
        """Return the arguments of the service that acts on the endpoint of the address."""
        return {
            "actor": actor_of(request),
            "endpoint": existing(get_webhook, uid=uid),
            "idempotency_key": request.headers.get("Idempotency-Key"),
            "request_id": request_id_of(request._request),
        }


class WebhookDisable(WebhookAct):
    """The end of an endpoint."""

    @extend_schema(
        request=None,
        responses={200: WebhookSerializer},
        description="Tell an endpoint nothing more, for good. What waits for it becomes a dead letter.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        return Response(self.get_serializer(disable_webhook(**self.named(request, uid))).data)


class WebhookRotateSecret(WebhookAct):
    """A new secret for an endpoint."""

    @extend_schema(
        request=None,
        responses={200: NewWebhookSerializer},
        description="Make a new secret, shown in this answer once. For 24 hours messages carry a signature by the old one too.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        made = rotate_secret(**self.named(request, uid))
        context = {**self.get_serializer_context(), "secret": made.secret}
        return Response(NewWebhookSerializer(made.endpoint, context=context).data)
