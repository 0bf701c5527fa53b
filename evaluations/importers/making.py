"""From counts to pairs: one evidence a run set, each observation checked against the registry.

What the importers of foreign formats share. An importer says metric, benchmark, version, slice and unit itself; none is
ever guessed from a number.
"""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers.base import (
    OVERALL,
    EvidenceDraft,
    MetricDefinition,
    ObservationDraft,
    Pair,
    Problems,
    Registry,
)
from evaluations.importers.drafts import source_of, target_of
from evaluations.importers.fields import Faults, Raw, is_clean_line
from evaluations.importers.jsontext import path_text
from evaluations.importers.outcomes import Attempt, Counts, tally
from evaluations.importers.worth import rate_from_counts
from evaluations.kernel.names import foreign

MAX_NOTE = 2000
MAX_HARNESS = 200


class On(NamedTuple):
    """What a number was measured on."""

    benchmark: str
    version: str
    slice: str = OVERALL


class Maker:
    """Makes the pairs of one import. What it finds wrong goes to `problems`; `pairs` is good only where there are none."""

    def __init__(self, problems: Problems, *, registry: Registry, source: str | None, subject: str | None = None) -> None:
        self.problems = problems
        self.registry = registry
        self.pairs: list[Pair] = []
        self._known: dict[tuple[str, str, str, str], MetricDefinition | None] = {}
        faults: Faults = []
        self.source = source_of({}, registry=registry, source=source, faults=faults)
        self.report(faults)
        if subject is not None and (not is_clean_line(subject) or foreign(subject)):
            why = foreign(subject) or "it is not one clean line"
            problems.add(f"the subject given holds {why}", field="subject", code="look_alike", hint="write it in ASCII")

    def report(self, faults: Faults, *, file: str | None = None, place: Iterable[str | int] = (), row: int | None = None) -> None:
        """Add faults of fields to the problems, with their place."""
        for fault in faults:
            field = path_text((*place, fault.field))
            self.problems.add(fault.message, file=file, row=row, field=field, code=fault.code, hint=fault.hint)
        faults.clear()

    def metric(self, metric: str, on: On, *, unit: str = "percent", file: str | None = None) -> MetricDefinition | None:
        """Return the metric's definition where metric, benchmark, version and unit are registered, else add why not, once."""
        key = metric, on.benchmark, on.version, unit
        if key not in self._known:
            raw: Raw = {"metric": metric, "benchmark": on.benchmark, "version": on.version, "unit": unit}
            faults: Faults = []
            target = target_of(raw, registry=self.registry, faults=faults)
            self.report(faults, file=file)
            self._known[key] = target.definition if target is not None else None
        return self._known[key]

    def attempts(
        self,
        evidence: EvidenceDraft,
        found: Iterable[Attempt],
        *,
        metric: str,
        hits: frozenset[str],
        on: On,
        judge: dict[str, Any] | None = None,
        file: str | None = None,
        said: str = "",
    ) -> None:
        """Add the rate of attempts with an outcome in `hits`, where there are attempts."""
        definition = self.metric(metric, on, file=file)
        if definition is None:
            return
        counts = tally(found, hits=hits, better=definition.better)
        if counts is not None:
            self.rate(evidence, counts, definition, on=on, judge=judge, said=said)

    def rate(
        self,
        evidence: EvidenceDraft,
        counts: Counts,
        definition: MetricDefinition,
        *,
        on: On,
        judge: dict[str, Any] | None = None,
        said: str = "",
    ) -> None:
        """Add a rate. `said` is the headline that the file prints beside its rows, kept as the value as written."""
        missing = counts.errored + counts.unscored
        over = f" x {counts.repeats}" if counts.repeats > 1 else ""
        written = said or f"{counts.hits} of {counts.n}{over}" + (f", {missing} missing" if missing else "")
        observation = ObservationDraft(
            metric=definition.key,
            benchmark=on.benchmark,
            benchmark_version=on.version,
            slice=on.slice,
            value=rate_from_counts(counts.k, counts.n, better=definition.better, missing=missing),
            value_as_written=written[:60],
            k=counts.k,
            n=counts.n,
            repeats=counts.repeats if counts.repeats > 1 else None,
            errored=counts.errored,
            unscored=counts.unscored,
            judge=judge,
            locator=f"{evidence.locator} {definition.key}"[:300].strip(),
        )
        self.pairs.append((evidence, observation))

    def value(
        self,
        evidence: EvidenceDraft,
        value: Decimal,
        written: str,
        definition: MetricDefinition,
        *,
        on: On,
        n: int | None = None,
        repeats: int | None = None,
        missing: tuple[int | None, int | None] = (None, None),
        judge: dict[str, Any] | None = None,
        locator: str = "",
    ) -> None:
        """Add a value that stands without a count of hits. `missing` is how many of n errored, and how many are unscored."""
        observation = ObservationDraft(
            metric=definition.key,
            benchmark=on.benchmark,
            benchmark_version=on.version,
            slice=on.slice,
            value=value,
            value_as_written=written[:60],
            k=None,
            n=n,
            repeats=repeats,
            errored=missing[0],
            unscored=missing[1],
            judge=judge,
            locator=(locator or f"{evidence.locator} {definition.key}")[:300].strip(),
        )
        self.pairs.append((evidence, observation))

    def evidence(
        self,
        subject: str,
        *,
        provenance: str,
        run_status: str,
        harness: str = "",
        run_ended_at: datetime | None = None,
        published_at: datetime | None = None,
        answered: Iterable[str] = (),
        about: str = "model",
        locator: str = "",
        notes: Iterable[str] = (),
    ) -> EvidenceDraft:
        """Return the draft of one evidence; its notes become one text."""
        return EvidenceDraft(
            subject_as_written=subject,
            source=self.source,
            provenance=provenance,
            run_status=run_status,
            harness=harness[:MAX_HARNESS],
            run_ended_at=run_ended_at,
            published_at=published_at,
            answered_as_written=tuple(sorted(set(answered))),
            about=about,
            locator=locator[:300],
            note="; ".join(note for note in notes if note)[:MAX_NOTE],
            supersedes="",
        )


def against(value: Decimal, better: str) -> Decimal:
    """Return a number rounded against the subject to six decimals."""
    whole, rest = divmod(value.scaleb(6), 1)
    if rest and better == "lower":
        whole += 1
    return whole.scaleb(-6)
