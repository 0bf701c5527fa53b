"""Bundles: registry entries and evidence files that come with the product, read from `evaluations/data/<name>/`.

`bundle.json` is one object; every list may be absent, every field not marked * too:

    {"bundle": "writegate-bundle/1", "name"*, "title"*, "licence"*, "made_up": true where nothing in it is real,
     "sources":    [{"key"*, "title"*, "publisher", "url", "notes", "trust": {"tier"*, "reason"*}}],
     "benchmarks": [{"key"*, "title"*, "publisher", "url", "description",
                     "versions": [{"version"*, "harness", "split", "exposure", "tasks", "data_digest", "metrics", "notes"}]}],
     "subjects":   [{"key"*, "title"*, "kind"*: "model", "provider", "candidate": bool,
                     "pin"*: {"provider", "snapshot", "effort", "quantisation", "fallbacks": […]}}],
     "aliases":    [{"name"*, "source"*, "subject"*, "reason"}],
     "teams":      [{"key"*, "title"*}],
     "people":     [{"key"*, "name"*, "team", "roles": […]}],
     "systems":    [{"key"*, "title"*, "domain"*, "environment"*, "reversible"*: bool, "owner_team"*}],
     "evidence":   ["<file beside bundle.json, in our own evidence format>"],
     "rulings":    [{"evidence"*: {"document"*: "<bundle>/<file>", "subject"*: "<as written>", "metric"*},
                     "ruling"*: "disputed", "reason"*, "link"}]}

Reading checks the shape, and that names used within a bundle that registers such names are registered there. It stores
nothing: a service does.
"""

from pathlib import Path
from typing import Any, NamedTuple

from evaluations.importers.base import MetricDefinition, Problems
from evaluations.importers.bundle_entries import (
    LISTS,
    AliasEntry,
    BenchmarkEntry,
    Make,
    MetricEntry,
    PersonEntry,
    RulingEntry,
    SourceEntry,
    SubjectEntry,
    SystemEntry,
    TeamEntry,
    flag_of,
    metric_entry,
    names_of,
)
from evaluations.importers.decoding import decode_text
from evaluations.importers.fields import Fault, Faults, Raw, shown, text_of, unknown_fields
from evaluations.importers.jsontext import kind_of, line_of, locate, parse, path_text
from evaluations.kernel.names import key_problem

DATA = Path(__file__).resolve().parent.parent / "data"
FORMAT = "writegate-bundle/1"


class Bundle(NamedTuple):
    """One bundle. `evidence` holds the paths of its evidence files."""

    name: str
    title: str
    licence: str
    made_up: bool
    path: Path
    sources: tuple[SourceEntry, ...]
    benchmarks: tuple[BenchmarkEntry, ...]
    subjects: tuple[SubjectEntry, ...]
    aliases: tuple[AliasEntry, ...]
    teams: tuple[TeamEntry, ...]
    people: tuple[PersonEntry, ...]
    systems: tuple[SystemEntry, ...]
    evidence: tuple[Path, ...]
    rulings: tuple[RulingEntry, ...]


def read_bundle(path: Path) -> Bundle:
    """Return the bundle in folder `path`. Raises `InputRefused` with every problem, and `OSError` where it cannot be read."""
    file = path / "bundle.json"
    reader = _Reader(f"{path.name}/bundle.json", decode_text(file.read_bytes(), name=str(file)))
    top = reader.top(("bundle", "name", "title", "licence", "made_up", *LISTS, "evidence"))
    faults: Faults = []
    if top.get("bundle") != FORMAT:
        faults.append(Fault("bundle", "it is not the format we read", f"write `{FORMAT}`"))
    name = text_of(top, "name", faults, required=True)
    title = text_of(top, "title", faults, required=True)
    licence = text_of(top, "licence", faults, required=True)
    made_up = flag_of(top, "made_up", faults, default=False)
    reader.report(faults, ())
    lists: dict[str, tuple[Any, ...]] = {field: reader.entries(top, field, make) for field, make in LISTS.items()}
    evidence = tuple(path / each for each in reader.names(top, "evidence", ()))
    for index, each in enumerate(evidence):
        if each.parent != path or not each.is_file():
            fault = Fault(str(index), f"there is no file {shown(each.name)} beside it", "correct the name")
            reader.report([fault], ("evidence",))
    bundle = Bundle(name, title, licence, made_up, path, evidence=evidence, **lists)
    _check_names(bundle, reader)
    reader.problems.raise_any()
    return bundle


def read_metrics(path: Path = DATA / "metrics.json") -> tuple[MetricEntry, ...]:
    """Return the metric registry. Raises `InputRefused` with every problem."""
    reader = _Reader(path.name, decode_text(path.read_bytes(), name=path.name))
    entries = reader.entries(reader.top(("metrics",)), "metrics", metric_entry)
    reader.problems.raise_any()
    return entries


def definitions(entries: tuple[MetricEntry, ...]) -> dict[str, MetricDefinition]:
    """Return the definitions by key, as a `Registry` holds them."""
    return {entry.definition.key: entry.definition for entry in entries}


class _Reader:
    """One file: parses it, and says in which line a fault is."""

    def __init__(self, name: str, text: str) -> None:
        self.problems = Problems(name)
        self.text = text
        self.value = parse(text, self.problems)

    def report(self, faults: Faults, base: tuple[str | int, ...]) -> None:
        if not faults:
            return
        located = locate(self.text)
        for fault in faults:
            steps = (int(step) if step.isdigit() else step for step in fault.field.split(".") if step)
            path = (*base, *steps)
            line = line_of(path, located)
            self.problems.add(fault.message, line=line, field=path_text(path), code=fault.code, hint=fault.hint)

    def top(self, known: tuple[str, ...]) -> Raw:
        if not isinstance(self.value, dict):
            self.problems.add(f"it is {kind_of(self.value)}", line=1, hint="write one object")
            self.problems.raise_any()
        faults: Faults = []
        unknown_fields(self.value, known, faults)
        self.report(faults, ())
        return self.value

    def entries(self, raw: Raw, field: str, make: Make) -> tuple[Any, ...]:
        """Return the entries of a list of objects; a key that stands twice is a fault."""
        value = raw.get(field, [])
        if not isinstance(value, list):
            self.report([Fault(field, f"it is {kind_of(value)}", "write a list")], ())
            return ()
        made: list[Any] = []
        keys: set[str] = set()
        for index, item in enumerate(value):
            faults: Faults = []
            if not isinstance(item, dict):
                faults.append(Fault("", f"it is {kind_of(item)}", "write an object"))
            else:
                made.append(make(item, faults))
                key = item.get("key")
                if isinstance(key, str):
                    problem = key_problem(key, field="key")
                    if problem is not None:
                        faults.append(Fault("key", problem.message, problem.hint))
                    if key in keys:
                        faults.append(Fault("key", f"{shown(key)} stands twice", "keep one"))
                    keys.add(key)
            self.report(faults, (field, index))
        return tuple(made)

    def names(self, raw: Raw, field: str, base: tuple[str | int, ...]) -> tuple[str, ...]:
        faults: Faults = []
        made = names_of(raw, field, faults)
        self.report(faults, base)
        return made


def _check_names(bundle: Bundle, reader: _Reader) -> None:
    """Names used within the bundle must be registered by it."""
    sources = {each.key for each in bundle.sources}
    subjects = {each.key for each in bundle.subjects}
    teams = {each.key for each in bundle.teams}
    faults: Faults = []
    for index, alias in enumerate(bundle.aliases):
        for field, name, known in (("source", alias.source, sources), ("subject", alias.subject, subjects)):
            if name and name not in known:
                faults.append(Fault(f"aliases.{index}.{field}", f"{shown(name)} is not in the bundle", "register it there"))
    for kind, owners in (
        ("people", [each.team for each in bundle.people]),
        ("systems", [each.owner_team for each in bundle.systems]),
    ):
        for index, team in enumerate(owners):
            if team and team not in teams:
                faults.append(Fault(f"{kind}.{index}", f"the team {shown(team)} is not in the bundle", "add it to `teams`"))
    reader.report(faults, ())
