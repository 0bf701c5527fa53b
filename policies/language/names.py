"""What a policy may name. The registry stands on lower floors and the roles on a higher one: both are passed in."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol


class MetricLike(Protocol):
    """A registered measure, as far as compiling needs it."""

    @property
    def unit(self) -> str: ...
    @property
    def better(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def minimum(self) -> Decimal: ...
    @property
    def maximum(self) -> Decimal | None: ...


class Names(NamedTuple):
    """Known metrics, benchmarks with their versions, and roles; sources and slices are checked only where given.

    `carried` holds the metrics of those (benchmark, version) that say which they carry; the others may carry any.
    """

    metrics: Mapping[str, MetricLike]
    benchmarks: Mapping[str, frozenset[str]]
    roles: AbstractSet[str]
    sources: AbstractSet[str] | None = None
    slices: AbstractSet[str] | None = None
    carried: Mapping[tuple[str, str], AbstractSet[str]] = MappingProxyType({})

    @classmethod
    def for_replay(cls, metrics: Mapping[str, MetricLike]) -> "Names":
        """Return names for a text that was accepted before: the metrics as they stood then, everything else known."""
        return cls(metrics, _AllBenchmarks(), EVERYTHING)


class _Everything(frozenset[str]):
    """A set that holds every name."""

    def __contains__(self, item: object) -> bool:
        return True


EVERYTHING: AbstractSet[str] = _Everything()


class _AllBenchmarks(Mapping[str, frozenset[str]]):
    """Every benchmark, with every version."""

    def __getitem__(self, key: str) -> frozenset[str]:
        return _Everything()

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: Any) -> bool:
        return True
