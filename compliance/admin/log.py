"""The pages of the log as a whole: its checkpoint to keep elsewhere, a check by the server itself, and rows beside entries."""

from typing import Any

from django.db import OperationalError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.http import content_disposition_header
from psycopg.errors import QueryCanceled

from compliance.admin.head import shown_head
from compliance.admin.rights import TrailAdmin
from compliance.ledger.note import encode_hash
from compliance.ledger.recheck import SECONDS, recheck
from compliance.models import Checkpoint, LedgerEntry
from compliance.selectors.ledger import signing_keys
from compliance.selectors.population import EXEMPT, SEALING, TIES, PopulationLine, population_report
from evaluations.kernel.display import Cell, Mark, Table, anchor, chip, instant, list_link, ticked, whole_digest

SHOWN_CHECKPOINTS = 10
REPORT_SECONDS = 20
AGREES = Mark("agrees", "pass", "check_circle")
DIFFERS = Mark("does not agree", "error", "error")
NOT_CHECKED = Mark("not checked", "stale", "schedule")


def addresses(page: TrailAdmin) -> list[URLPattern]:
    """Return the addresses of these pages, below the list of entries."""
    view = page.admin_site.admin_view

    # Checkpoint and key say nothing about anybody, and prove the more the more people keep them: every member of staff sees them.
    def checkpoint(request: HttpRequest) -> HttpResponse:
        return _checkpoint_page(page, request)

    def note(request: HttpRequest, size: int) -> HttpResponse:
        return attachment(_stored(size).note.encode(), f"checkpoint-{size}.txt", kind="text/plain; charset=utf-8")

    return [
        path("checkpoint/", view(checkpoint), name="compliance_ledgerentry_checkpoint"),
        path("checkpoint/<int:size>/", view(note), name="compliance_ledgerentry_note"),
        page.trail_path("verify/", lambda request: _verify_page(page, request), "verify"),
        page.trail_path("population/", lambda request: _population_page(page, request), "population"),
    ]


def attachment(content: bytes, name: str, *, kind: str = "application/octet-stream") -> HttpResponse:
    """Answer with bytes as a file to keep, never as a page to show."""
    response = HttpResponse(content, content_type=kind)
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def _stored(size: int) -> Checkpoint:
    found = Checkpoint.objects.filter(size=size).first() if size < 2**63 else None
    if found is None:
        raise Http404(f"no checkpoint of {size} entries")
    return found


def _checkpoint_page(page: TrailAdmin, request: HttpRequest) -> HttpResponse:
    newest = list(Checkpoint.objects.order_by("-size")[:SHOWN_CHECKPOINTS])
    asked = request.GET.get("size", "")
    shown = newest[0] if newest else None
    if asked:
        shown = _stored(int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 20 else 2**63)
    keys = signing_keys(up_to_size=shown.size) if shown else []
    others = Table(
        "The newest checkpoints",
        ("Entries", "Tree head", "Signed"),
        [
            [
                anchor(f"?size={one.size}", f"{one.size:,}"),
                whole_digest(encode_hash(bytes(one.root))),
                instant(one.signed_at),
            ]
            for one in newest
        ],
        empty="Nothing is sealed yet.",
    )
    return page.page(
        request,
        "writegate/checkpoint.html",
        "Checkpoint",
        checkpoint=shown,
        is_newest=bool(newest) and shown == newest[0],
        root=encode_hash(bytes(shown.root)) if shown else "",
        signed=instant(shown.signed_at) if shown else "",
        head=shown_head(),
        keys=list(reversed(keys)),
        public=request.build_absolute_uri("/ledger/checkpoint"),
        others=others,
        order=reverse("admin:compliance_auditexport_request"),
    )


# --- the server's own check -------------------------------------------------------------------------------------------------


def _verify_page(page: TrailAdmin, request: HttpRequest) -> HttpResponse:
    """Offer the check; on POST do it and show what was checked. It writes nothing."""
    context: dict[str, Any] = {"seconds": int(SECONDS), "order": reverse("admin:compliance_auditexport_request")}
    if request.method == "POST":
        context |= _rechecked()
    return page.page(request, "writegate/verify.html", "Verify the log", **context)


def _rechecked() -> dict[str, Any]:
    done = recheck()
    if done is None:
        return {"nothing": True}
    root, computed = encode_hash(done.signed_root), encode_hash(done.computed_root)
    entries = f"{done.read:,} of {done.size:,} entries, each hashed anew from its stored bytes and found in the tree"
    if not done.is_whole:
        entries += "; the time was up, so the others were not read. Another run reads others"
    bad_entries = [finding for finding in done.findings if finding.index is not None or finding.part.startswith("tile ")]
    checks = Table(
        "What was checked",
        ("Check", "Against", "Result"),
        [
            [
                "Signature of the last checkpoint",
                whole_digest(done.signed_by) if done.signed_by else "no known key has signed it",
                chip(AGREES if done.signed_by else DIFFERS),
            ],
            [
                f"Tree head, recomputed from {_tiles(done.tiles)}",
                format_html_join(
                    " ", "{}", ((part,) for part in ("signed", whole_digest(root), "computed", whole_digest(computed)))
                ),
                chip(AGREES if done.head_agrees else DIFFERS),
            ],
            [
                "Entries against the tree",
                entries,
                chip(DIFFERS if bad_entries else AGREES if done.is_whole else AGREES._replace(word="agrees so far")),
            ],
        ],
        empty="",
    )
    return {
        "checkpoint": done.checkpoint,
        "checks": checks,
        "findings": [str(finding) for finding in done.findings],
        "took": f"{done.seconds:.1f}" if done.seconds >= 0.1 else "less than 0.1",
    }


def _tiles(count: int) -> str:
    if count == 0:
        return "its leaves"
    return f"{count:,} full {'tile' if count == 1 else 'tiles'} and the leaves behind"


# --- rows beside entries ----------------------------------------------------------------------------------------------------


def _population_page(page: TrailAdmin, request: HttpRequest) -> HttpResponse:
    try:
        # Whole tables are read: the page gives up before its reader does.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{REPORT_SECONDS}s"])
            lines = population_report()
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        return page.page(request, "writegate/population.html", "Rows and entries", status=503, late=True, seconds=REPORT_SECONDS)
    lines.sort(key=lambda line: (line.differing == 0, line.table == SEALING, line.table))
    differing = [line for line in lines if line.differing]
    report = Table(
        "Table by table",
        ("Table", "Rows", "Told of by entries", "Result", "Which"),
        [
            [
                line.table,
                f"{line.rows:,}",
                f"{line.events:,}",
                chip(DIFFERS._replace(word=f"{line.differing:,} differ") if line.differing else AGREES),
                _examples(line),
            ]
            for line in lines
        ],
        empty="No table is governed.",
    )
    exempt = Table(
        "Tables without entries of their own",
        ("Table", "Why"),
        [[table, ticked(why)] for table, why in sorted(EXEMPT.items())],
        empty="None.",
    )
    return page.page(
        request, "writegate/population.html", "Rows and entries", report=report, exempt=exempt, differing=len(differing)
    )


def _examples(line: PopulationLine) -> Cell:
    """Name what differs, each with the way to its entries."""
    if not line.examples:
        return "none"
    kind = TIES[line.table].kind if line.table in TIES else ""
    links = [
        list_link(LedgerEntry, one, target_kind=kind, target_id=one) if kind else list_link(LedgerEntry, one, q=one)
        for one in line.examples
    ]
    more = line.differing - len(line.examples)
    shown = format_html_join(", ", "{}", ((one,) for one in links))
    return format_html_join("", "{}", ((shown,), (f" and {more:,} more" if more > 0 else "",)))
