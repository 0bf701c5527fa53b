"""What was measured about a subject, one row for each metric, benchmark version and slice, against the bars of the policies."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from evaluations.admin.benchmarks import EXPOSURE_WORDS
from evaluations.admin.evidence import ruling_chip
from evaluations.admin.sources import tier_chip
from evaluations.admin.subjects import SubjectAdmin
from evaluations.kernel.clock import now
from evaluations.kernel.display import Cell, Custom, Section, link, number, said
from evaluations.models import Evidence, Metric, Ruling, Subject
from evaluations.selectors.evidence import SeenObservation
from evaluations.selectors.measures import MeasureGroup, measures_of
from evaluations.selectors.registry import current_metrics, exposures
from evaluations.selectors.subjects import newest_version
from evaluations.vocabulary import Better, Unit
from policies.admin.marks import domain_words, reason_words, result_chip
from policies.admin.reading import CONFIDENCE, shown_interval
from policies.language.results import Result
from policies.language.statistics import interval_of
from policies.models import Verdict
from policies.selectors.rates import ClauseStand, clause_stands

TITLE = "What was measured"
TEMPLATE = "writegate/sections/measures.html"
PAGE = "measures"
ROWS_A_PAGE = 25
MOST_BARS = 4


@SubjectAdmin.add_section
def what_was_measured(row: Subject, request: HttpRequest) -> Section:
    version = newest_version(row)
    if version is None:
        return Custom(TITLE, TEMPLATE, {"rows": (), "start": 0})
    asked = request.GET.get(PAGE, "1")
    page = int(asked) if asked.isascii() and asked.isdigit() and 0 < len(asked) < 6 else 1
    start = max(page - 1, 0) * ROWS_A_PAGE
    at = now()
    groups = measures_of(version.pk, known_at=at, start=start, most=ROWS_A_PAGE + 1)
    shown = groups[:ROWS_A_PAGE]
    reader = _Reader(shown, clause_stands(version) if shown else (), at)
    return Custom(
        TITLE,
        TEMPLATE,
        {
            "rows": [reader.row(group) for group in shown],
            "start": start + 1 if start else 0,
            "next": f"?{PAGE}={page + 1}" if len(groups) > ROWS_A_PAGE else "",
            "version": version.number,
        },
    )


class _Reader:
    """What the rows of one page are read against: looked up once for all of them."""

    def __init__(self, groups: Sequence[MeasureGroup], stands: Sequence[ClauseStand], at: datetime) -> None:
        uids = {item.evidence for group in groups for item in group.newest}
        found = Evidence.objects.filter(uid__in=uids).select_related("document", "source")
        self._evidence = {str(item.uid): item for item in found}
        ruled = {item.evidence for group in groups for item in group.newest if item.ruling}
        rulings = Ruling.objects.filter(evidence__uid__in=ruled).order_by("id").values_list("evidence__uid", "reason")
        self._reasons: Mapping[str, str] = {str(uid): reason for uid, reason in rulings}
        self._metrics, self._exposures = current_metrics(), exposures()
        self._stands = stands
        self._at = at

    def row(self, group: MeasureGroup) -> dict[str, Any]:
        first = group.newest[0]
        metric = self._metrics[first.metric]
        stands = [item for item in self._stands if item.is_about(first.metric, first.benchmark, first.version, first.slice)]
        contested = any(item.result == Result.CONTESTED for item in stands)
        return {
            "metric": link(metric, metric.title or metric.key),
            "test": f"{first.benchmark} {first.version}",
            "slice": domain_words(first.slice),
            "exposure": EXPOSURE_WORDS[self._exposures[first.benchmark, first.version]],
            "first": self._side(first, metric),
            "drawing": _drawing(first, metric, stands),
            "bars": [self._bar(item, metric) for item in stands[:MOST_BARS]],
            "more_bars": max(len(stands) - MOST_BARS, 0),
            "sides": [self._side(item, metric) for item in group.newest] if group.total > 1 or group.disputed else (),
            "total": group.total,
            "sources": group.sources,
            "open": contested or group.disputed > 0,
        }

    def _bar(self, stand: ClauseStand, metric: Metric) -> dict[str, Cell]:
        return {
            "chip": link(Verdict(pk=stand.verdict_id), result_chip(stand.result)),
            "words": f"{'at least' if stand.clause.higher else 'at most'} {number(stand.bar, metric.unit)}"
            f" by {stand.version.policy.name}"
            + ("" if stand.result in {Result.PASS, Result.FAIL} else f": {reason_words(stand.reason)}"),
        }

    def _side(self, item: SeenObservation, metric: Metric) -> dict[str, Cell]:
        evidence = self._evidence[item.evidence]
        return {
            "value": _words(item, metric),
            "source": link(evidence.source),
            "trust": tier_chip(item.trust or None),
            "age": self._age(item),
            "document": link(evidence.document, evidence.document.file_name),
            "evidence": link(evidence, item.subject_as_written),
            "ruling": ruling_chip(item.ruling) if item.ruling else "",
            "reason": self._reasons.get(item.evidence, "the same numbers of the same run were ruled on") if item.ruling else "",
            "run": "" if item.run_status == "complete" else f"the run is {item.run_status}: it counts for nothing",
            "identity": reason_words(item.identity_problem) if item.identity_problem else "",
        }

    def _age(self, item: SeenObservation) -> str:
        if item.ended_at is None:
            return "no date stated"
        days = (self._at - item.ended_at).days
        return f"{days} day{'' if days == 1 else 's'} since the {'run' if item.run_ended else 'publication'}"


def _ends(item: SeenObservation, metric: Metric) -> tuple[Decimal, Decimal] | None:
    if metric.unit != Unit.PERCENT:
        return None
    lost = (item.errored or 0) + (item.unscored or 0)
    return interval_of(item.value, item.k, item.n, lost, higher=metric.better == Better.HIGHER, confidence=CONFIDENCE)


def _words(item: SeenObservation, metric: Metric) -> str:
    """Spell a measurement with unit, interval, n and repeats, every digit of it: what is shown explains the verdict."""
    parts = [
        number(item.value, metric.unit),
        shown_interval(_ends(item, metric)),
        f"n {said(item.n)}" if item.n else "n not stated",
    ]
    if item.repeats is not None and item.repeats > 1:
        parts.append(f"{item.repeats} repeats")
    return " · ".join(part for part in parts if part)


def _drawing(item: SeenObservation, metric: Metric, stands: Sequence[ClauseStand]) -> dict[str, Any] | None:
    """Return where a rate, its interval and the bars stand from 0 to 100; None for what is no rate."""
    if metric.unit != Unit.PERCENT or not item.value.is_finite():
        return None
    low, high = _ends(item, metric) or (item.value, item.value)
    higher = metric.better == Better.HIGHER
    bars = sorted({stand.bar for stand in stands})
    strictest = (bars[-1] if higher else bars[0]) if bars else None
    spoken = f"; bars: {', '.join(number(bar, metric.unit) for bar in bars)}" if bars else ""
    return {
        "at": item.value,
        "low": low,
        "width": high - low,
        "bars": bars,
        "good_from": None if strictest is None else strictest if higher else Decimal(0),
        "good_width": None if strictest is None else 100 - strictest if higher else strictest,
        "words": f"{_words(item, metric)}{spoken}",
    }
