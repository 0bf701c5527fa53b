"""Refresh runs: what each brought in, and why it ended so; and how they and the schedule stand on a source's page."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin

from evaluations.admin.sources import SourceAdmin
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.display import (
    ActorReference,
    Cell,
    Fields,
    Mark,
    Record,
    Section,
    Table,
    chip,
    code,
    instant,
    link,
    list_link,
    said,
    shortened,
    size,
    yes_no,
)
from evaluations.models import Document, RefreshRun, Source, SourceSchedule
from evaluations.selectors.refreshing import schedule_of
from evaluations.vocabulary import RefreshOutcome

SHOWN = 10
SHOWN_PROBLEMS = 50
MARKS = {
    RefreshOutcome.QUEUED: Mark("queued", "missing", "hourglass_top"),
    RefreshOutcome.RUNNING: Mark("running", "stale", "progress_activity"),
    RefreshOutcome.TAKEN: Mark("taken", "pass", "check_circle"),
    RefreshOutcome.UNCHANGED: Mark("unchanged", "pass", "drag_handle"),
    RefreshOutcome.DEFERRED: Mark("deferred", "stale", "schedule"),
    RefreshOutcome.FAILED: Mark("failed", "fail", "cancel"),
    RefreshOutcome.INTERRUPTED: Mark("interrupted", "fail", "power_off"),
}


def outcome_chip(run: RefreshRun) -> Cell:
    return chip(MARKS[RefreshOutcome(run.outcome)])


def cause_of(run: RefreshRun) -> str:
    """Say why a run ended as it did, "" while it is open."""
    return run.get_cause_display() if run.cause else "not yet known"


def rows_of(run: RefreshRun) -> str:
    """Say what became of a run's rows."""
    return f"{run.taken:,} taken, {run.held:,} held, {run.refused:,} refused"


def health_chip(schedule: SourceSchedule) -> Cell:
    """Say in a word how refreshing goes."""
    if schedule.paused_at is not None:
        return chip(Mark("paused", "missing", "pause_circle"))
    if schedule.alarmed_at is not None:
        return chip(Mark("dead", "fail", "heart_broken"))
    if schedule.failed_runs:
        return chip(Mark("failing", "stale", "warning"))
    return chip(
        Mark("well", "pass", "check_circle") if schedule.succeeded_at else Mark("not asked yet", "missing", "hourglass_top")
    )


@admin.register(RefreshRun)
class RefreshRunAdmin(ReadOnlyAdmin):
    about = "Each attempt to bring a source up to date: what came, what became of its rows, and why it ended so."
    empty_sentence = "No source has been refreshed yet. A source's page says from where it is."
    list_display = ("begun", "source_shown", "standing", "cause_shown", "rows_shown", "received")
    list_filter = ("outcome", "cause")
    list_select_related = ("source",)
    search_fields = ("^source__key", "^uid")
    ordering = ("-id",)

    @admin.display(description="asked for", ordering="id")
    def begun(self, row: RefreshRun) -> Cell:
        return instant(row.asked_at)

    @admin.display(description="source", ordering="source__key")
    def source_shown(self, row: RefreshRun) -> Cell:
        return link(row.source)

    @admin.display(description="outcome", ordering="outcome")
    def standing(self, row: RefreshRun) -> Cell:
        return outcome_chip(row)

    @admin.display(description="cause", ordering="cause")
    def cause_shown(self, row: RefreshRun) -> str:
        return cause_of(row)

    @admin.display(description="observations")
    def rows_shown(self, row: RefreshRun) -> str:
        return rows_of(row)

    @admin.display(description="received", ordering="bytes_received")
    def received(self, row: RefreshRun) -> str:
        return size(row.bytes_received)

    def describe(self, row: RefreshRun, request: Any) -> Record:
        documents: Any = Document.objects.filter(digest__in=row.documents).order_by("id")
        return Record(
            lead=f"{row.source.title}: {cause_of(row)}." if row.cause else f"{row.source.title} is being refreshed.",
            mark=outcome_chip(row),
            target=("refresh_run", str(row.uid)),
            sections=[
                Fields(
                    "Run",
                    [
                        ("Source", link(row.source)),
                        ("Cause", cause_of(row)),
                        ("In its own words", said(row.detail, empty="nothing more is said")),
                        ("Last status of the host", said(row.http_status, empty="none: nothing was answered")),
                        ("Requests", str(row.requests)),
                        ("Received", size(row.bytes_received)),
                        ("Entity tag", code(row.etag) if row.etag else "none"),
                        ("Last modified", said(row.last_modified, empty="not said")),
                        ("Fetched anew though unchanged", yes_no(row.forced)),
                        ("Asked for by", ActorReference(row.asked_by)),
                        ("Asked for", instant(row.asked_at)),
                        ("Started", instant(row.started_at, empty="not yet")),
                        ("Ended", instant(row.ended_at, empty="not yet")),
                    ],
                ),
                Fields(
                    "Rows",
                    [
                        ("Observations taken", f"{row.taken:,}"),
                        ("Held until their names are assigned", f"{row.held:,}"),
                        ("Problems for which files were refused", f"{row.refused:,}"),
                        ("Pieces of evidence, new", f"{row.evidence:,}"),
                        ("Pieces of evidence, recorded before", f"{row.repeated:,}"),
                    ],
                ),
                Table(
                    "Refused, with place and reason",
                    ("File", "Place", "What is wrong"),
                    [_problem(problem) for problem in row.problems[:SHOWN_PROBLEMS]],
                    empty="Nothing was refused.",
                ),
                Table(
                    "Documents",
                    ("File", "Size"),
                    [[link(each, each.file_name), size(each.size)] for each in documents],
                    empty="No document was read.",
                ),
            ],
        )


@SourceAdmin.add_section
def schedule_section(row: Source, request: Any) -> Section:
    """From where the source is refreshed, and how that goes."""
    schedule = schedule_of(row.pk)
    if schedule is None:
        return Fields("Schedule", [("Refreshed", "no: its evidence is handed in")])
    return Fields(
        "Schedule",
        [
            ("State", health_chip(schedule)),
            ("Fetched by", schedule.get_connector_display()),
            ("From", code(schedule.address) if schedule.address else "the address that is usual for it"),
            ("Format", said(schedule.format, empty="recognised from the files")),
            ("Profile", said(schedule.profile, empty="none")),
            ("Subject", said(schedule.subject, empty="as the files say")),
            ("Key", code(schedule.key_name) if schedule.key_name else "none"),
            ("Every", every(schedule.interval_minutes)),
            ("Due", instant(schedule.due_at) if schedule.paused_at is None else "not by itself: it is paused"),
            ("Last confirmed", instant(schedule.succeeded_at, empty="not yet")),
            ("Failed since", f"{schedule.failed_runs} runs in a row" if schedule.failed_runs else "no run"),
            ("Stewards alarmed", instant(schedule.alarmed_at, empty="no")),
            ("Vouched for by", ActorReference(schedule.set_by)),
            ("Stated", instant(schedule.set_at)),
        ],
    )


@SourceAdmin.add_section
def runs_section(row: Source, request: Any) -> Section:
    """The last runs of a source."""
    runs: Sequence[RefreshRun] = list(row.refresh_runs.order_by("-id")[: SHOWN + 1])
    return Table(
        "Refresh runs, newest first",
        ("Outcome", "Cause", "Observations", "Asked for", "Ended"),
        [
            [
                link(run, outcome_chip(run)),
                _cause_cell(run),
                rows_of(run),
                instant(run.asked_at),
                instant(run.ended_at, empty="not yet"),
            ]
            for run in runs[:SHOWN]
        ],
        empty="The source has not been refreshed yet.",
        more=list_link(RefreshRun, "All runs of this source", q=row.key) if len(runs) > SHOWN else "",
    )


def every(minutes: int) -> str:
    """Say an interval in the largest unit that leaves nothing over."""
    for unit, length in (("day", 24 * 60), ("hour", 60)):
        if minutes % length == 0:
            count = minutes // length
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def _cause_cell(run: RefreshRun) -> Cell:
    return shortened(f"{cause_of(run)}: {run.detail}" if run.detail else cause_of(run), most=90)


def _problem(problem: dict[str, Any]) -> list[Cell]:
    place = ", ".join(f"{name} {problem[name]}" for name in ("line", "column", "row", "field") if name in problem)
    hint = f"; {problem['hint']}" if problem.get("hint") else ""
    return [said(problem.get("file")), said(place), f"{problem['message']}{hint}"]
