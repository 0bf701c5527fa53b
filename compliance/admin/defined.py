"""What a dossier says of a metric's definition, of a benchmark's version or of a source, as its signers read it."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from evaluations.kernel.display import Cell, list_link, number, outside, said, whole_digest, words
from evaluations.models import Evidence, Metric, Source
from evaluations.vocabulary import Better, Exposure, Level, MetricFamily, TrustTier, Unit

EXPOSURES: Mapping[str, str] = {
    Exposure.PUBLIC: "public: a model may have been trained on its tasks",
    Exposure.PRIVATE: "private",
    Exposure.UNKNOWN: "not stated",
}
TIERS: Mapping[str, str] = {
    TrustTier.ARCHIVE: "archive: collects what others wrote, checked by nobody who ran the test",
    TrustTier.SECONDARY: "secondary: retells numbers of others, or shows one person's runs",
    TrustTier.VENDOR: "vendor: tests its own models",
    TrustTier.INDEPENDENT: "independent: tests models of others, and shows how",
    TrustTier.REPRODUCED: "reproduced: independent, and somebody else got the same",
}
"""Weakest first."""
_METRIC: Sequence[tuple[str, str, Mapping[str, str] | None]] = (
    ("Title", "title", None),
    ("Unit", "unit", dict(Unit.choices)),
    ("Direction", "better", dict(Better.choices)),
    ("Level", "level", dict(Level.choices)),
    ("Family", "family", dict(MetricFamily.choices)),
    ("Population", "population", None),
    ("Definition", "definition", None),
    ("Smallest value", "minimum", None),
    ("Largest value", "maximum", None),
)


def shown_metric(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition, line by line beside the one that it replaces, and who reads the metric."""
    asked, before = value["metric"], value["metric_before"]
    return {
        "key": asked["key"],
        "digest": whole_digest(asked["digest"]),
        "before": None if before is None else whole_digest(before["digest"]),
        "rows": [(label, _word(asked, name, known), _changed(before, asked, name, known)) for label, name, known in _METRIC],
        "measured": value["measured"],
        "policies": words(value["read_by"], empty="none"),
    }


def shown_benchmark(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of the benchmark and of its version, and which metrics by which definitions it carries."""
    test, version = value["benchmark"], value["benchmark_version"]
    rows: list[tuple[str, Cell]] = [
        ("Benchmark", value["question"]["benchmark"]),
        ("It is", "registered already" if test["registered"] else "new"),
        ("Title", test["title"]),
        ("Publisher", said(test["publisher"])),
        ("Address", outside(test["url"])),
        ("Description", said(test["description"])),
        ("Version", version["version"]),
        ("Other versions", words(value["versions"], empty="none")),
        ("Tasks", said(version["tasks"])),
        ("Harness", said(version["harness"])),
        ("Split", said(version["split"])),
        ("Exposure", EXPOSURES[version["exposure"]]),
        ("Data", whole_digest(version["data_digest"])),
        ("Notes", said(version["notes"], empty="none")),
    ]
    metrics = [(list_link(Metric, item["key"], q=item["key"]), whole_digest(item["digest"])) for item in value["metrics"]]
    return {"rows": rows, "metrics": metrics}


def shown_source(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of the source, its tier before and after, whether it has evidence, and whose bar lies between."""
    source, before, told = value["source"], value["trust_before"], value["has_evidence"]
    ranks = [str(tier) for tier in TIERS]
    known = Source.objects.filter(key=source["key"]).first()
    rows: list[tuple[str, Cell]] = [
        ("Key", source["key"]),
        ("It is", "registered already" if source["registered"] else "new"),
        ("Title", source["title"]),
        ("Publisher", said(source["publisher"])),
        ("Address", said(source["url"])),
        ("Trusted as", TIERS[value["question"]["tier"]]),
        ("Until now", "nobody trusts it" if before is None else TIERS[before["tier"]]),
        *([] if before is None else [("Because", before["reason"])]),
        (
            "Evidence",
            list_link(Evidence, "Evidence of this source", source__id__exact=known.pk) if known and told else "none yet",
        ),
    ]
    return {
        "rows": rows,
        "policies": words(value["asked_between"], empty="none"),
        "lower": before is not None and ranks.index(value["question"]["tier"]) < ranks.index(before["tier"]),
    }


def _word(metric: Mapping[str, Any], name: str, known: Mapping[str, str] | None) -> str:
    if name in ("minimum", "maximum"):
        return number(None if metric[name] is None else Decimal(metric[name]), metric["unit"], empty="no limit")
    return metric[name] if known is None else str(known[metric[name]])


def _changed(before: Mapping[str, Any] | None, asked: Mapping[str, Any], name: str, known: Mapping[str, str] | None) -> str:
    """Return how it was before where that differs, "" where it does not."""
    return "" if before is None or before[name] == asked[name] else _word(before, name, known)
