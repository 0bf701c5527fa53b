"""Evidence files of any known format, taken as streams and read by the worker."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import instant
from compliance.api.fields import Digest, Instant, Words
from compliance.api.parameters import Parameter, digest, key, text, word
from compliance.api.parsers import StreamedFile, stream_of
from compliance.api.permissions import ReadsOrHandedIn
from compliance.api.schema import FindingSerializer
from compliance.api.sighted import act_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import DetailView, ListView, text_in_path
from compliance.models import Upload
from compliance.selectors.uploads import find_uploads, get_upload
from compliance.services.uploads import OPEN, PASSES, Told, receive_upload
from compliance.tasks import read_upload
from compliance.vocabulary import Scope, UploadStatus
from evaluations.importers.registry import names

UID = text_in_path("uid", "The upload's id.", format="uuid")
RETRY_SECONDS = 2
TOLD = (
    text("file_name", "The file's name: some formats are known by it.", limit=200),
    text("format", f"One of {', '.join(names())}. Default: recognised from the file.", limit=60),
    key("source", "Who vouches for it, where the file does not say."),
    text("subject", "The model's name as written, where the format has none."),
    instant("published_at", "When it was published, where the file carries no date."),
)


class HeldSerializer(serializers.Serializer[Any]):
    """Observations that are recorded and count for nobody, until somebody says whom the name means."""

    name = serializers.CharField()
    observations = serializers.IntegerField()


class UploadSerializer(serializers.Serializer[Any]):
    """One file handed in. It is taken whole or not at all: where `refused` lists anything, nothing was recorded."""

    uid = serializers.UUIDField()
    status = Words(UploadStatus)
    percent = serializers.SerializerMethodField(help_text="How far it is read.")
    file_name = serializers.CharField()
    file_digest = Digest()
    file_bytes = serializers.IntegerField()
    format = serializers.SerializerMethodField(help_text="The one that was named, or recognised; empty until then.")
    submitted_by = serializers.CharField()
    received_at = Instant()
    ended_at = Instant(allow_null=True)
    document = serializers.SerializerMethodField()
    evidence = serializers.IntegerField(help_text="Pieces of evidence recorded.")
    taken = serializers.IntegerField(help_text="Observations recorded.")
    repeated = serializers.IntegerField(help_text="Pieces of evidence that had been recorded before, from the same bytes.")
    held = serializers.SerializerMethodField()
    refused = FindingSerializer(many=True)
    failure = serializers.CharField(help_text="Why nothing was taken, or empty.")

    def get_percent(self, row: Upload) -> int:
        return percent_of(row)

    def get_format(self, row: Upload) -> str:
        return row.importer or row.format_name

    @extend_schema_field(Digest(allow_null=True))
    def get_document(self, row: Upload) -> str | None:
        return row.document.digest if row.document is not None else None

    @extend_schema_field(HeldSerializer(many=True))
    def get_held(self, row: Upload) -> list[dict[str, Any]]:
        return [{"name": name, "observations": count} for name, count in row.held.items()]


class UploadList(ListView):
    """Files handed in, newest first; and the way to hand one in."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT_EVIDENCE}
    find = staticmethod(find_uploads)
    filters = (
        word("status", UploadStatus, "Only those that stand so."),
        digest("digest", "Only of the file with this digest."),
    )
    serializer_class = UploadSerializer
    parser_classes = (StreamedFile,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        "409": "The Idempotency-Key was used with another file.",
        "411": "The body came without its length.",
        "413": "The file is larger than is taken: 512 MiB, or 2 GiB of a zip archive, unless the service says less.",
        "415": "The body is not application/octet-stream.",
    }

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return super().parameters_of(method) if method == "GET" else TOLD

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    @extend_schema(
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={202: UploadSerializer},
        description=(
            "Hand in one evidence file of any format that is read; its very bytes are kept as the document. It is written to disk as "
            "it comes, and read by the worker: ask the address in `Location` what became of its rows, taken, held for want of a known "
            "name, or refused with reason and place. With an Idempotency-Key the same file again gets the same upload."
        ),
    )
    def post(self, request: Request) -> Response:
        stream, length = stream_of(request)
        asked = self.asked
        told = Told(
            file_name=asked.get("file_name", ""),
            format_name=asked.get("format", ""),
            source=asked.get("source", ""),
            subject=asked.get("subject", ""),
            published_at=asked.get("published_at"),
        )
        upload = receive_upload(stream=stream, length=length, told=told, **act_of(request))
        if upload.status == UploadStatus.QUEUED:
            # On a retry too: the message may be what got lost. A broker that is down is logged, and the next sweep sends anew.
            def send() -> None:
                read_upload.delay(str(upload.uid))

            transaction.on_commit(send, robust=True)
        headers = {"Location": reverse("api-v1:upload", kwargs={"uid": upload.uid}, request=request)}
        if upload.status in OPEN:
            headers["Retry-After"] = str(RETRY_SECONDS)
        return Response(self.get_serializer(upload).data, status=status.HTTP_202_ACCEPTED, headers=headers)


class UploadDetail(DetailView):
    """One upload, and how far it is. The token that handed it in may ask, too."""

    permission_classes = (ReadsOrHandedIn,)
    find = staticmethod(get_upload)
    path_parameters = (UID,)
    serializer_class = UploadSerializer


def percent_of(row: Upload) -> int:
    """Return how far an upload is read, in percent; 100 only where it has ended."""
    return min(99, 100 * row.bytes_read // (PASSES * row.file_bytes)) if row.status in OPEN else 100
