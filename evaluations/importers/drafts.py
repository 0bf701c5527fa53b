"""From the fields of our own format to drafts, with every check that needs the registry.

The three forms (JSON, JSON Lines, CSV) bring the same fields under the same flat names to the functions here; each returns
its part, or None after adding to `faults`.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers.base import (
    ABOUTS,
    DOMAIN_ALIASES,
    DOMAINS,
    OVERALL,
    PROVENANCES,
    RUN_STATUSES,
    EvidenceDraft,
    MetricDefinition,
    Registry,
)
from evaluations.importers.fields import (
    MAX_NOTE_LENGTH,
    MAX_WRITTEN_LENGTH,
    Fault,
    Faults,
    Raw,
    closest,
    count_of,
    decimal_of,
    instant_of,
    is_absent,
    shown,
    text_of,
    uid_of,
    word_of,
)
from evaluations.importers.names import name_of
from evaluations.importers.worth import agrees, rate_from_counts
from evaluations.kernel.numbers import plain

JUDGE_FIELDS = ("models", "rule", "is_subject", "agreement", "agreement_n", "kappa")

_SLICE = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?\Z")
_HUNDRED = Decimal(100)


class Target(NamedTuple):
    """What was measured, on what."""

    definition: MetricDefinition
    benchmark: str
    version: str
    slice: str


class Numbers(NamedTuple):
    """The number and its counts, as in `ObservationDraft`."""

    value: Decimal
    value_as_written: str
    k: Decimal | None
    n: int | None
    repeats: int | None
    errored: int | None
    unscored: int | None


def source_of(raw: Raw, *, registry: Registry, source: str | None, faults: Faults) -> str:
    """Return the source key that the file states, or the one given with the command; both only when they are the same."""
    stated = text_of(raw, "source", faults)
    if stated and source is not None and stated != source:
        faults.append(
            Fault("source", f"the file says {shown(stated)}, the command says {shown(source)}", "leave one of them out")
        )
        return ""
    key = stated or source or ""
    if not key:
        faults.append(Fault("source", "it is missing", "give `source` in the file or with the command", "missing"))
    elif key not in registry.sources:
        hint = f"{closest(key, registry.sources, what='sources')}; a new one is proposed under *Sources* and signed"
        faults.append(Fault("source", f"unknown source {shown(key)}", hint, "unknown_source"))
    return key


def evidence_of(
    raw: Raw, *, answered: Iterable[str], registry: Registry, source: str | None, locator: str, faults: Faults
) -> EvidenceDraft | None:
    """Return the draft of one evidence from its flat fields."""
    before = len(faults)
    draft = EvidenceDraft(
        subject_as_written=name_of(raw, "subject", faults),
        source=source_of(raw, registry=registry, source=source, faults=faults),
        provenance=word_of(raw, "provenance", PROVENANCES, faults),
        run_status=word_of(raw, "run_status", RUN_STATUSES, faults, default="unknown"),
        harness=name_of(raw, "harness", faults, required=False),
        run_ended_at=instant_of(raw, "run_ended_at", faults),
        published_at=instant_of(raw, "published_at", faults),
        answered_as_written=tuple(answered),
        about=word_of(raw, "about", ABOUTS, faults, default="model"),
        locator=locator,
        note=text_of(raw, "note", faults, limit=MAX_NOTE_LENGTH),
        supersedes=uid_of(raw, "supersedes", faults),
    )
    return draft if len(faults) == before else None


def run_identity(draft: EvidenceDraft) -> tuple[object, ...]:
    """Return what, beside subject and end of run, tells runs apart: a document states one value for it, per `Target`."""
    return draft.source, draft.about, draft.harness, draft.published_at


def target_of(raw: Raw, *, registry: Registry, faults: Faults) -> Target | None:
    """Return metric, benchmark, version and slice, all known to the registry, with the metric's unit stated."""
    before = len(faults)
    metric = text_of(raw, "metric", faults, required=True)
    definition = registry.metrics.get(metric)
    if metric and definition is None:
        hint = closest(metric, registry.metrics, what="metrics")
        faults.append(Fault("metric", f"unknown metric {shown(metric)}", hint, "unknown_metric"))
    benchmark = text_of(raw, "benchmark", faults, required=True)
    version = text_of(raw, "version", faults, required=True)
    if benchmark and benchmark not in registry.benchmarks:
        hint = closest(benchmark, registry.benchmarks, what="benchmarks")
        faults.append(Fault("benchmark", f"unknown benchmark {shown(benchmark)}", hint, "unknown_benchmark"))
    elif benchmark and version and version not in registry.benchmarks[benchmark]:
        hint = closest(version, registry.benchmarks[benchmark], what="versions")
        faults.append(Fault("version", f"unknown version {shown(version)} of {benchmark}", hint, "unknown_benchmark_version"))
    carried = registry.carried.get((benchmark, version))
    if carried is not None and definition is not None and metric not in carried:
        hint = f"it carries {', '.join(sorted(carried))}"
        faults.append(Fault("metric", f"{benchmark} {version} does not carry {metric}", hint, "metric_not_carried"))
    unit = text_of(raw, "unit", faults, required=True)
    if unit and definition is not None and unit != definition.unit:
        hint = f"convert the value to {definition.unit} (rates are percent, 0 to 100) and say so"
        faults.append(Fault("unit", f"{shown(unit)} is not the unit of {metric}", hint, "wrong_unit"))
    name = slice_of(raw, faults)
    if len(faults) > before or definition is None:
        return None
    return Target(definition, benchmark, version, name)


def slice_of(raw: Raw, faults: Faults) -> str:
    """Return the slice's key, `overall` where absent."""
    name = text_of(raw, "slice", faults) or OVERALL
    if name in DOMAIN_ALIASES:
        faults.append(Fault("slice", f"{shown(name)} is a short name", f"write `{DOMAIN_ALIASES[name]}`"))
    elif not _SLICE.match(name):
        hint = f"use lower-case letters, digits, . _ -; the domains are {', '.join(DOMAINS)}"
        faults.append(Fault("slice", f"{shown(name)} is no slice key", hint))
    return name


def numbers_of(raw: Raw, definition: MetricDefinition, faults: Faults) -> Numbers | None:
    """Return value and counts, checked against each other and against the metric's range.

    With `k` and `n` the value is the exact rate, and a value written beside them must agree with it to half a unit of its
    last written digit. A rate over tasks of which some errored or have no score is taken with its `k` alone.
    """
    before = len(faults)
    # Most fields are absent in most rows of a large table, so a call is made for present ones only.
    value = decimal_of(raw, "value", faults) if "value" in raw else None
    k = decimal_of(raw, "k", faults) if "k" in raw else None
    n = count_of(raw, "n", faults, minimum=1) if "n" in raw else None
    repeats = count_of(raw, "repeats", faults, minimum=1) if "repeats" in raw else None
    errored = count_of(raw, "errored", faults) if "errored" in raw else None
    unscored = count_of(raw, "unscored", faults) if "unscored" in raw else None
    written = text_of(raw, "as_written", faults, limit=MAX_WRITTEN_LENGTH) if "as_written" in raw else ""
    if len(faults) > before:
        return None
    _check_counts(k, n, repeats, errored, unscored, definition, faults)
    counted = k is not None and n is not None
    if value is not None:
        _check_range(value, definition, faults)
    elif not counted:
        hint = "give `value`, or `k` and `n`" if definition.unit == "percent" else "give `value`"
        faults.append(Fault("value", "it is missing", hint, "missing"))
    if len(faults) > before:
        return None
    spelling = raw.get("value")
    if not written:
        written = str(spelling) if value is not None else f"{plain(k or Decimal(0))}/{n}"
    if k is not None and n is not None:
        missing = (errored or 0) + (unscored or 0)
        rate = rate_from_counts(k, n, better=definition.better, missing=missing)
        if value is not None and not agrees(value, k, n, better=definition.better, missing=missing):
            sum_of = plain(k) if definition.better == "higher" else f"{plain(k)} + {missing} missing"
            faults.append(
                Fault(
                    "value",
                    f"{shown(spelling)} contradicts its counts: {sum_of} of {n} is {plain(rate)}",
                    "correct one of them, or leave `value` out",
                    "contradicts_counts",
                )
            )
            return None
        value = rate
    return None if value is None else Numbers(value, written, k, n, repeats, errored, unscored)


def value_of(written: object, definition: MetricDefinition, faults: Faults) -> Decimal | None:
    """Return a value that stands without `k`: an exact decimal within the metric's range, or None after a fault."""
    before = len(faults)
    value = decimal_of({"value": written}, "value", faults)
    if value is None:
        if len(faults) == before:
            faults.append(Fault("value", "it is missing", "give `value`, or `k` and `n`", "missing"))
        return None
    _check_range(value, definition, faults)
    return value if len(faults) == before else None


def _check_range(value: Decimal, definition: MetricDefinition, faults: Faults) -> None:
    low, high = definition.minimum, definition.maximum
    if value < low or (high is not None and value > high):
        allowed = f"at least {plain(low)}" if high is None else f"{plain(low)} to {plain(high)}"
        faults.append(
            Fault(
                "value",
                f"{plain(value)} is outside the range of {definition.key}",
                f"write {allowed}, in {definition.unit}",
                "out_of_range",
            )
        )


def _check_counts(
    k: Decimal | None,
    n: int | None,
    repeats: int | None,
    errored: int | None,
    unscored: int | None,
    definition: MetricDefinition,
    faults: Faults,
) -> None:
    if k is not None and definition.unit != "percent":
        faults.append(Fault("k", f"{definition.key} is no rate", "leave `k` out, and give `value`"))
        return
    if n is None:
        for field, given in (("k", k), ("errored", errored), ("unscored", unscored)):
            if given is not None:
                faults.append(Fault(field, "it stands without `n`", "give `n`, the number of planned tasks", "missing"))
        return
    missing = (errored or 0) + (unscored or 0)
    if missing > n:
        faults.append(Fault("errored", f"errored and unscored together are {missing}, more than n = {n}", "correct the counts"))
    if k is None:
        if missing and definition.unit == "percent":
            # 80 right of 100 with 10 errors is published as 80 by some tools and as 88.9 by others.
            what = f"of {n} tasks {missing} errored or have no score, and whether the rate is over all of them cannot be told"
            faults.append(Fault("k", what, "give `k`, the number of successes (of failures, where lower is better)", "missing"))
        return
    if k < 0 or k > n:
        faults.append(Fault("k", f"{plain(k)} is not between 0 and n = {n}", "count each planned task once"))
    elif k != k.to_integral_value() and (repeats is None or repeats < 2):
        hint = "write a whole number, or give `repeats` where k is a mean over repeats"
        faults.append(Fault("k", f"{plain(k)} is no whole number", hint))
    elif k + missing > n and (definition.better == "lower" or repeats is None or repeats < 2):
        # Over repeats a task may err once and succeed once, so the sum says something only without them, or where
        # missing tasks are counted into the rate itself.
        faults.append(Fault("k", f"k, errored and unscored together are more than n = {n}", "count each task once"))


def judge_of(raw: Raw, *, models: Iterable[str], faults: Faults) -> dict[str, Any] | None:
    """Return who judged, or None: `models`, `rule`, `is_subject`, `agreement` (percent, as text), `agreement_n`, `kappa`
    (Cohen's, -1 to 1, as text: agreement beyond what chance gives, which says more where one answer is rare)."""
    before = len(faults)
    judge: dict[str, Any] = {}
    names = list(models)
    if names:
        judge["models"] = names
    rule = text_of(raw, "rule", faults)
    if rule:
        judge["rule"] = rule
    flag = raw.get("is_subject")
    if not is_absent(flag):
        if isinstance(flag, bool):
            judge["is_subject"] = flag
        else:
            faults.append(Fault("is_subject", f"{shown(flag)} is neither true nor false", "write true or false"))
    agreement = decimal_of(raw, "agreement", faults)
    if agreement is not None:
        if 0 <= agreement <= _HUNDRED:
            judge["agreement"] = plain(agreement)
        else:
            faults.append(Fault("agreement", f"{plain(agreement)} is outside 0 to 100", "write it in percent"))
    agreement_n = count_of(raw, "agreement_n", faults, minimum=1)
    if agreement_n is not None:
        judge["agreement_n"] = agreement_n
    kappa = decimal_of(raw, "kappa", faults)
    if kappa is not None:
        if -1 <= kappa <= 1:
            judge["kappa"] = plain(kappa)
        else:
            faults.append(Fault("kappa", f"{plain(kappa)} is outside -1 to 1", "write it as a number, not in percent"))
    return judge if judge and len(faults) == before else None
