"""Exports of the trail, as jobs: ordered here, made by the worker, taken away whole."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db import transaction
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import Digest, Instant, Words
from compliance.api.parameters import Parameter, word
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.ledger import TrailView
from compliance.api.views import DetailView, ListView, existing, text_in_path
from compliance.models import AuditExport
from compliance.selectors import entries
from compliance.services.orders import MAX_HELD, MAX_INDEX, MAX_ORDER_BYTES, accept_order
from compliance.tasks import advance_audit_export
from compliance.vocabulary import ExportFormat, ExportStatus, Scope

UID = text_in_path("uid", "The export's id.", format="uuid")
RETRY_SECONDS = 2

_FILTERS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "actor": {"type": "string", "pattern": entries.ACTOR_PATTERN, "maxLength": entries.WORD_LIMIT},
        "action": {"type": "string", "pattern": entries.ACTION_PATTERN, "maxLength": entries.WORD_LIMIT},
        "target": {"type": "string", "pattern": entries.TARGET_PATTERN, "maxLength": entries.WORD_LIMIT},
        "since": {"type": "string", "format": "date-time"},
        "until": {"type": "string", "format": "date-time"},
    },
}
ORDER = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "format": {
            "type": "string",
            "enum": list(ExportFormat.values),
            "description": "`csv` adds a reading copy. Default: jsonl.",
        },
        "to_index": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_INDEX,
            "description": "The last entry. Default: the last one that is sealed when the order comes in.",
        },
        "filters": {**_FILTERS, "description": "As the list of entries takes them. Default: everything."},
        "with_names": {"type": "boolean", "description": "With people's printed names beside. Default: true."},
        "consistent_with": {
            "type": "array",
            "maxItems": MAX_HELD,
            "items": {"type": "integer", "minimum": 1, "maximum": MAX_INDEX},
            "description": "Sizes of checkpoints that you hold; a filtered export then carries the proofs that it continues them.",
        },
    },
}


class NotReady(entries.ExportNotReady):
    """Not whole yet, with the header that says when to ask again."""

    wait = RETRY_SECONDS


class ExportSerializer(serializers.Serializer[Any]):
    """One export. `done` and `total` count entries read, over all passes; the file is there when `status` is `done`."""

    uid = serializers.UUIDField()
    status = Words(ExportStatus)
    format = Words(ExportFormat)
    filters = serializers.SerializerMethodField()
    to_index = serializers.IntegerField()
    checkpoint_size = serializers.IntegerField(source="checkpoint.size")
    with_names = serializers.BooleanField()
    consistent_with = serializers.ListField(child=serializers.IntegerField())
    requested_by = serializers.CharField()
    requested_at = Instant()
    ended_at = Instant(allow_null=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    entries = serializers.IntegerField(allow_null=True, help_text="How many entries the file holds.")
    file_bytes = serializers.IntegerField(allow_null=True)
    file_digest = serializers.SerializerMethodField()
    failure = serializers.CharField(help_text="Why it failed, or empty.")
    content_url = serializers.SerializerMethodField()

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_filters(self, job: AuditExport) -> Any:
        return job.filters

    @extend_schema_field(Digest(allow_null=True))
    def get_file_digest(self, job: AuditExport) -> str | None:
        return job.file_digest or None

    @extend_schema_field({"type": "string", "format": "uri", "nullable": True, "description": "Null until there is a file here."})
    def get_content_url(self, job: AuditExport) -> str | None:
        if job.status != ExportStatus.DONE or not entries.is_kept_here(job):
            return None
        return str(reverse("api-v1:ledger-export-content", kwargs={"uid": job.uid}, request=self.context.get("request")))


class ExportList(TrailView, ListView):
    """Exports, newest first; and the way to order one."""

    # An order changes nothing but the list of orders: whoever may read the trail may take it away.
    scopes = {"GET": Scope.READ, "POST": Scope.READ}
    find = staticmethod(entries.find_exports)
    filters = (
        word("status", ExportStatus, "Only exports that stand so."),
        word("format", ExportFormat, "Only exports of this format."),
    )
    serializer_class = ExportSerializer
    parser_classes = (ExactJSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        "409": "The Idempotency-Key was used with another body.",
        "411": "The body came without its length.",
        "413": f"The body is larger than {MAX_ORDER_BYTES} bytes.",
        "415": "The body is not application/json.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    @extend_schema(
        request={"application/json": ORDER},
        responses={202: ExportSerializer},
        description=(
            "Order an export: a zip that `writegate verify` checks offline. It covers the entries from index 0 to `to_index`; the same "
            "range is the same bytes, as long as no name is erased in between. Ask the address in `Location` how far it is."
        ),
    )
    def post(self, request: Request) -> Response:
        job = accept_order(
            actor=actor_of(request),
            body=body_of(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        if job.status == ExportStatus.QUEUED:
            # On a retry too: the message may be what got lost. A broker that is down is logged, and a later retry sends anew.
            def send() -> None:
                advance_audit_export.delay(str(job.uid))

            transaction.on_commit(send, robust=True)
        location = reverse("api-v1:ledger-export", kwargs={"uid": job.uid}, request=request)
        headers = {"Location": location, "Retry-After": str(RETRY_SECONDS)}
        return Response(self.get_serializer(job).data, status=status.HTTP_202_ACCEPTED, headers=headers)


class ExportDetail(TrailView, DetailView):
    """One export, and how far it is."""

    find = staticmethod(entries.get_export)
    path_parameters = (UID,)
    serializer_class = ExportSerializer


class ExportContent(TrailView):
    """The file of one export, as an attachment."""

    path_parameters = (UID,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {
            "404": "There is no such export, or its file is not kept here.",
            "409": "The file is not whole yet, or the export failed.",
        }

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, uid: uuid.UUID) -> StreamingHttpResponse:
        job: AuditExport = existing(entries.get_export, uid=uid)
        try:
            parts = entries.read_export(job)
        except entries.ExportNotReady as refusal:
            raise (refusal if job.status == ExportStatus.FAILED else NotReady(refusal.detail)) from None
        return StreamingHttpResponse(
            parts,
            content_type="application/zip",
            headers={
                "Content-Length": str(job.file_bytes),
                "Content-Disposition": f'attachment; filename="audit-{job.to_index}-{job.uid}.zip"',
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
                "ETag": f'"{job.file_digest}"',
            },
        )
