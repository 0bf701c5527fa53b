"""The shapes of a policy text, by pydantic: they validate, and they are the published JSON Schema for editors.

Leaves (`leaves`) are checked by functions of ours, so that each message is one plain sentence that says what to write
instead. What depends on names (metrics, clauses, rules, roles) is checked in `checks`; defaults that depend on a metric
are filled in by the compiler.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from policies.language.leaves import (
    Action,
    Bar,
    Confidence,
    Count,
    DriftAction,
    Expression,
    Fall,
    Flag,
    MaxAge,
    Name,
    Number,
    Positive,
    ResultWord,
    Share,
    Title,
    one_of,
    whole,
)
from policies.language.results import (
    EXCLUSIONS,
    OVERALL_SLICE,
    PROFILES,
    PROVENANCES,
    RUN_STATUSES,
    STATISTICS,
    TRUST_TIERS,
    Enforcement,
    Outcome,
    Ruling,
)

API_VERSION = "writegate/v1"
KIND = "DeploymentPolicy"


class Shape(BaseModel):
    """A mapping with known keys only."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=False, validate_by_alias=True)


class Metadata(Shape):
    name: Name
    title: Title
    references: list[Title] = []
    profile: Annotated[str, one_of(*PROFILES)] | None = None


class AppliesTo(Shape):
    actions: list[Action] = Field(min_length=1)
    when: Expression | None = None


class EvidenceClause(Shape):
    metric: Name
    benchmark: Name
    versions: list[Title] = Field(min_length=1)
    slice: Title = OVERALL_SLICE
    about: Annotated[str, one_of("model", "agent")] = "model"
    statistic: Annotated[str, one_of(*STATISTICS)] | None = None
    confidence: Confidence = Decimal("0.95")
    min_samples: Positive | None = None
    max_error_share: Share | None = None
    max_age_days: MaxAge
    min_trust: Annotated[str, one_of(*TRUST_TIERS)] = "independent"
    min_provenance: Annotated[str, one_of(*PROVENANCES)] = "reported"
    require_attestation: Flag = False
    prefer: list[Name] = []


class Branch(Shape):
    """Exactly one of `evidence` (with one of `at_least` and `at_most`), `all_of`, `any_of`."""

    evidence: Name | None = None
    at_least: Bar | None = None
    at_most: Bar | None = None
    all_of: list["Branch"] | None = Field(default=None, min_length=1)
    any_of: list["Branch"] | None = Field(default=None, min_length=1)


class RuleShape(Branch):
    id: Name
    enforcement: Annotated[str, one_of(*(word.value for word in Enforcement))] = Enforcement.HARD.value


class Forbid(Shape):
    id: Name
    when: Expression


class FactorShape(Shape):
    factor: Name
    role: Name
    approve: Annotated[int, whole(1, 100)]
    filter: Expression | None = None


class SignOffsShape(Shape):
    all_of: list[FactorShape] = Field(min_length=1)
    exclude: list[Annotated[str, one_of(*EXCLUSIONS)]] = list(EXCLUSIONS)
    reauthenticate_within_minutes: Annotated[int, whole(1, 1_440)] = 5
    request_expires_after_hours: Annotated[int, whole(1, 8_760)] = 72


class GrantShape(Shape):
    max_days: Annotated[int, whole(1, 3_650)]
    recertify_every_days: Annotated[int, whole(1, 3_650)]


class DriftShape(Shape):
    on_fail: DriftAction = "suspend"
    on_stale: DriftAction = "suspend"
    on_contested: DriftAction = "suspend"
    max_fall: dict[Name, Fall] = {}


class TestObservation(Shape):
    """What one made-up observation states; it qualifies in everything it does not state."""

    __test__ = False  # not a test class, whatever a test runner thinks of its name

    value: Number | None = None
    k: Number | None = None
    n: Positive | None = None
    repeats: Positive | None = None
    errored: Count | None = None
    unscored: Count | None = None
    age_days: Count | None = None
    source: Name | None = None
    trust: Annotated[str, one_of(*TRUST_TIERS)] | None = None
    provenance: Annotated[str, one_of(*PROVENANCES)] | None = None
    attested: Flag | None = None
    run_status: Annotated[str, one_of(*RUN_STATUSES)] | None = None
    version: Title | None = None
    slice: Title | None = None
    harness: Title | None = None
    ruling: Annotated[str, one_of(*(word.value for word in Ruling if word))] | None = None


class TestFact(TestObservation):
    """One observation, or `observations`, or the bare `result` of every rule on this clause."""

    observations: list[TestObservation] | None = Field(default=None, min_length=1)
    result: ResultWord | None = None


class Expectation(Shape):
    outcome: Annotated[str, one_of(*(word.value for word in Outcome))] | None = None
    rules: dict[Name, ResultWord] = {}


class TestCase(Shape):
    __test__ = False

    name: Title
    facts: dict[Name, TestFact] = {}
    expect: Expectation


class Spec(Shape):
    applies_to: AppliesTo = Field(alias="appliesTo")
    params: dict[Name, Number] = {}
    evidence: dict[Name, EvidenceClause] = {}
    rules: list[RuleShape] = []
    forbid: list[Forbid] = []
    sign_offs: SignOffsShape | None = None
    grant: GrantShape | None = None
    drift: DriftShape | None = None
    tests: list[TestCase] = []


class PolicyShape(Shape):
    """A Writegate policy."""

    api_version: Annotated[str, one_of(API_VERSION)] = Field(alias="apiVersion")
    kind: Annotated[str, one_of(KIND)]
    metadata: Metadata
    spec: Spec


class CasesShape(Shape):
    """A file of tests kept beside a long policy."""

    tests: list[TestCase] = Field(min_length=1)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy text, for editors. The compiler checks more than it can say."""
    schema = _without_null(PolicyShape.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Writegate policy"}


def _without_null(schema: Any) -> Any:
    """Return a schema in which nothing may be null: a policy leaves a key out instead."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(item) for key, item in schema.items() if not (key == "default" and item is None)}
    if schema.get("type") == "number" and isinstance(schema.get("default"), str):
        kept["default"] = float(schema["default"])  # pydantic writes a Decimal as text
    choices = [item for item in kept.get("anyOf", ()) if item != {"type": "null"}]
    if len(choices) == 1 and "anyOf" in kept:
        del kept["anyOf"]
        return {**choices[0], **kept}
    return {**kept, "anyOf": choices} if choices else kept
