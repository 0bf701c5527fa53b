"""Notices: where each stands, and another try for one that was given up."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.authentication import actor_of
from compliance.api.fields import Instant, Words
from compliance.api.parameters import Parameter, word
from compliance.api.permissions import Administers
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import ApiView, DetailView, ListView, existing, text_in_path
from compliance.models import OutboxMessage
from compliance.selectors.outbox import find_notices, get_notice
from compliance.services.outbox import replay_message
from compliance.vocabulary import NoticeChannel, NoticeKind, NoticeStatus

UID = text_in_path("uid", "The notice's id.", format="uuid")


class NoticeSerializer(serializers.Serializer[Any]):
    """One notice to one recipient. `event_id` is shared by all notices of one event, and is the CloudEvents id that webhooks see."""

    uid = serializers.UUIDField()
    event_id = serializers.UUIDField()
    kind = Words(NoticeKind)
    type = serializers.CharField(source="event_type")
    subject = serializers.CharField()
    title = serializers.CharField()
    channel = Words(NoticeChannel)
    recipient = serializers.CharField(help_text="`person:…`, `webhook:…` or `chat:…`.")
    status = Words(NoticeStatus)
    attempts = serializers.IntegerField()
    due_at = Instant(help_text="When it is, or was, due next.")
    last_error = serializers.CharField(help_text="Why the last attempt failed, or empty.")
    created_at = Instant()
    sent_at = Instant(allow_null=True)
    data = serializers.SerializerMethodField()  # type: ignore[assignment]  # a field takes the place of the property

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_data(self, message: OutboxMessage) -> Any:
        return json.loads(message.data)


class NoticeList(ListView):
    """Notices, newest first."""

    permission_classes = (Administers,)
    find = staticmethod(find_notices)
    filters = (
        word("status", NoticeStatus, "Only notices that stand so."),
        word("kind", NoticeKind, "Only notices of this kind."),
        word("channel", NoticeChannel, "Only notices over this channel."),
    )
    serializer_class = NoticeSerializer


class NoticeDetail(DetailView):
    """One notice."""

    permission_classes = (Administers,)
    find = staticmethod(get_notice)
    path_parameters = (UID,)
    serializer_class = NoticeSerializer


class NoticeReplay(ApiView):
    """Another try for a notice that was given up."""

    permission_classes = (Administers,)
    path_parameters = (UID,)
    serializer_class = NoticeSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {
            "404": "There is no such notice.",
            "409": "The notice is not dead, its webhook is disabled, or the Idempotency-Key was used for something else.",
        }

    @extend_schema(
        request=None,
        responses={200: NoticeSerializer},
        description="Send a dead notice once more, from its first attempt on.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        message = replay_message(
            actor=actor_of(request),
            message=existing(get_notice, uid=uid),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        return Response(self.get_serializer(message).data)
