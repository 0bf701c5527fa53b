"""The facts of one judgement: plain values in, and their canonical document, from which the judgement can be replayed.

A judgement never looks anything up. A service gathers every candidate observation of a subject version (also those that
will not count, so that the answer can say why), the effective parameters, the metric definitions and, for agents, the
route; `judge` reads nothing else. The document is the canonical JSON of all that, each candidate with its reason as
judged and without the instant: facts that are judged alike have the same bytes, hence one digest and one verdict.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.numbers import plain
from policies.language.results import ANY_DOMAIN

FACTS_VERSION = 1

NOTHING: Mapping[str, Any] = MappingProxyType({})

quoted = json.encoder.encode_basestring
"""A text as a canonical JSON string."""


class MetricFacts(NamedTuple):
    """The definition of a metric as it stood when judged. `digest` is that of the registered definition, "" if unknown."""

    key: str
    unit: str
    better: str
    level: str
    family: str
    minimum: Decimal
    maximum: Decimal | None
    digest: str = ""


class Metrics(Mapping[str, MetricFacts]):
    """The metric definitions behind a judgement. Build it once and share it between subjects: it keeps its own bytes."""

    __slots__ = ("_encoded", "_items")

    def __init__(self, definitions: Mapping[str, MetricFacts]) -> None:
        self._items = dict(definitions)
        shapes = {key: {**item._asdict()} for key, item in self._items.items()}
        self._encoded = canonical_bytes(shapes).decode()

    @property
    def encoded(self) -> str:
        return self._encoded

    def __getitem__(self, key: str) -> MetricFacts:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


NO_METRICS = Metrics({})


class AliasUsed(NamedTuple):
    """The dated statement by which a name as written was read as this subject version."""

    source: str
    written: str
    assignment: str


class Candidate(NamedTuple):
    """One observation about one subject version, as a clause meets it.

    `evidence` is the uid of its evidence, `ordinal` its place in it; together they are unique. `value` is in the metric's
    unit and, for rates, already counts errors against the subject; where `k` and `n` are given the exact rate is taken
    from them instead. `n` counts planned distinct tasks, errored and unscored included. `ended_at` is the end of the run
    (`run_ended` true), else the publication (`run_ended` false), else None. `identity_problem` is "" or one of
    `results.IDENTITY_REASONS`. `supersedes` is "" or the uid of evidence of the same instant that this one replaces.
    """

    evidence: str
    ordinal: int
    subject_as_written: str
    source: str
    trust: str
    provenance: str
    attested: bool
    metric: str
    benchmark: str
    version: str
    slice: str
    value: Decimal
    value_as_written: str = ""
    k: Decimal | None = None
    n: int | None = None
    repeats: int | None = None
    errored: int | None = None
    unscored: int | None = None
    run_status: str = "complete"
    ended_at: datetime | None = None
    run_ended: bool = False
    harness: str = ""
    about: str = "model"
    identity_problem: str = ""
    ruling: str = ""
    supersedes: str = ""


Candidates = Mapping[str, tuple[Candidate, ...]]
"""Clause name → every observation that was considered for it. A clause without candidates may be left out."""

Reasons = Mapping[str, tuple[str, ...]]
"""Clause name → reason of each candidate, in the order of `Candidates`; "" where it qualifies."""


class Shared:
    """What the judgements of one subject version at one instant have in common, kept while they last.

    Of a hundred policies many ask the same of the same observations: each clause that weighs alike is heard once (`heard`), and the
    observations are written out once (`written`). Nothing in it outlives the candidates it was made of; take a new one for the next
    subject version, and for another instant.
    """

    __slots__ = ("heard", "written")

    def __init__(self) -> None:
        # Keys hold the identity of tuples that the values keep alive, so no identity is ever given twice.
        self.heard: dict[tuple[int, int, str], Any] = {}
        self.written: dict[tuple[int, int], tuple[Any, str]] = {}


class Member(NamedTuple):
    """One model that an agent's route can reach, with its own candidates."""

    subject_key: str
    subject_version_digest: str
    candidates: Candidates
    aliases: tuple[AliasUsed, ...] = ()


class Facts(NamedTuple):
    """Everything one judgement reads.

    `domain` is "any" where no system is meant. `params` are the effective parameters (a binding may tighten them); those
    left out keep the policy's number. `route` is None for a model; for an agent it is the models that its route can
    reach, and `route_closed` says whether that set is known to be whole. `candidates` of an agent are those measured on
    the agent version itself (`about: agent`).
    """

    subject_key: str
    subject_version_digest: str
    domain: str = ANY_DOMAIN
    params: Mapping[str, Decimal] = NOTHING
    candidates: Candidates = NOTHING
    aliases: tuple[AliasUsed, ...] = ()
    metrics: Metrics = NO_METRICS
    route: tuple[Member, ...] | None = None
    route_closed: bool = True

    def to_document(self, reasons: Mapping[str, Reasons], shared: Shared | None = None) -> bytes:
        """Return the canonical facts document; `reasons` is `Judgement.reasons` of this very judgement.

        Candidates under a clause that the judgement did not read are left out. `shared` is what the judgement was given.
        """
        route = "null"
        if self.route is not None:
            members = sorted(self.route, key=_member_key)
            route = (
                "["
                + ",".join([_member(member, reasons.get(member.subject_version_digest, NOTHING), shared) for member in members])
                + "]"
            )
        params = ",".join([f'{quoted(name)}:"{plain(self.params[name])}"' for name in sorted(self.params)])
        # Keys stand in canonical order; a test holds every byte against `canonical_bytes`.
        return (
            f'{{"aliases":{_aliases(self.aliases)},"candidates":{_candidates(self.candidates, reasons.get("", NOTHING), shared)},'
            f'"domain":{quoted(self.domain)},"facts":{FACTS_VERSION},"metrics":{self.metrics.encoded},"params":{{{params}}},'
            f'"route":{route},"route_closed":{"true" if self.route_closed else "false"},'
            f'"subject":{quoted(self.subject_key)},"subject_version_digest":{quoted(self.subject_version_digest)}}}'
        ).encode()


class FactsUnreadable(ValueError):
    """The bytes are no facts document of a version that this code reads."""


def facts_digest(document: bytes) -> str:
    """Return the digest under which a facts document is kept."""
    return digest_of(document)


def from_document(document: bytes) -> Facts:
    """Return the facts that a document states, without its reasons: judging them again gives the same reasons."""
    try:
        read = json.loads(document)
        if read["facts"] != FACTS_VERSION:
            raise FactsUnreadable(f"facts document of version `{read['facts']}`; this code reads {FACTS_VERSION}")
        route = read["route"]
        return Facts(
            subject_key=read["subject"],
            subject_version_digest=read["subject_version_digest"],
            domain=read["domain"],
            params={name: Decimal(number) for name, number in read["params"].items()},
            candidates=_read_candidates(read["candidates"]),
            aliases=_read_aliases(read["aliases"]),
            metrics=Metrics({key: _read_metric(item) for key, item in read["metrics"].items()}),
            route=None if route is None else tuple(_read_member(item) for item in route),
            route_closed=read["route_closed"],
        )
    except FactsUnreadable:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise FactsUnreadable(f"not a facts document: {error}") from error


# Writing. One formatted string a candidate: this runs for every candidate of every subject at each judgement.


@lru_cache(maxsize=65_536)
def written_decimal(number: Decimal | None) -> str:
    """Return a decimal as canonical JSON. Equal numbers are written alike, and a fleet has few different ones: they are remembered."""
    if number is None:
        return "null"
    # A number that is not finite can only have been written past every intake; it is kept as text, so that the verdict
    # `error` it causes can be replayed too.
    return f'"{plain(number)}"' if number.is_finite() else f'"{number}"'


@lru_cache(maxsize=65_536)
def written_moment(moment: datetime | None) -> str:
    """Return an aware datetime as canonical JSON, in UTC. Equal instants are written alike, in whatever zone they were given."""
    if moment is None:
        return "null"
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError(f"`{moment.isoformat()}` has no time zone")
        moment = moment.astimezone(UTC)
    text = moment.isoformat(timespec="microseconds")
    return f'"{text[:-6]}Z"'


def written_integer(number: int | None) -> str:
    """Return a whole number as canonical JSON."""
    return "null" if number is None else str(number)


def _candidate(item: Candidate, reason: str) -> str:
    (
        evidence, ordinal, written, source, trust, provenance, attested, metric, benchmark, version, slice_,
        value, value_as_written, k, n, repeats, errored, unscored, run_status, ended_at, run_ended, harness, about,
        identity_problem, ruling, supersedes,
    ) = item  # fmt: skip
    return (
        f'{{"about":{quoted(about)},"attested":{"true" if attested else "false"},"benchmark":{quoted(benchmark)},'
        f'"ended_at":{written_moment(ended_at)},"errored":{written_integer(errored)},"evidence":{quoted(evidence)},'
        f'"harness":{quoted(harness)},"identity_problem":{quoted(identity_problem)},"k":{written_decimal(k)},'
        f'"metric":{quoted(metric)},"n":{written_integer(n)},"ordinal":{ordinal},"provenance":{quoted(provenance)},'
        f'"reason":{quoted(reason)},"repeats":{written_integer(repeats)},"ruling":{quoted(ruling)},'
        f'"run_ended":{"true" if run_ended else "false"},"run_status":{quoted(run_status)},"slice":{quoted(slice_)},'
        f'"source":{quoted(source)},"subject_as_written":{quoted(written)},"supersedes":{quoted(supersedes)},'
        f'"trust":{quoted(trust)},"unscored":{written_integer(unscored)},"value":{written_decimal(value)},'
        f'"value_as_written":{quoted(value_as_written)},"version":{quoted(version)}}}'
    )


def _candidates(candidates: Candidates, reasons: Reasons, shared: Shared | None) -> str:
    parts = []
    for clause in sorted(candidates):
        judged = reasons.get(clause)
        if judged is None:
            continue
        given = candidates[clause]
        if shared is None:
            written = _list(given, judged)
        else:
            key = id(given), id(judged)
            held = shared.written.get(key)
            if held is None:
                held = shared.written[key] = ((given, judged), _list(given, judged))
            written = held[1]
        parts.append(quoted(clause) + ":" + written)
    return "{" + ",".join(parts) + "}"


def _list(candidates: tuple[Candidate, ...], reasons: tuple[str, ...]) -> str:
    pairs = list(zip(candidates, reasons, strict=True))
    if len(pairs) > 1:
        pairs.sort(key=_pair_key)
    return "[" + ",".join([_candidate(item, reason) for item, reason in pairs]) + "]"


def _pair_key(pair: tuple[Candidate, str]) -> tuple[str, int]:
    return pair[0].evidence, pair[0].ordinal


def _member_key(member: Member) -> tuple[str, str]:
    return member.subject_key, member.subject_version_digest


def _aliases(aliases: tuple[AliasUsed, ...]) -> str:
    parts = [
        f'{{"assignment":{quoted(item.assignment)},"source":{quoted(item.source)},"written":{quoted(item.written)}}}'
        for item in sorted(aliases)
    ]
    return "[" + ",".join(parts) + "]"


def _member(member: Member, reasons: Reasons, shared: Shared | None) -> str:
    return (
        f'{{"aliases":{_aliases(member.aliases)},"candidates":{_candidates(member.candidates, reasons, shared)},'
        f'"subject":{quoted(member.subject_key)},"subject_version_digest":{quoted(member.subject_version_digest)}}}'
    )


# Reading.


def _read_metric(item: Mapping[str, Any]) -> MetricFacts:
    maximum = item["maximum"]
    return MetricFacts(
        **{
            **item,
            "minimum": Decimal(item["minimum"]),
            "maximum": None if maximum is None else Decimal(maximum),
        }
    )


def _read_candidate(item: Mapping[str, Any]) -> Candidate:
    fields = {key: value for key, value in item.items() if key != "reason"}
    fields["value"] = Decimal(fields["value"])
    if fields["k"] is not None:
        fields["k"] = Decimal(fields["k"])
    if fields["ended_at"] is not None:
        fields["ended_at"] = datetime.fromisoformat(fields["ended_at"]).astimezone(UTC)
    return Candidate(**fields)


def _read_candidates(read: Mapping[str, Any]) -> Candidates:
    return {clause: tuple(_read_candidate(item) for item in items) for clause, items in read.items()}


def _read_aliases(read: list[Mapping[str, Any]]) -> tuple[AliasUsed, ...]:
    return tuple(AliasUsed(**item) for item in read)


def _read_member(read: Mapping[str, Any]) -> Member:
    candidates, aliases = _read_candidates(read["candidates"]), _read_aliases(read["aliases"])
    return Member(read["subject"], read["subject_version_digest"], candidates, aliases)
