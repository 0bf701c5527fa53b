"""What exactly a request asks for, by kind: values in, canonical bytes out, and back."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.kernel.canonical import canonical_bytes, timestamp


class AskedWaiver(NamedTuple):
    """A failing soft rule of a policy that is to be accepted at a system, and why."""

    policy: str
    rule: str
    system: str
    reason: str


class AccessProposal(NamedTuple):
    """What a grant, a renewal, a reinstatement or a recertification asks for. No start means: as soon as it is signed."""

    actions: tuple[str, ...]
    starts_at: datetime | None
    ends_at: datetime
    waivers: tuple[AskedWaiver, ...] = ()

    def to_bytes(self) -> bytes:
        return canonical_bytes(
            {
                "actions": list(self.actions),
                "starts_at": self.starts_at,
                "ends_at": self.ends_at,
                "waivers": [item._asdict() for item in self.waivers],
            }
        )

    @classmethod
    def read(cls, content: bytes) -> "AccessProposal":
        value = json.loads(content)
        starts = value["starts_at"]
        return cls(
            tuple(value["actions"]),
            datetime.fromisoformat(starts) if starts else None,
            datetime.fromisoformat(value["ends_at"]),
            tuple(AskedWaiver(**item) for item in value["waivers"]),
        )


class BindingProposal(NamedTuple):
    """Which parameters a binding tightens, at a system or in a domain (the other is empty)."""

    system: str
    domain: str
    params: Mapping[str, Decimal]

    def to_bytes(self) -> bytes:
        return canonical_bytes({"system": self.system, "domain": self.domain, "params": dict(self.params)})

    @classmethod
    def read(cls, content: bytes) -> "BindingProposal":
        value = json.loads(content)
        return cls(value["system"], value["domain"], {name: Decimal(number) for name, number in value["params"].items()})


class RulingProposal(NamedTuple):
    """Which ruling on the request's evidence is asked for, with the link that shows why."""

    kind: str
    link: str

    def to_bytes(self) -> bytes:
        return canonical_bytes(self._asdict())

    @classmethod
    def read(cls, content: bytes) -> "RulingProposal":
        return cls(**json.loads(content))


class MetricProposal(NamedTuple):
    """The definition of a metric, word for word, with its digest."""

    key: str
    title: str
    unit: str
    better: str
    level: str
    family: str
    population: str
    definition: str
    minimum: Decimal
    maximum: Decimal | None
    digest: str

    def to_bytes(self) -> bytes:
        return canonical_bytes(self._asdict())

    @classmethod
    def read(cls, content: bytes) -> "MetricProposal":
        value = json.loads(content)
        maximum = value.pop("maximum")
        return cls(**{**value, "minimum": Decimal(value["minimum"])}, maximum=None if maximum is None else Decimal(maximum))


class BenchmarkProposal(NamedTuple):
    """One version of a benchmark, word for word; what is said of the benchmark itself counts where it is not registered yet."""

    benchmark: str
    title: str
    publisher: str
    url: str
    description: str
    version: str
    harness: str
    split: str
    exposure: str
    tasks: int | None
    data_digest: str
    metrics: tuple[str, ...]
    notes: str

    def to_bytes(self) -> bytes:
        return canonical_bytes(self._asdict())

    @classmethod
    def read(cls, content: bytes) -> "BenchmarkProposal":
        value = json.loads(content)
        return cls(**{**value, "metrics": tuple(value["metrics"])})


class SourceProposal(NamedTuple):
    """A source, and how far it is trusted; what is said of the source itself counts where it is not registered yet."""

    key: str
    title: str
    publisher: str
    url: str
    tier: str

    def to_bytes(self) -> bytes:
        return canonical_bytes(self._asdict())

    @classmethod
    def read(cls, content: bytes) -> "SourceProposal":
        return cls(**json.loads(content))


NOTHING_MORE = canonical_bytes({})
"""The proposal of a request whose kind and object say it all."""


def shown_instant(moment: datetime | None) -> str | None:
    """Return an instant as dossiers write it."""
    return None if moment is None else timestamp(moment)


def plain_value(content: bytes) -> Any:
    """Return the value under canonical bytes; decimals stay text."""
    return json.loads(content)
