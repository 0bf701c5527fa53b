"""Drift: what fell under standing grants, from what to what, how likely that is noise, what it stopped, and what would restore it."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from compliance.admin.sighted import name_people, sight
from compliance.models import DriftNotice, Grant, GrantEvent
from compliance.selectors.drift import DriftRow, drift_row, recent_drift
from compliance.vocabulary import DRIFT_CAUSES, GrantMove
from evaluations.kernel.clock import now
from evaluations.kernel.display import ActorReference, Custom, Mark, chip, instant, link, ticked
from evaluations.kernel.numbers import plain
from evaluations.vocabulary import Unit
from policies.language.changes import RuleChange, with_unit
from policies.language.statistics import interval_of

DAYS = 30
SHOWN = 50
CONFIDENCE = Decimal("0.95")
"""One-sided, each way: what intervals on pages are drawn at."""
_TENTH = Decimal("0.1")
MARKS = {True: Mark("suspended", "stale", "pause_circle"), False: Mark("told of", "neutral", "campaign")}


class DriftPages:
    """The page of drift, for the admin of grants."""

    own_path: Callable[..., URLPattern]
    page: Callable[..., HttpResponse]

    def drift_urls(self) -> list[URLPattern]:
        return [self.own_path("drift/", self.drift_view, "drift")]

    def drift_view(self, request: HttpRequest) -> HttpResponse:
        """Show what drift did in the last days to the grants that the signed-in person sees, newest first."""
        found = recent_drift(sight(request), since=now() - timedelta(days=DAYS), limit=SHOWN + 1)
        rows = [shown_drift(row) for row in found[:SHOWN]]
        name_people(row["actor"] for row in rows)
        section = Custom("Drift", "writegate/sections/drift_rows.html", {"rows": rows, "alone": False})
        return self.page(
            request, "writegate/drift.html", "Drift", section=section, days=DAYS, more=len(found) > SHOWN, shown=SHOWN
        )


def timeline(request: HttpRequest, *, limit: int = 12) -> dict[str, Any]:
    """Return the drift of the last days for the home page: a mark for each on a line of days, and the newest in words."""
    end = now()
    since = end - timedelta(days=DAYS)
    found = recent_drift(sight(request), since=since, limit=SHOWN)
    span = timedelta(days=DAYS) / 100
    marks = [
        {
            "x": f"{min((row.at - since) / span, 99.5):.2f}",
            "suspended": row.suspended,
            "words": f"{row.grant.subject_version}: {row.because}",
        }
        for row in found
    ]
    rows = [
        {
            "at": instant(row.at),
            "chip": chip(MARKS[row.suspended]),
            "grant": link(row.grant, str(row.grant.subject_version)),
            "because": row.because,
        }
        for row in found[:limit]
    ]
    return {"marks": marks, "rows": rows, "days": DAYS, "count": len(found), "cut": len(found) >= SHOWN}


def drift_section(grant: Grant) -> Custom | None:
    """Return what drift did to one grant, newest first, for its page; None where nothing did."""
    events = GrantEvent.objects.filter(grant=grant, move=GrantMove.SUSPENDED, cause__in=DRIFT_CAUSES)
    notices = DriftNotice.objects.filter(grant=grant)
    found: list[GrantEvent | DriftNotice] = [*events.order_by("-number")[:SHOWN], *notices.order_by("-id")[:SHOWN]]
    if not found:
        return None
    rows = [shown_drift(drift_row(item)) for item in sorted(found, key=lambda item: item.at, reverse=True)[:10]]
    name_people(row["actor"] for row in rows)
    return Custom("What drifted under it", "writegate/sections/drift_rows.html", {"rows": rows, "alone": True})


def shown_drift(row: DriftRow) -> dict[str, Any]:
    """Return one thing that drift did as its template shows it."""
    return {
        "grant": link(row.grant, str(row.grant.subject_version)),
        "chip": chip(MARKS[row.suspended]),
        "because": row.because,
        "at": instant(row.at),
        "actor": ActorReference(row.actor),
        "lines": [ticked(line) for line in row.lines],
        "drawings": list(_drawings(row.changes)),
        "restoring": [ticked(f"{line}.") for line in row.restoring],
        "suspended": row.suspended,
    }


def _drawings(changes: Iterable[RuleChange]) -> Iterable[dict[str, Any]]:
    for change in changes:
        if change.unit != Unit.PERCENT or change.after_value is None:
            continue
        sides = [
            _side("before", change, change.before_value, change.before_rate, change.before_k, change.before_n),
            _side("now", change, change.after_value, change.after_rate, change.after_k, change.after_n),
        ]
        bar = with_unit(plain(change.bar), change.unit)
        yield {
            "rule": change.rule,
            "bar": change.bar,
            "bar_words": f"{'at least' if change.floor else 'at most'} {bar}",
            "good_from": change.bar if change.floor else Decimal(0),
            "good_width": 100 - change.bar if change.floor else change.bar,
            "sides": [side for side in sides if side is not None],
        }


def _side(
    name: str, change: RuleChange, value: Decimal | None, rate: Decimal | None, k: Decimal | None, n: int | None
) -> dict[str, Any] | None:
    """Return where a measurement and its interval stand from 0 to 100, and in words; None where nothing was measured."""
    shown = value if rate is None else rate
    if shown is None:
        return None
    words = [f"{name}: {with_unit(plain(shown), change.unit)}"]
    drawn = {"name": name, "at": shown, "low": shown, "width": Decimal(0)}
    ends = _interval(shown, k, n, higher=change.floor)
    if ends is not None:
        low, high = ends
        drawn |= {"low": low, "width": high - low}
        words.append(f"{low}–{high}")
    words.append("n not stated" if n is None else f"n {n}")
    return {**drawn, "words": " · ".join(words)}


def _interval(rate: Decimal, k: Decimal | None, n: int | None, *, higher: bool) -> tuple[Decimal, Decimal] | None:
    ends = interval_of(rate, k, n, 0, higher=higher, confidence=CONFIDENCE) if 0 <= rate <= 100 else None
    return None if ends is None else (ends[0].quantize(_TENTH, ROUND_FLOOR), ends[1].quantize(_TENTH, ROUND_CEILING))
