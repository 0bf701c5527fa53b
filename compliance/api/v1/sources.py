"""Sources with the trust in them, and documents."""

from collections.abc import Sequence
from typing import Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from compliance.api.fields import Digest, Instant, Link, Words
from compliance.api.parameters import text, word
from compliance.api.views import ApiView, DetailView, ListView, existing, key_in_path, text_in_path
from compliance.selectors import registry
from evaluations.models import Document, Source
from evaluations.vocabulary import TrustTier

DIGEST = text_in_path("digest", "The document's digest.", pattern="^sha256:[0-9a-f]{64}$")
# Whatever the bytes claim to be, a browser that meets them saves them, runs nothing, and loads nothing on their behalf.
_SEALED = "default-src 'none'; frame-ancestors 'none'; sandbox"


class TrustSerializer(serializers.Serializer[Any]):
    """How far a source is trusted, since when, and by whose word."""

    tier = Words(TrustTier)
    reason = serializers.CharField()
    assigned_by = serializers.CharField()
    sign_off_request = serializers.UUIDField(
        allow_null=True, help_text="The request whose signatures carry it; null for what comes with the product."
    )
    recorded_at = Instant()


class SourceSerializer(serializers.Serializer[Any]):
    """Who vouches for evidence. A source without trust qualifies for nothing."""

    key = serializers.CharField()
    title = serializers.CharField()
    publisher = serializers.CharField()
    url = serializers.CharField()
    notes = serializers.CharField()
    registered_at = Instant()
    trust = serializers.SerializerMethodField()

    @extend_schema_field(TrustSerializer(allow_null=True))
    def get_trust(self, source: Source) -> dict[str, Any] | None:
        newest: Sequence[Any] = source.newest_trust  # type: ignore[attr-defined]  # put there by the selector
        return dict(TrustSerializer(newest[0]).data) if newest else None


class DocumentSerializer(serializers.Serializer[Any]):
    """The captured bytes that evidence was read from."""

    digest = Digest()
    size = serializers.IntegerField(help_text="In bytes.")
    media_type = serializers.CharField()
    file_name = serializers.CharField()
    title = serializers.CharField()
    url = serializers.CharField()
    licence = serializers.CharField()
    received_by = serializers.CharField()
    received_at = Instant()
    content_url = Link("api-v1:document-content", {"digest": "digest"})


class SourceList(ListView):
    """Sources, oldest first."""

    find = staticmethod(registry.find_sources)
    filters = (word("tier", TrustTier, "Only sources that are trusted so far now."),)
    serializer_class = SourceSerializer
    oldest_first = True


class SourceDetail(DetailView):
    """One source."""

    find = staticmethod(registry.get_source)
    path_parameters = (key_in_path("key", "The source's key."),)
    serializer_class = SourceSerializer


class DocumentList(ListView):
    """Documents, newest first."""

    find = staticmethod(registry.find_documents)
    filters = (
        text("media_type", "Only documents of this media type."),
        text("file_name", "Only documents first received under this name."),
    )
    serializer_class = DocumentSerializer


class DocumentDetail(DetailView):
    """What is known about one document."""

    find = staticmethod(registry.get_document)
    path_parameters = (DIGEST,)
    serializer_class = DocumentSerializer


class DocumentContent(ApiView):
    """The bytes of one document, exactly as received, as an attachment."""

    path_parameters = (DIGEST,)

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, digest: str) -> StreamingHttpResponse:
        document: Document = existing(registry.get_document, digest=digest)
        return StreamingHttpResponse(
            registry.read_document(document),
            content_type="application/octet-stream",
            headers={
                "Content-Length": str(document.size),
                "Content-Disposition": str(content_disposition_header(True, _plain_name(document))),
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": _SEALED,
                "ETag": f'"{document.digest}"',
            },
        )


def _plain_name(document: Document) -> str:
    """Return the file's name without what a header, or a file system, could take for something else."""
    letters = (letter if letter.isprintable() and letter not in '/\\:*?"<>|' else "_" for letter in document.file_name)
    return "".join(letters).strip(" .") or "document"
