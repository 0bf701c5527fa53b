"""What a judge says: the result of each rule, the outcome, and the canonical core that a replay must give again."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from evaluations.kernel.errors import DomainError
from policies.language.facts import Candidate, Reasons, quoted, written_decimal, written_integer, written_moment
from policies.language.results import Reason


class NoVerdict(DomainError):
    """There is nothing to judge, which denies. `code` is `policy_has_no_requirements`, `route_not_closed` or `route_empty`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class RuleResult(NamedTuple):
    """What one rule (or one branch of it) gives, and the observation that decided it.

    `id` and `enforcement` are "" for branches. `reason` is a word of `results.Reason`. `measured` is the statistic
    that was compared with `bar`: None where nothing was measured (missing, stale, disputed, error). `value`, `bound`,
    `k`, `n`, `lost` (errored and unscored), `source` and `ended_at` are those of the deciding observation; `deciding`
    lists the uids of all evidence on the deciding side, worst first. `detail` is the word of the observation that
    `reason` is about (its version, tier, status, …). `model` names the route member that gave this result, "" for
    models. A rule of several branches shows its deciding branch here and all of them in `children`.
    """

    id: str
    enforcement: str
    result: str
    reason: str
    clause: str
    measured: Decimal | None
    value: Decimal | None
    bound: Decimal | None
    bar: Decimal
    k: Decimal | None
    n: int | None
    lost: int | None
    source: str
    ended_at: datetime | None
    detail: str
    deciding: tuple[str, ...]
    note: str
    model: str
    children: tuple["RuleResult", ...]


class Judgement(NamedTuple):
    """What a policy says about a subject version in a domain.

    `result` is the worst word among hard and soft rules. `blocking` names the rules that no waiver can cover; `waivable`
    the soft rules that failed with a measured value. `due_at` is the next instant at which time alone could change the
    judgement, None if it cannot. `reasons` holds, for "" (the subject) and each route member's version digest, the
    reason of each candidate by clause.
    """

    outcome: str
    result: str
    rules: tuple[RuleResult, ...]
    blocking: tuple[str, ...]
    waivable: tuple[str, ...]
    due_at: datetime | None
    reasons: Mapping[str, Reasons]
    policy_digest: str
    semantics: int
    params: Mapping[str, Decimal]
    subject_version_digest: str
    domain: str

    def core_bytes(self) -> bytes:
        """Return the canonical judgement core: all that was decided, without sentences and without the instant."""
        # Keys stand in canonical order; a test holds every byte against `canonical_bytes`.
        params = ",".join([f"{quoted(name)}:{written_decimal(self.params[name])}" for name in sorted(self.params)])
        return (
            f'{{"blocking":{_words(self.blocking)},"domain":{quoted(self.domain)},"due_at":{written_moment(self.due_at)},'
            f'"outcome":{quoted(self.outcome)},"params":{{{params}}},"policy_digest":{quoted(self.policy_digest)},'
            f'"result":{quoted(self.result)},"rules":{_rules(self.rules)},"semantics":{self.semantics},'
            f'"subject_version_digest":{quoted(self.subject_version_digest)},"waivable":{_words(self.waivable)}}}'
        ).encode()


def _words(words: tuple[str, ...]) -> str:
    return "[" + ",".join([quoted(word) for word in words]) + "]"


def _rules(results: tuple[RuleResult, ...]) -> str:
    return "[" + ",".join([_rule(result) for result in results]) + "]"


def _rule(item: RuleResult) -> str:
    (
        id_, enforcement, result, reason, clause, measured, value, bound, bar, k, n, lost, source, ended_at, detail, deciding,
        note, model, children,
    ) = item  # fmt: skip
    return (
        f'{{"bar":{written_decimal(bar)},"bound":{written_decimal(bound)},"children":{_rules(children)},'
        f'"clause":{quoted(clause)},"deciding":{_words(deciding)},"detail":{quoted(detail)},'
        f'"ended_at":{written_moment(ended_at)},"enforcement":{quoted(enforcement)},"id":{quoted(id_)},'
        f'"k":{written_decimal(k)},"lost":{written_integer(lost)},"measured":{written_decimal(measured)},"model":{quoted(model)},'
        f'"n":{written_integer(n)},"note":{quoted(note)},"reason":{quoted(reason)},"result":{quoted(result)},'
        f'"source":{quoted(source)},"value":{written_decimal(value)}}}'
    )


def lost_of(item: Candidate) -> int | None:
    """Return how many tasks errored or went unscored, None where neither is stated."""
    if item.errored is None:
        return item.unscored
    return item.errored + (item.unscored or 0)


_DETAIL_FIELDS: Mapping[str, str] = {
    Reason.OTHER_KIND: "about",
    Reason.OTHER_METRIC: "metric",
    Reason.OTHER_BENCHMARK: "benchmark",
    Reason.NOT_COMPARABLE: "version",
    Reason.OTHER_SLICE: "slice",
    Reason.RUN_NOT_COMPLETE: "run_status",
    Reason.TRUST_TOO_LOW: "trust",
    Reason.PROVENANCE_TOO_WEAK: "provenance",
    Reason.IDENTITY_UNRESOLVED: "subject_as_written",
    Reason.IDENTITY_CONTESTED: "subject_as_written",
}


def detail_of(reason: str, item: Candidate) -> str:
    """Return the word of an observation that a reason is about, "" where it is about none."""
    held = _DETAIL_FIELDS.get(reason)
    return str(getattr(item, held)) if held else ""
