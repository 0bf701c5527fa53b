"""The entries of bundles and of the metric registry: their shapes, and how each is read from an object.

The fields are listed in `bundles.py`. Every function adds what is wrong to `faults` and returns an entry all the same, which
is used only when there are no faults.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers.base import DOMAINS, TRUST_TIERS, MetricDefinition
from evaluations.importers.fields import (
    MAX_NOTE_LENGTH,
    Fault,
    Faults,
    Raw,
    count_of,
    decimal_of,
    is_absent,
    shown,
    text_of,
    unknown_fields,
    word_of,
)
from evaluations.importers.jsontext import kind_of

UNITS = ("percent", "usd", "count")
LEVELS = ("task", "step", "outcome")
FAMILIES = ("refusal", "harm", "capability", "cost")
EXPOSURES = ("public", "private", "unknown")
RULINGS = ("disputed",)
"""What a bundle may rule: every other ruling is signed by a quorum."""

Make = Callable[[Raw, Faults], Any]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)


class SourceEntry(NamedTuple):
    key: str
    title: str
    publisher: str
    url: str
    notes: str
    tier: str
    reason: str


class VersionEntry(NamedTuple):
    """`metrics` are the keys of those it carries, empty where that is not stated."""

    version: str
    harness: str
    split: str
    exposure: str
    tasks: int | None
    data_digest: str
    metrics: tuple[str, ...]
    notes: str


class BenchmarkEntry(NamedTuple):
    key: str
    title: str
    publisher: str
    url: str
    description: str
    versions: tuple[VersionEntry, ...]


class SubjectEntry(NamedTuple):
    """`pin` is JSON-like (text, null, lists of text): what makes the digest of the subject's version."""

    key: str
    title: str
    kind: str
    provider: str
    candidate: bool
    pin: dict[str, Any]


class AliasEntry(NamedTuple):
    name: str
    source: str
    subject: str
    reason: str


class TeamEntry(NamedTuple):
    key: str
    title: str


class PersonEntry(NamedTuple):
    key: str
    name: str
    team: str
    roles: tuple[str, ...]


class SystemEntry(NamedTuple):
    key: str
    title: str
    domain: str
    environment: str
    reversible: bool
    owner_team: str


class RulingEntry(NamedTuple):
    """Concerns the evidence in `document` (bundle/file) that is about `subject` as written and holds `metric`."""

    document: str
    subject: str
    metric: str
    ruling: str
    reason: str
    link: str


class MetricEntry(NamedTuple):
    """A registry row of `metrics.json`: the definition an importer needs, and the texts people read."""

    definition: MetricDefinition
    title: str
    population: str
    text: str


def flag_of(raw: Raw, field: str, faults: Faults, *, default: bool | None = None) -> bool:
    """Return true or false; required where there is no default."""
    value = raw.get(field)
    if isinstance(value, bool):
        return value
    if value is None and default is not None:
        return default
    faults.append(Fault(field, f"it is {'missing' if value is None else kind_of(value)}", "write true or false"))
    return False


def names_of(raw: Raw, field: str, faults: Faults) -> tuple[str, ...]:
    value = raw.get(field, [])
    if not isinstance(value, list) or any(type(each) is not str or not each.strip() for each in value):
        faults.append(Fault(field, f"it is {kind_of(value)}", "write a list of names"))
        return ()
    return tuple(value)


def part_of(raw: Raw, field: str, known: tuple[str, ...], faults: Faults) -> Raw:
    value = raw.get(field)
    if not isinstance(value, dict):
        faults.append(Fault(field, "it is missing" if value is None else f"it is {kind_of(value)}", "write an object"))
        return {}
    unknown_fields(value, known, faults, within=field)
    return value


def source_entry(raw: Raw, faults: Faults) -> SourceEntry:
    unknown_fields(raw, ("key", "title", "publisher", "url", "notes", "trust"), faults)
    trust = part_of(raw, "trust", ("tier", "reason"), faults)
    return SourceEntry(
        text_of(raw, "key", faults, required=True),
        text_of(raw, "title", faults, required=True),
        text_of(raw, "publisher", faults),
        text_of(raw, "url", faults, limit=500),
        text_of(raw, "notes", faults, limit=MAX_NOTE_LENGTH),
        word_of(trust, "tier", TRUST_TIERS, faults),
        text_of(trust, "reason", faults, required=True, limit=500),
    )


def benchmark_entry(raw: Raw, faults: Faults) -> BenchmarkEntry:
    unknown_fields(raw, ("key", "title", "publisher", "url", "description", "versions"), faults)
    versions = raw.get("versions")
    if not isinstance(versions, list) or not versions:
        faults.append(Fault("versions", "there is none", "give at least one version"))
        versions = []
    made = []
    for index, each in enumerate(versions):
        inner: Faults = []
        if isinstance(each, dict):
            unknown_fields(each, VersionEntry._fields, inner)
            made.append(version_entry(each, inner))
        else:
            inner.append(Fault("version", f"it is {kind_of(each)}", "write an object"))
        faults += [fault._replace(field=f"versions.{index}.{fault.field}") for fault in inner]
    return BenchmarkEntry(
        text_of(raw, "key", faults, required=True),
        text_of(raw, "title", faults, required=True),
        text_of(raw, "publisher", faults),
        text_of(raw, "url", faults, limit=500),
        text_of(raw, "description", faults, limit=MAX_NOTE_LENGTH),
        tuple(made),
    )


def version_entry(raw: Raw, faults: Faults) -> VersionEntry:
    data = text_of(raw, "data_digest", faults)
    if data and not _DIGEST.match(data):
        faults.append(Fault("data_digest", f"{shown(data)} is no digest", "write sha256: and 64 hexadecimal digits"))
    metrics = names_of(raw, "metrics", faults)
    if len(set(metrics)) != len(metrics):
        faults.append(Fault("metrics", "one is named twice", "name each once"))
    return VersionEntry(
        text_of(raw, "version", faults, required=True, limit=80),
        text_of(raw, "harness", faults),
        text_of(raw, "split", faults, limit=80),
        word_of(raw, "exposure", EXPOSURES, faults, default="unknown"),
        count_of(raw, "tasks", faults, minimum=1),
        data,
        tuple(sorted(metrics)),
        text_of(raw, "notes", faults, limit=MAX_NOTE_LENGTH),
    )


def subject_entry(raw: Raw, faults: Faults) -> SubjectEntry:
    unknown_fields(raw, SubjectEntry._fields, faults)
    pin = part_of(raw, "pin", ("provider", "snapshot", "effort", "quantisation", "fallbacks"), faults)
    quantisation = text_of(pin, "quantisation", faults)
    return SubjectEntry(
        text_of(raw, "key", faults, required=True),
        text_of(raw, "title", faults, required=True),
        word_of(raw, "kind", ("model",), faults),
        text_of(raw, "provider", faults, limit=120),
        flag_of(raw, "candidate", faults, default=False),
        {
            "provider": text_of(pin, "provider", faults) or None,
            "snapshot": text_of(pin, "snapshot", faults) or None,
            "effort": text_of(pin, "effort", faults) or None,
            "fallbacks": list(names_of(pin, "fallbacks", faults)),
            **({"quantisation": quantisation} if quantisation else {}),
        },
    )


def alias_entry(raw: Raw, faults: Faults) -> AliasEntry:
    unknown_fields(raw, AliasEntry._fields, faults)
    name, source, subject = (text_of(raw, field, faults, required=True) for field in ("name", "source", "subject"))
    return AliasEntry(name, source, subject, text_of(raw, "reason", faults, limit=500))


def team_entry(raw: Raw, faults: Faults) -> TeamEntry:
    unknown_fields(raw, TeamEntry._fields, faults)
    return TeamEntry(text_of(raw, "key", faults, required=True), text_of(raw, "title", faults, required=True))


def person_entry(raw: Raw, faults: Faults) -> PersonEntry:
    unknown_fields(raw, PersonEntry._fields, faults)
    key, name = (text_of(raw, field, faults, required=True) for field in ("key", "name"))
    return PersonEntry(key, name, text_of(raw, "team", faults), names_of(raw, "roles", faults))


def system_entry(raw: Raw, faults: Faults) -> SystemEntry:
    unknown_fields(raw, SystemEntry._fields, faults)
    key, title, environment, owner = (
        text_of(raw, field, faults, required=True) for field in ("key", "title", "environment", "owner_team")
    )
    domain = word_of(raw, "domain", DOMAINS, faults)
    return SystemEntry(key, title, domain, environment, flag_of(raw, "reversible", faults), owner)


def ruling_entry(raw: Raw, faults: Faults) -> RulingEntry:
    unknown_fields(raw, ("evidence", "ruling", "reason", "link"), faults)
    selected = part_of(raw, "evidence", ("document", "subject", "metric"), faults)
    document, subject, metric = (text_of(selected, field, faults, required=True) for field in ("document", "subject", "metric"))
    return RulingEntry(
        document,
        subject,
        metric,
        word_of(raw, "ruling", RULINGS, faults),
        text_of(raw, "reason", faults, required=True, limit=MAX_NOTE_LENGTH),
        text_of(raw, "link", faults, limit=1000),
    )


def metric_entry(raw: Raw, faults: Faults) -> MetricEntry:
    unknown_fields(raw, ("title", "population", "definition", *MetricDefinition._fields), faults)
    minimum = decimal_of(raw, "minimum", faults)
    if is_absent(raw.get("minimum")):
        faults.append(Fault("minimum", "it is missing", "write the smallest possible value"))
    return MetricEntry(
        MetricDefinition(
            text_of(raw, "key", faults, required=True),
            word_of(raw, "unit", UNITS, faults),
            word_of(raw, "better", ("higher", "lower"), faults),
            word_of(raw, "level", LEVELS, faults),
            word_of(raw, "family", FAMILIES, faults),
            minimum if minimum is not None else Decimal(0),
            decimal_of(raw, "maximum", faults),
        ),
        text_of(raw, "title", faults, required=True),
        text_of(raw, "population", faults, required=True, limit=300),
        text_of(raw, "definition", faults, required=True, limit=MAX_NOTE_LENGTH),
    )


LISTS: Mapping[str, Make] = {
    "sources": source_entry,
    "benchmarks": benchmark_entry,
    "subjects": subject_entry,
    "aliases": alias_entry,
    "teams": team_entry,
    "people": person_entry,
    "systems": system_entry,
    "rulings": ruling_entry,
}
