"""Shapes, words and limits that every importer shares.

An importer is a module: bytes in, pairs of (`EvidenceDraft`, `ObservationDraft`) out. It reads a stream once, imports no
Django, stores nothing, and asks nobody: what it must know of the registry is passed in as a `Registry`. A format is a
module with `NAME`, `VERSION`, `GROUP`, `sniff` and `read` (see `Importer`), plus one line in `registry.py`.

Every problem of a file is collected and raised together as `InputRefused`, each naming file, line or row, and field, and
saying what to write instead. `read` raises at the end of the stream, or as soon as `MAX_PROBLEMS` are found; pairs
yielded before that belong to no import, so a caller stores them in a transaction that the exception undoes.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

from evaluations.kernel.errors import InputRefused, Problem

PROVENANCES = ("claim", "reported", "run_log", "recounted")
"""What kind of statement it is, weakest first."""

TRUST_TIERS = ("archive", "secondary", "vendor", "independent", "reproduced")
"""Who says it, weakest first; set on the source by a steward."""

RUN_STATUSES = ("complete", "partial", "cancelled", "error", "running", "unscored", "unknown")
"""Only `complete` can satisfy a requirement."""

ABOUTS = ("model", "agent")

DOMAINS = ("hr", "it_service_management", "customer_service", "email", "calendar", "drive", "teams", "hybrid")
OVERALL = "overall"

DOMAIN_ALIASES: Mapping[str, str] = {"csm": "customer_service", "itsm": "it_service_management"}
"""Short names that EnterpriseOps-Gym uses for two of the domains."""

MAX_BYTES = 512 * 1024 * 1024
"""Largest file that is read, but for a zip, whose members are bounded one by one. A CSV of a million observations has 100 to 250 MB."""

MAX_LINE_BYTES = 1024 * 1024
"""Longest line of a CSV or JSON Lines file; a file of one endless line must not fill the memory."""

MAX_PROBLEMS = 50


class EvidenceDraft(NamedTuple):
    """One submission about one subject *as written*, in one document.

    Times are aware and in UTC. `harness` is "name version" or "" where unknown. `locator` is the place in the document
    ("evidence[3]", "line 7"), "" where a flat table gives evidence no place of its own. `supersedes` is "" or the uid of
    earlier evidence.
    """

    subject_as_written: str
    source: str
    provenance: str
    run_status: str
    harness: str
    run_ended_at: datetime | None
    published_at: datetime | None
    answered_as_written: tuple[str, ...]
    about: str
    locator: str
    note: str
    supersedes: str


class ObservationDraft(NamedTuple):
    """One measured value, in the unit of its metric (rates are percent, 0 to 100).

    `k` may be a fraction only over repeats, where it is the mean number of successes. `n` counts planned distinct tasks.
    Where `k` and `n` are known, `value` is the exact rate rounded against the subject to six decimals.
    """

    metric: str
    benchmark: str
    benchmark_version: str
    slice: str
    value: Decimal
    value_as_written: str
    k: Decimal | None
    n: int | None
    repeats: int | None
    errored: int | None
    unscored: int | None
    judge: dict[str, Any] | None
    locator: str


Pair = tuple[EvidenceDraft, ObservationDraft]


class DocumentDraft(NamedTuple):
    """What a file says about itself; every field may be empty. Never its bytes, size or digest: those are counted."""

    title: str = ""
    url: str = ""
    publisher: str = ""
    licence: str = ""
    published_at: datetime | None = None
    retrieved_at: datetime | None = None


class MetricDefinition(NamedTuple):
    """A registered measure. `unit` is percent, usd or count; `better` is higher or lower; `level` task, step or outcome."""

    key: str
    unit: str
    better: str
    level: str
    family: str
    minimum: Decimal
    maximum: Decimal | None


class Registry(NamedTuple):
    """The names an importer may meet: metrics, benchmarks with their known versions, and source keys.

    `carried` holds the metrics of those (benchmark, version) that say which they carry; the others may carry any.
    """

    metrics: Mapping[str, MetricDefinition]
    benchmarks: Mapping[str, frozenset[str]]
    sources: frozenset[str]
    carried: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType({})


@runtime_checkable
class Importer(Protocol):
    """A format. `sniff` sees the first bytes (at most 64 KiB) and the file's name, and answers whether they look like it."""

    NAME: str
    VERSION: int
    GROUP: bool

    def sniff(self, head: bytes, name: str) -> bool: ...


@runtime_checkable
class SingleImporter(Importer, Protocol):
    """A format whose every FILE stands alone (`GROUP` is false)."""

    def read(self, stream: BinaryIO, *, name: str, registry: Registry, source: str | None) -> Iterator[Pair]: ...


class Profile(NamedTuple):
    """What people said once about the numbers of one source, where its files do not: see `profiles.py`.

    `importer` is the format it is for, `digest` that of its bytes, `file` its name as given, `data` its bytes, and `fields` what it
    says, read by that importer.
    """

    name: str
    importer: str
    digest: str
    file: str
    data: bytes
    fields: Mapping[str, Any]


class Intake(NamedTuple):
    """What is known of the files beside their bytes: the registry, and what the caller says where the format does not."""

    registry: Registry
    source: str | None
    subject: str | None = None
    published_at: datetime | None = None
    profile: Profile | None = None


@runtime_checkable
class GroupImporter(Importer, Protocol):
    """A format that asks for more than a stream. Where `GROUP` is true its FILEs together are one set: a rate over tasks needs the
    results of all of them. Where it is false `read_group` is called with one FILE at a time.

    `files` maps each name, as given, to a seekable stream. The intake's `subject` names the model, and its `published_at` the
    date, where the format itself does not.
    """

    def read_group(self, files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]: ...


@runtime_checkable
class ProfiledImporter(GroupImporter, Protocol):
    """A format whose numbers mean what a profile says. `TAKES_PROFILE` is true; a profile given to any other format is refused."""

    TAKES_PROFILE: bool


@runtime_checkable
class DescribingImporter(Importer, Protocol):
    """A format that can say something about the document itself."""

    def describe(self, stream: BinaryIO, *, name: str) -> DocumentDraft: ...


class Problems:
    """Collects the problems of one file and raises them together, at most `MAX_PROBLEMS` and then "and more"."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        row: int | None = None,
        field: str = "",
        code: str = "invalid",
        hint: str = "",
    ) -> None:
        """Keep one problem; raise when that makes `MAX_PROBLEMS`."""
        self.found.append(
            Problem(
                message=message,
                file=self.file if file is None else file,
                line=line,
                column=column,
                row=row,
                field=field,
                code=code,
                hint=hint,
            )
        )
        if len(self.found) >= MAX_PROBLEMS:
            self.raise_any(more=True)

    def raise_any(self, *, more: bool = False) -> None:
        """Raise `InputRefused` with what was found, if anything was."""
        if not self.found:
            return
        found: Sequence[Problem] = self.found
        if more:
            last = Problem(
                message=f"and more: reading stopped after {len(self.found)} problems",
                file=self.file,
                code="and_more",
                hint="correct these first, then import again",
            )
            found = [*self.found, last]
        raise InputRefused(list(found))

    def keep(self, refused: InputRefused) -> None:
        """Keep the problems of one file of a set, and go on with the next."""
        for each in refused.problems:
            self.found.append(each)
            if len(self.found) >= MAX_PROBLEMS:
                self.raise_any(more=True)

    def absorb(self, refused: InputRefused) -> None:
        """Raise what was found together with a refusal that ended reading, in the order of the file."""
        raise InputRefused([*self.found, *(each for each in refused.problems if each not in self.found)]) from None


def refuse(
    message: str, *, file: str, line: int | None = None, field: str = "", code: str = "invalid", hint: str = ""
) -> InputRefused:
    """Return the exception for the one problem that ends reading at once: `raise refuse(…)`."""
    return InputRefused([Problem(message=message, file=file, line=line, field=field, code=code, hint=hint)])


def too_large(name: str, *, limit: int = MAX_BYTES) -> InputRefused:
    """Return the refusal of a file that is larger than we read."""
    return refuse(
        f"the file is larger than {limit // (1024 * 1024)} MiB",
        file=name,
        code="too_large",
        hint="split it, or import a table of results instead of the raw logs",
    )
