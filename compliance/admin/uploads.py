"""Evidence in: a form that takes a file, its progress, and what became of its rows: taken, held for want of a known name, refused.

Handing in is a view of its own: the service opens its own transactions.
"""

import logging
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from kombu.exceptions import OperationalError

from compliance.admin.rights import actor_of
from compliance.models import Upload
from compliance.selectors.access import holds_any_role
from compliance.services.naming import STEWARDS
from compliance.services.uploads import OPEN, PASSES, Told, receive_upload
from compliance.tasks import read_upload
from compliance.vocabulary import UploadStatus
from evaluations.importers.registry import names
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Section,
    Table,
    anchor,
    chip,
    instant,
    link,
    list_link,
    said,
    size,
    whole_digest,
)
from evaluations.kernel.errors import DomainError, InputRefused
from evaluations.models import Evidence, Source
from evaluations.selectors.names import held_in

logger = logging.getLogger("writegate.uploads")
UNMOVED_SECONDS = 60
MARKS = {
    UploadStatus.QUEUED: Mark("queued", "missing", "hourglass_top"),
    UploadStatus.RUNNING: Mark("reading", "stale", "progress_activity"),
    UploadStatus.DONE: Mark("taken", "pass", "check_circle"),
    UploadStatus.REFUSED: Mark("refused", "fail", "block"),
    UploadStatus.FAILED: Mark("failed", "fail", "cancel"),
}


class UploadForm(forms.Form):
    """A file, and what it does not say itself."""

    file = forms.FileField(label="File", max_length=400, help_text="At most 2 GiB; it is taken whole or not at all")
    format = forms.ChoiceField(label="Format", required=False, help_text="Recognised from the file unless you say so")
    source = forms.ModelChoiceField(
        label="Source",
        queryset=Source.objects.order_by("key"),
        to_field_name="key",
        required=False,
        empty_label="as the file says",
        help_text="Who vouches for it",
    )
    subject = forms.CharField(
        label="Model's name as written", required=False, max_length=300, help_text="Only where the format has none"
    )
    published_at = forms.DateTimeField(
        label="Published", required=False, help_text="In UTC, as 2026-11-01 12:00; only where the file carries no date"
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["format"]
        field.choices = [("", "recognise it"), *((name, name) for name in names())]

    def told(self) -> Told:
        """Return what is said beside the bytes. The form is valid."""
        given = self.cleaned_data
        source = given["source"]
        return Told(given["file"].name, given["format"], source.key if source else "", given["subject"], given["published_at"])


@admin.register(Upload)
class UploadAdmin(ReadOnlyAdmin):
    about = "Files handed in, and what became of their rows: taken, held for want of a known name, or the whole file refused."
    empty_sentence = "Nobody has handed in a file yet."
    change_list_template = "writegate/upload_list.html"
    list_display = ("file_name", "stands", "took", "holds", "by", "received")
    list_filter = ("status",)
    list_select_related = ("document",)
    search_fields = ("file_name", "^uid", "^file_digest")
    ordering = ("-id",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("hand-in/", view(self.hand_in_view), name="compliance_upload_hand_in"),
            path("<int:pk>/progress/", view(self.progress_view), name="compliance_upload_progress"),
            *super().get_urls(),
        ]

    def prepare_rows(self, rows: Sequence[Any]) -> None:
        for row in rows:
            row.shown_actor = ActorReference(row.submitted_by)
        self.name_actors([row.shown_actor for row in rows])

    @admin.display(description="stands", ordering="status")
    def stands(self, row: Upload) -> Cell:
        return chip(MARKS[UploadStatus(row.status)])

    @admin.display(description="observations taken", ordering="taken")
    def took(self, row: Upload) -> str:
        return f"{row.taken:,}"

    @admin.display(description="held when read")
    def holds(self, row: Upload) -> str:
        return f"{sum(row.held.values()):,}" if row.held else "none"

    @admin.display(description="handed in by")
    def by(self, row: Any) -> Cell:
        return row.shown_actor.__html__()

    @admin.display(description="received", ordering="received_at")
    def received(self, row: Upload) -> Cell:
        return instant(row.received_at)

    def hand_in_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the form; on POST take the file, wake the worker, and show how far it is."""
        if not _is_steward(request):
            why = "This needs the role evidence steward or administrator, now. An administrator gives roles."
            return self._page(request, "writegate/refused.html", "Another role is needed", status=403, why=why, back=_list())
        form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
        if request.method == "POST" and form.is_valid():
            upload = self._receive(request, form)
            if upload is not None:
                return redirect("admin:compliance_upload_change", upload.pk)
        return self._page(request, "writegate/upload.html", "Hand in evidence", status=422 if form.errors else 200, form=form)

    def _receive(self, request: HttpRequest, form: UploadForm) -> Upload | None:
        file = form.cleaned_data["file"]
        try:
            upload = receive_upload(actor=actor_of(request), stream=file.file, length=file.size, told=form.told())
        except InputRefused as refused:
            for problem in refused.problems:
                form.add_error(problem.field if problem.field in form.fields else None, str(problem._replace(field="")))
            return None
        except DomainError as refused:
            form.add_error("file", refused.detail)
            return None
        try:
            read_upload.delay(str(upload.uid))
        except OperationalError:
            logger.exception("the worker could not be told of the upload %s", upload.uid)
            messages.warning(
                request, "The file is received, but the worker could not be told. It looks for itself every few minutes."
            )
        return upload

    def progress_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer with the progress alone; once it has ended, have the whole page shown anew."""
        row = Upload.objects.filter(pk=pk).first()
        if row is None:
            raise Http404(f"no upload `{pk}`")
        response = TemplateResponse(request, "writegate/progress.html", _progress(row))
        if row.status not in OPEN:
            response["HX-Refresh"] = "true"
        return response

    def describe(self, row: Upload, request: HttpRequest) -> Record:
        return Record(
            lead=f"{row.file_name}, {size(row.file_bytes)}",
            mark=chip(MARKS[UploadStatus(row.status)]),
            target=("upload", str(row.uid)),
            sections=[
                *_outcome(row),
                Fields(
                    "File",
                    [
                        (
                            "Format",
                            said(
                                row.importer or row.format_name,
                                empty="not recognised yet" if row.status in OPEN else "not recognised",
                            ),
                        ),
                        ("Source told", said(row.source, empty="as the file says")),
                        ("Digest", whole_digest(row.file_digest)),
                        ("Document", link(row.document, empty="none is kept")),
                        ("Handed in by", ActorReference(row.submitted_by)),
                        ("Received", instant(row.received_at)),
                        ("Ended", instant(row.ended_at, empty="not yet")),
                        ("Identifier", str(row.uid)),
                    ],
                ),
            ],
        )

    def _page(self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, template, whole, status=status)


def _outcome(row: Upload) -> Sequence[Section]:
    """Return the sections that say how far an upload is, or what became of its rows."""
    if row.status in OPEN:
        stuck = row.status == UploadStatus.QUEUED and (now() - row.received_at).total_seconds() > UNMOVED_SECONDS
        return [Custom("Progress", "writegate/sections/upload_progress.html", {**_progress(row), "stuck": stuck})]
    if row.status == UploadStatus.FAILED:
        return [Fields("What happened", [("Nothing was taken", row.failure)])]
    if row.status == UploadStatus.REFUSED:
        return [_refused(row)]
    taken = Fields(
        "Taken",
        [
            ("Observations", f"{row.taken:,}"),
            ("Pieces of evidence", f"{row.evidence:,}"),
            ("Recorded before, from the same bytes", f"{row.repeated:,}"),
            ("They stand", list_link(Evidence, "in the list of evidence", document__id__exact=row.document_id or 0)),
        ],
    )
    return [taken, _held(row)]


def _held(row: Upload) -> Table:
    held = held_in([row.document_id]) if row.document_id else []
    rows: list[list[Cell]] = [
        [
            anchor(f"{reverse('admin:evaluations_aliasassignment_name')}?{urlencode({'name': item.name})}", item.name),
            item.source,
            f"{item.observations:,}",
            "it was said to mean nobody" if item.withdrawn else "nobody has said whom it means",
        ]
        for item in held
    ]
    return Table(
        "Held now: recorded, and counting for nobody",
        ("Name as written", "Source", "Observations", "Because"),
        rows,
        empty="Every name in it means a subject version.",
        note="Open a name to say whom it means." if rows else "",
    )


def _refused(row: Upload) -> Table:
    rows: list[list[Cell]] = [[_place(item), item["message"], said(item["hint"], empty="")] for item in row.refused]
    return Table(
        "Refused: nothing of it was taken",
        ("Where", "What is wrong", "What to write"),
        rows,
        empty="It was refused without a reason.",
        note="Correct these and hand the file in again.",
    )


def _place(item: dict[str, Any]) -> str:
    parts = [f"{word} {item[word]}" for word in ("line", "row", "column") if item.get(word) is not None]
    return ", ".join([*parts, *([item["field"]] if item.get("field") else [])]) or "the file"


def _progress(row: Upload) -> dict[str, Any]:
    """Return the context of the progress template."""
    done = 100 * row.bytes_read // (PASSES * row.file_bytes)
    return {
        "pk": row.pk,
        "chip": chip(MARKS[UploadStatus(row.status)]),
        "percent": min(99, done) if row.status in OPEN else 100,
        "moving": row.status in OPEN,
        "address": reverse("admin:compliance_upload_progress", args=[row.pk]),
    }


def _is_steward(request: HttpRequest) -> bool:
    person_id: Any = getattr(request.user, "person_id", None)
    return person_id is not None and holds_any_role(person_id=person_id, roles=STEWARDS, at=now())


def _list() -> str:
    return reverse("admin:compliance_upload_changelist")
