"""Sources with the trust in them, and the captured documents."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import BinaryField, F, Func, OuterRef, QuerySet, Subquery, Value
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import content_disposition_header

from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Mark,
    Record,
    Table,
    Texts,
    chip,
    digest,
    instant,
    link,
    list_link,
    outside,
    said,
    size,
    whole_digest,
)
from evaluations.models import Document, DocumentPart, Evidence, Source, TrustAssignment
from evaluations.vocabulary import TrustTier

SHOWN = 50
PREVIEW_BYTES = 4_000


def tier_chip(tier: str | None) -> Cell:
    """Render a trust tier; a source without one qualifies for nothing."""
    return chip(Mark(TrustTier(tier).label)) if tier in TrustTier.values else "none: qualifies for nothing"


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin):
    about = "Who vouches for evidence, and how far they are trusted now."
    empty_sentence = (
        "No source is registered yet. An evidence steward proposes one, with how far it is trusted; another one signs."
    )
    list_display = ("key", "title", "publisher", "trust", "registered")
    search_fields = ("key", "title", "publisher")
    ordering = ("key",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        newest = TrustAssignment.objects.filter(source=OuterRef("pk")).order_by("-id").values("tier")[:1]
        queryset: QuerySet[Any] = super().get_queryset(request).annotate(tier=Subquery(newest))
        return queryset

    @admin.display(description="trust now", ordering="tier")
    def trust(self, row: Any) -> Cell:
        return tier_chip(row.tier)

    @admin.display(description="registered", ordering="registered_at")
    def registered(self, row: Source) -> Cell:
        return instant(row.registered_at)

    def describe(self, row: Any, request: HttpRequest) -> Record:
        return Record(
            lead=row.title,
            mark=tier_chip(row.tier),
            target=("source", row.key),
            sections=[
                Fields(
                    "Source",
                    [
                        ("Key", row.key),
                        ("Title", row.title),
                        ("Publisher", said(row.publisher)),
                        ("Trust now", tier_chip(row.tier)),
                        ("Address", outside(row.url)),
                        ("Notes", said(row.notes, empty="none")),
                        ("Registered", instant(row.registered_at)),
                        ("Evidence", list_link(Evidence, "Evidence of this source", source__id__exact=row.pk)),
                    ],
                ),
                Table(
                    "Trust over time, newest first",
                    ("Tier", "Reason", "Assigned by", "Recorded"),
                    [
                        [tier_chip(item.tier), item.reason, ActorReference(item.assigned_by), instant(item.recorded_at)]
                        for item in row.trust_assignments.order_by("-id")[:SHOWN]
                    ],
                    empty="Nobody has assigned trust: evidence of this source qualifies for nothing.",
                ),
            ],
        )


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    about = "The captured bytes that evidence was read from, kept exactly as received, by digest."
    list_display = ("file_name", "title", "shown_size", "media_type", "fingerprint", "received")
    search_fields = ("file_name", "title", "^digest")
    ordering = ("-id",)

    @admin.display(description="size", ordering="size")
    def shown_size(self, row: Document) -> str:
        return size(row.size)

    @admin.display(description="digest")
    def fingerprint(self, row: Document) -> Cell:
        return digest(row.digest)

    @admin.display(description="received", ordering="received_at")
    def received(self, row: Document) -> Cell:
        return instant(row.received_at)

    def get_urls(self) -> list[URLPattern]:
        download = path(
            "<int:pk>/download/", self.admin_site.admin_view(self.download_view), name="evaluations_document_download"
        )
        return [download, *super().get_urls()]

    def download_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Answer with the document's bytes, part by part, as a file to keep and never as a page to show."""
        document = Document.objects.filter(pk=pk).first()
        if document is None or not self.has_view_permission(request, document):
            raise Http404(f"no document `{pk}`")
        response = StreamingHttpResponse(_parts(document.pk), content_type="application/octet-stream")
        response["Content-Length"] = str(document.size)
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Security-Policy"] = "default-src 'none'; sandbox"
        # Quoted by Django, so that nothing in a file's name can end the header's value.
        response["Content-Disposition"] = (
            content_disposition_header(as_attachment=True, filename=document.file_name) or "attachment"
        )
        return response

    def describe(self, row: Document, request: HttpRequest) -> Record:
        evidence = row.evidence.select_related("source").order_by("-id")[: SHOWN + 1]
        shown = list(evidence)
        address = reverse("admin:evaluations_document_download", args=[row.pk])
        preview, cut = _preview(row)
        return Record(
            lead=row.title or f"The file {row.file_name}, exactly as it was received.",
            target=("document", row.digest),
            downloads=[("Download the document", address)],
            sections=[
                Fields(
                    "Document",
                    [
                        ("File name", row.file_name),
                        ("Title", said(row.title)),
                        ("Digest", whole_digest(row.digest)),
                        ("Size", size(row.size)),
                        ("Media type", row.media_type),
                        ("Address", outside(row.url)),
                        ("Licence", said(row.licence)),
                        ("Received", instant(row.received_at)),
                        ("By", ActorReference(row.received_by)),
                    ],
                ),
                Table(
                    "Evidence read from it",
                    ("Subject as written", "Source", "Place in the document", "Recorded"),
                    [
                        [link(item, item.subject_as_written), link(item.source), said(item.locator), instant(item.recorded_at)]
                        for item in shown[:SHOWN]
                    ],
                    empty="Nothing was read from this document by itself.",
                    more=list_link(Evidence, "All evidence read from it", document__id__exact=row.pk)
                    if len(shown) > SHOWN
                    else "",
                ),
                Texts(
                    "How it begins",
                    [(f"The first {PREVIEW_BYTES} bytes" if cut else "The whole document", preview)],
                    note="Shown as text; download it for the exact bytes.",
                ),
            ],
        )


def _parts(document_id: int) -> Iterator[bytes]:
    """Yield a document's parts, one query each, so that one part at a time stands in memory."""
    parts = DocumentPart.objects.filter(document_id=document_id).order_by("ordinal")
    ordinal = -1
    while True:
        part = parts.filter(ordinal__gt=ordinal).values_list("ordinal", "content").first()
        if part is None:
            return
        ordinal = part[0]
        yield bytes(part[1])


def _preview(document: Document) -> tuple[str, bool]:
    """Return the beginning of a document as text, and whether there is more. Only that much leaves the database."""
    first = (
        DocumentPart.objects.filter(document=document, ordinal=0)
        .annotate(head=Func(F("content"), Value(1), Value(PREVIEW_BYTES), function="substr", output_field=BinaryField()))
        .values_list("head", flat=True)
        .first()
    )
    text = bytes(first or b"").decode("utf-8", "replace").replace("\x00", "�")
    return text or "(empty)", document.size > PREVIEW_BYTES
