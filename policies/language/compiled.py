"""What a policy text becomes: immutable values in which every name is resolved and every threshold is ready to compare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import Any

from evaluations.kernel.errors import DomainError
from policies.language.conditions import Condition
from policies.language.worth import Assess

_kin_numbers = count(1)


@lru_cache(maxsize=65_536)
def _kin_of(_meaning: tuple[Any, ...]) -> int:
    # One that has fallen out of the memo gets a new number: then less is shared, and never too much.
    return next(_kin_numbers)


@dataclass(frozen=True, slots=True)
class Clause:
    """One named piece of evidence that must be known: which observations speak to it, and which are good enough.

    `higher` is the metric's polarity, `percent` whether it is a rate.
    `trusted` and `proven` are the tiers that are good enough. Ages are `timedelta`; None means no limit. `assess` weighs an
    observation's numbers. `kin` is one number for all clauses that weigh observations alike, whatever they are called and whoever they
    prefer: what is heard for one is heard for all of them.
    """

    name: str
    metric: str
    unit: str
    higher: bool
    percent: bool
    minimum: Decimal
    maximum: Decimal | None
    benchmark: str
    versions: frozenset[str]
    slice: str
    by_domain: bool
    about: str
    statistic: str
    confidence: Decimal
    min_samples: int | None
    max_error_share: Decimal | None
    max_age: timedelta | None
    min_trust: str
    trusted: frozenset[str]
    min_provenance: str
    proven: frozenset[str]
    require_attestation: bool
    prefer: tuple[str, ...]
    assess: Assess = field(repr=False, compare=False)
    kin: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        meaning = (
            self.metric, self.higher, self.percent, self.minimum, self.maximum, self.benchmark, self.versions, self.slice,
            self.about, self.statistic, self.confidence, self.min_samples, self.max_error_share, self.max_age, self.trusted,
            self.proven, self.require_attestation,
        )  # fmt: skip
        object.__setattr__(self, "kin", _kin_of(meaning))


@dataclass(frozen=True, slots=True)
class Assertion:
    """One comparison: the clause's statistic is at least (floor) or at most (ceiling) a bar. `param` is "" for a number."""

    clause: Clause
    floor: bool
    bar: Decimal
    param: str


@dataclass(frozen=True, slots=True)
class Combination:
    """`all_of` or `any_of` over branches; never empty."""

    any_of: bool
    branches: tuple["Test", ...]


Test = Assertion | Combination


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its test. `digest` covers the rule and the clauses it reads, as resolved: a waiver names it."""

    id: str
    enforcement: str
    test: Test
    clauses: tuple[str, ...]
    about_models: bool
    digest: str

    @property
    def can_be_waived(self) -> bool:
        """True where it compares one thing alone: of several, the one value that a waiver names would hide how bad the others are."""
        return len(assertions_of(self.test)) == 1


def assertions_of(test: Test) -> list[Assertion]:
    """Return every comparison of a test, in order."""
    if isinstance(test, Assertion):
        return [test]
    return [found for branch in test.branches for found in assertions_of(branch)]


@dataclass(frozen=True, slots=True)
class Param:
    """A number kept apart from the logic. A binding may tighten it: a floor only up, a ceiling only down."""

    name: str
    value: Decimal
    floor: bool
    minimum: Decimal
    maximum: Decimal | None


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A `forbid` entry: true or error denies at ask time."""

    id: str
    when: Condition


@dataclass(frozen=True, slots=True)
class Factor:
    """So many people with a role must approve; `filter` (optional) is judged for each signer, an error excludes her."""

    factor: str
    role: str
    approve: int
    filter: Condition | None


@dataclass(frozen=True, slots=True)
class SignOffs:
    all_of: tuple[Factor, ...]
    exclude: tuple[str, ...]
    reauthenticate_within_minutes: int
    request_expires_after_hours: int


@dataclass(frozen=True, slots=True)
class GrantTerms:
    max_days: int
    recertify_every_days: int


@dataclass(frozen=True, slots=True)
class Drift:
    """What happens to a standing grant; `max_fall` is the largest tolerated worsening of a clause's judged statistic."""

    on_fail: str
    on_stale: str
    on_contested: str
    max_fall: Mapping[str, Decimal]


class LooserParameter(DomainError):
    """A parameter that is unknown, out of range, or would loosen the policy; its text says which and what is allowed."""

    code = "looser_parameter"


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """An immutable, compiled policy. `text` is the exact bytes given and `digest` theirs; `resolved` is the text's meaning
    with every default filled in (numbers as `Decimal`), `resolved_bytes` its canonical JSON and `resolved_digest` theirs.

    `profile` is "", "supplement" or "conformance"; only the last has neither clauses nor rules, and `sign_offs`, `grant`
    and `drift` None. `tests` is the resolved `tests` section.
    """

    name: str
    title: str
    profile: str
    semantics: int
    text: bytes
    digest: str
    resolved: Mapping[str, Any]
    resolved_bytes: bytes
    resolved_digest: str
    references: tuple[str, ...]
    actions: tuple[str, ...]
    applies_when: Condition | None
    params: Mapping[str, Param]
    clauses: Mapping[str, Clause]
    rules: tuple[Rule, ...]
    forbid: tuple[Guardrail, ...]
    sign_offs: SignOffs | None
    grant: GrantTerms | None
    drift: Drift | None
    tests: tuple[Mapping[str, Any], ...]
    uses_domain: bool
    _effective: Callable[[tuple[tuple[str, Decimal], ...]], Mapping[str, Decimal]] = field(repr=False, compare=False)

    def effective_params(self, tightened: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        """Return every parameter's number with those of `tightened` put in.

        Raises `LooserParameter` for a name the policy lacks, a number out of range, or one looser than the policy's own.
        """
        return self._effective(tuple(tightened.items()))


def effective_function(
    params: Mapping[str, Param],
) -> Callable[[tuple[tuple[str, Decimal], ...]], Mapping[str, Decimal]]:
    """Return the memoised worker behind `CompiledPolicy.effective_params`: a run judges thousands by the same binding."""

    @lru_cache(maxsize=1024)
    def effective(given: tuple[tuple[str, Decimal], ...]) -> Mapping[str, Decimal]:
        numbers = {name: param.value for name, param in params.items()}
        for name, number in given:
            param = params.get(name)
            if param is None:
                known = ", ".join(f"`{name}`" for name in params) or "none"
                raise LooserParameter(f"the policy has no parameter `{name}`; it has {known}")
            if not number.is_finite():
                raise LooserParameter(f"`{name}` is `{number}`: only finite numbers are accepted")
            if (number < param.value) if param.floor else (number > param.value):
                side = "up" if param.floor else "down"
                raise LooserParameter(f"`{name}` is {number:f}, looser than the policy's {param.value:f}: it may only go {side}")
            if number < param.minimum or (param.maximum is not None and number > param.maximum):
                top = "no limit" if param.maximum is None else f"{param.maximum:f}"
                raise LooserParameter(f"`{name}` is {number:f}: the metric goes from {param.minimum:f} to {top}")
            numbers[name] = number
        return MappingProxyType(numbers)

    return effective
