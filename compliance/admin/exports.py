"""Exports of the trail: a list with progress, a form that asks for one, and the file to take away.

Asking is a view of its own: the service opens its own transaction, which the admin's change view would already hold.
"""

import logging
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.http import content_disposition_header
from kombu.exceptions import OperationalError

from compliance.admin.rights import TrailAdmin, actor_of
from compliance.admin.trail import SearchForm
from compliance.models import AuditExport
from compliance.selectors.ledger import EntryFilter
from compliance.selectors.trail import actors_called
from compliance.services.exports import start_export
from compliance.tasks import advance_audit_export
from compliance.vocabulary import ExportFormat, ExportStatus
from evaluations.kernel.clock import now
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Custom,
    Fields,
    Mark,
    Record,
    Texts,
    chip,
    instant,
    number,
    said,
    size,
    whole_digest,
    words,
    yes_no,
)
from evaluations.kernel.errors import DomainError, InputRefused

logger = logging.getLogger("writegate.exports")
UNMOVED_SECONDS = 60
OPEN = (ExportStatus.QUEUED, ExportStatus.RUNNING)
MARKS = {
    ExportStatus.QUEUED: Mark("queued", "missing", "hourglass_top"),
    ExportStatus.RUNNING: Mark("running", "stale", "progress_activity"),
    ExportStatus.DONE: Mark("done", "pass", "check_circle"),
    ExportStatus.FAILED: Mark("failed", "fail", "cancel"),
}
FILTER_WORDS = {"actor": "actor", "action": "action", "target": "target", "since": "from", "until": "until before"}
"""The service's word for a filter → ours."""


class ExportForm(SearchForm):
    """What to export: the trail's search, a format and an end."""

    q = None  # type: ignore[assignment]  # Django's way to take an inherited field out
    format = forms.ChoiceField(label="Format", choices=ExportFormat.choices, initial=ExportFormat.JSONL)
    to_index = forms.IntegerField(
        label="Up to index", required=False, min_value=0, help_text="The last entry; empty for the last one sealed now"
    )
    with_names = forms.BooleanField(
        label="With people's printed names",
        required=False,
        help_text="Without them, the file holds their commitments alone",
    )
    consistent_with = forms.CharField(
        label="Prove it for checkpoints that somebody holds",
        required=False,
        max_length=200,
        help_text="Their sizes, by commas: the file then proves that they are beginnings of this log",
    )
    field_order = (
        "format",
        "to_index",
        "actor",
        "action",
        "target_kind",
        "target_id",
        "since",
        "until",
        "consistent_with",
        "with_names",
    )

    def clean_actor(self) -> str:
        """Return the one actor that is meant, as `kind:id`."""
        text = str(self.cleaned_data["actor"])
        if not text or ":" in text:
            return text
        # A system job is written with its kind, so that a mistyped name is not taken for one.
        found = [one for one in actors_called(text) if not one.startswith("system_job:")]
        if len(found) != 1:
            many = "several actors have" if found else "nobody has"
            raise forms.ValidationError(f"{many} this in the name: write kind:id, such as system_job:seal")
        return found[0]

    def clean_consistent_with(self) -> list[int]:
        parts = [part.strip() for part in str(self.cleaned_data["consistent_with"]).split(",") if part.strip()]
        if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            raise forms.ValidationError("write whole numbers, separated by commas")
        return [int(part) for part in parts]

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if found.get("target_id") and not found.get("target_kind"):
            self.add_error("target_kind", "name the kind of the target too")
        return found

    def order(self) -> dict[str, Any]:
        """Return the arguments of `start_export`. The form is valid."""
        asked = self.cleaned_data
        target = asked["target_kind"] + (f":{asked['target_id']}" if asked["target_id"] else "")
        return {
            "format": asked["format"],
            "wanted": EntryFilter(asked["actor"], asked["action"], target, asked["since"], asked["until"]),
            "to_index": asked["to_index"],
            "with_names": asked["with_names"],
            "consistent_with": asked["consistent_with"],
        }

    def add_problems(self, refused: InputRefused) -> None:
        """Show what the service refuses beside the fields it is about."""
        for problem in refused.problems:
            name = "target_kind" if problem.field == "target" else problem.field
            said_so = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
            self.add_error(name if name in self.fields else None, said_so)


@admin.register(AuditExport)
class AuditExportAdmin(TrailAdmin):
    about = "Files of the trail to take away: each can be verified offline, without this server and without trust in it."
    empty_sentence = "Nobody has asked for an export yet."
    change_list_template = "writegate/export_list.html"
    list_display = ("asked", "progress", "up_to", "format", "filters_shown", "by")
    list_filter = ("status", "format")
    list_select_related = ("checkpoint",)
    search_fields = ("^uid", "requested_by")
    ordering = ("-id",)

    def prepare_rows(self, rows: Any) -> None:
        for row in rows:
            row.shown_actor = ActorReference(row.requested_by)
        self.name_actors([row.shown_actor for row in rows])

    @admin.display(description="asked for", ordering="id")
    def asked(self, row: AuditExport) -> Cell:
        return instant(row.requested_at)

    @admin.display(description="progress", ordering="status")
    def progress(self, row: AuditExport) -> Cell:
        return render_to_string("writegate/progress.html", progress_of(row))

    @admin.display(description="up to index", ordering="to_index")
    def up_to(self, row: AuditExport) -> str:
        return f"{row.to_index:,}"

    @admin.display(description="filters")
    def filters_shown(self, row: AuditExport) -> Cell:
        return _filters(row)

    @admin.display(description="asked for by", ordering="requested_by")
    def by(self, row: Any) -> Cell:
        return row.shown_actor.__html__()

    def get_urls(self) -> list[URLPattern]:
        return [
            self.trail_path("request/", self.request_view, "request"),
            self.trail_path("<int:pk>/progress/", self.progress_view, "progress"),
            self.trail_path("<int:pk>/wake/", self.wake_view, "wake"),
            self.trail_path("<int:pk>/download/", self.download_view, "download"),
            *super().get_urls(),
        ]

    # --- asking ---------------------------------------------------------------------------------------------------------------

    def request_view(self, request: HttpRequest) -> HttpResponseBase:
        """Show the form; on POST call the service, wake the worker, and lead to the export's page."""
        if request.method == "POST":
            form = ExportForm(request.POST)
            job = self._start(request, form) if form.is_valid() else None
            if job is not None:
                _wake(request, job)
                return redirect("admin:compliance_auditexport_change", job.pk)
            return self._form_page(request, form, status=422)
        # A search that led here fills the form; nothing is asked for yet, so nothing is complained about.
        given = request.GET.dict()
        form = ExportForm({"format": ExportFormat.JSONL, "with_names": "on", **given})
        form.is_valid()
        if not given:
            form.errors.clear()
        return self._form_page(request, form)

    def _start(self, request: HttpRequest, form: ExportForm) -> AuditExport | None:
        try:
            return start_export(actor=actor_of(request), **form.order())
        except InputRefused as refused:
            form.add_problems(refused)
        except DomainError as refused:
            form.add_error(None, refused.detail)
        return None

    def _form_page(self, request: HttpRequest, form: ExportForm, *, status: int = 200) -> HttpResponse:
        return self.page(request, "writegate/export_request.html", "Ask for an export", status=status, form=form)

    def wake_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Ask the worker once more for an export that does not move: the message may be lost. Safe at any time."""
        job = self._found(pk)
        if request.method == "POST" and job.status in OPEN:
            _wake(request, job)
        return redirect("admin:compliance_auditexport_change", job.pk)

    # --- watching and taking away ---------------------------------------------------------------------------------------------

    def progress_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer with the progress alone; once it has ended, have the whole page shown anew."""
        job = self._found(pk)
        response = TemplateResponse(request, "writegate/progress.html", progress_of(job))
        if job.status not in OPEN:
            response["HX-Refresh"] = "true"
        return response

    def download_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Answer with the export's file; where it is not (or no longer) ours to give, say why."""
        job = self._found(pk)
        path, why = file_of(job)
        if path is None:
            back = reverse("admin:compliance_auditexport_change", args=[job.pk])
            return self.page(request, "writegate/damaged.html", "No file", status=404, back=back, why=why)
        # Closed by the answer, once it is sent.
        response = FileResponse(path.open("rb"), content_type="application/zip")
        response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=file_name(job)) or "attachment"
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response

    def _found(self, pk: int) -> AuditExport:
        job = AuditExport.objects.filter(pk=pk).first()
        if job is None:
            raise Http404(f"no export `{pk}`")
        return job

    def describe(self, row: AuditExport, request: HttpRequest) -> Record:
        path, why = file_of(row)
        address = reverse("admin:compliance_auditexport_download", args=[row.pk])
        part = "A part of the trail" if row.filters else "The trail"
        entries = f"{row.checkpoint.size:,} {'entry' if row.checkpoint.size == 1 else 'entries'}"
        progress = [] if row.status == ExportStatus.DONE else [_progress_section(row)]
        return Record(
            lead=f"{part} from its first entry to index {row.to_index:,}, under the checkpoint of {entries}.",
            mark=chip(MARKS[ExportStatus(row.status)]),
            target=("audit_export", str(row.uid)),
            downloads=[("Download the export", address)] if path else [],
            sections=[
                *progress,
                Fields(
                    "File",
                    [
                        ("Where", said("at hand: download it above" if path else why)),
                        ("Entries", number(row.entries, empty="not counted yet")),
                        ("Size", size(row.file_bytes) if row.file_bytes is not None else "not written yet"),
                        ("Digest", whole_digest(row.file_digest) if row.file_digest else "not written yet"),
                        ("Ended", instant(row.ended_at, empty="not yet")),
                    ],
                ),
                Fields(
                    "What was asked for",
                    [
                        ("Format", row.get_format_display()),
                        ("Up to index", f"{row.to_index:,}"),
                        ("Filters", _filters(row)),
                        ("With people's names", yes_no(row.with_names)),
                        ("Proved for checkpoints of", words(row.consistent_with)),
                        ("Asked for by", ActorReference(row.requested_by)),
                        ("Asked for", instant(row.requested_at)),
                        ("Identifier", str(row.uid)),
                    ],
                ),
                Texts(
                    "Check it elsewhere",
                    [("Offline", f"writegate verify {file_name(row)} --key 'KEY' --against CHECKPOINT")],
                    note="KEY is the log's public key and CHECKPOINT an earlier checkpoint, both from where you keep them.",
                ),
            ],
        )


def file_name(job: AuditExport) -> str:
    """Return the name under which an export is taken away."""
    return f"writegate-trail-{job.to_index}{'-part' if job.filters else ''}.zip"


def file_of(job: AuditExport) -> tuple[Path | None, str]:
    """Return an export's file where the console may give it, else the reason why not.

    Only files in the export directory are given: whoever wrote one elsewhere, by the command, has it there.
    """
    if job.status == ExportStatus.FAILED:
        return None, f"there is none: {job.failure}"
    if job.status != ExportStatus.DONE:
        return None, "it is still being written"
    path = Path(job.path)
    try:
        real = path.resolve(strict=True)
        inside = real.is_relative_to(Path(settings.AUDIT_EXPORT_DIR).resolve())
        whole = real.is_file() and real.stat().st_size == job.file_bytes
    except OSError:
        return None, "it is no longer where it was written: ask for it again"
    if not inside:
        return None, "it was written outside the export directory, by the command: fetch it where it was put"
    return (real, "") if whole else (None, "what lies there now is not the file that was written: ask for it again")


def progress_of(job: AuditExport) -> dict[str, Any]:
    """Return the context of the progress template."""
    share = 100 if job.status == ExportStatus.DONE else min(99, 100 * job.done // job.total) if job.total else 0
    return {
        "pk": job.pk,
        "chip": chip(MARKS[ExportStatus(job.status)]),
        "percent": share,
        "done": job.done,
        "total": job.total,
        "moving": job.status in OPEN,
        "failed": job.status == ExportStatus.FAILED,
        "failure": job.failure,
        "address": reverse("admin:compliance_auditexport_progress", args=[job.pk]),
    }


def _progress_section(job: AuditExport) -> Custom:
    return Custom("Progress", "writegate/sections/progress.html", {**progress_of(job), "stuck": _is_stuck(job)})


def _is_stuck(job: AuditExport) -> bool:
    return job.status == ExportStatus.QUEUED and (now() - job.requested_at).total_seconds() > UNMOVED_SECONDS


def _filters(job: AuditExport) -> Cell:
    shown = (f"{FILTER_WORDS.get(word, word)} {value}" for word, value in job.filters.items())
    return words(shown, empty="none: every entry")


def _wake(request: HttpRequest, job: AuditExport) -> None:
    try:
        advance_audit_export.delay(str(job.uid))
    except OperationalError:
        logger.exception("the worker could not be told of the export %s", job.uid)
        messages.warning(
            request, "The export is recorded, but the worker could not be told. Once the queue answers, ask the worker again."
        )
