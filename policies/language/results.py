"""The closed word lists of the language: what a rule can give, how it binds, and why. Every word is part of the published answer.

Words are added, never renamed: verdicts, exports and clients hold them.
"""

from enum import StrEnum


class Outcome(StrEnum):
    """What a judgement as a whole says. There is no third word: whatever is not a pass is a fail."""

    PASS = "pass"  # noqa: S105 - a word of the answer, no password
    FAIL = "fail"


class Result(StrEnum):
    """What one rule gives. Only `pass` passes."""

    PASS = "pass"  # noqa: S105 - a word of the answer, no password
    FAIL = "fail"
    MISSING = "missing"
    STALE = "stale"
    CONTESTED = "contested"
    ERROR = "error"


class Enforcement(StrEnum):
    """How a rule binds: `soft` may be covered by a waiver, `advisory` never decides."""

    HARD = "hard"
    SOFT = "soft"
    ADVISORY = "advisory"


WORST_FIRST: tuple[Result, ...] = (
    Result.ERROR,
    Result.CONTESTED,
    Result.MISSING,
    Result.STALE,
    Result.FAIL,
    Result.PASS,
)
"""The one meaning of "worst", everywhere."""

BADNESS: dict[str, int] = {word.value: place for place, word in enumerate(WORST_FIRST)}
"""Place of a result in `WORST_FIRST`: 0 is the worst."""


class Reason(StrEnum):
    """Why a rule gave its result, and why an observation does not count (or counts against). In the order of qualifying."""

    # A rule.
    MEETS_BAR = "meets_bar"
    MISSES_BAR = "misses_bar"
    EVIDENCE_DISAGREES = "evidence_disagrees"
    NO_EVIDENCE = "no_evidence"
    # An observation: does it speak about the question at all?
    NO_DOMAIN = "no_domain"
    NOT_YET_ENDED = "not_yet_ended"
    IDENTITY_UNRESOLVED = "identity_unresolved"
    IDENTITY_CONTESTED = "identity_contested"
    OTHER_KIND = "other_kind"
    OTHER_METRIC = "other_metric"
    OTHER_BENCHMARK = "other_benchmark"
    NOT_COMPARABLE = "not_comparable"
    OTHER_SLICE = "other_slice"
    RUN_NOT_COMPLETE = "run_not_complete"
    # Rulings, and rows that no intake would have let in.
    RETRACTED = "retracted"
    VALUE_NOT_FINITE = "value_not_finite"
    VALUE_OUT_OF_RANGE = "value_out_of_range"
    COUNTS_INCONSISTENT = "counts_inconsistent"
    DISPUTED = "disputed"
    DISPUTE_UPHELD = "dispute_upheld"
    # Is it good enough?
    TRUST_TOO_LOW = "trust_too_low"
    PROVENANCE_TOO_WEAK = "provenance_too_weak"
    NOT_ATTESTED = "not_attested"
    SUPERSEDED = "superseded"
    NO_SAMPLE_SIZE = "no_sample_size"
    TOO_FEW_SAMPLES = "too_few_samples"
    ERRORS_NOT_STATED = "errors_not_stated"
    TOO_MANY_ERRORS = "too_many_errors"
    NO_DATE = "no_date"
    TOO_OLD = "too_old"


REASON_ORDER: dict[str, int] = {reason.value: place for place, reason in enumerate(Reason)}
"""How far an observation came before it was turned away: a larger number is nearer to counting."""

IDENTITY_REASONS: tuple[Reason, ...] = (Reason.IDENTITY_UNRESOLVED, Reason.IDENTITY_CONTESTED)
"""What a caller may put into `Candidate.identity_problem`."""

ERROR_REASONS: frozenset[str] = frozenset({Reason.VALUE_NOT_FINITE, Reason.VALUE_OUT_OF_RANGE, Reason.COUNTS_INCONSISTENT})


class Note(StrEnum):
    """What a person should know beside the result."""

    DISAGREEMENT = "disagreement"  # all qualifying observations pass, with different values
    SETTLED_BY_PREFER = "settled_by_prefer"  # the policy's `prefer` named the source that decides a contest


class Ruling(StrEnum):
    """The ruling in force on an observation's evidence; the empty text means none."""

    NONE = ""
    DISPUTED = "disputed"
    DISPUTE_UPHELD = "dispute_upheld"
    DISPUTE_DISMISSED = "dispute_dismissed"
    RETRACTED = "retracted"


TRUST_TIERS: tuple[str, ...] = ("archive", "secondary", "vendor", "independent", "reproduced")
"""Who vouches, weakest first."""

PROVENANCES: tuple[str, ...] = ("claim", "reported", "run_log", "recounted")
"""What is held, weakest first."""

RUN_STATUSES: tuple[str, ...] = ("complete", "partial", "cancelled", "error", "running", "unscored", "unknown")
"""How the run ended; only `complete` qualifies."""

STATISTICS: tuple[str, ...] = ("lower_bound", "upper_bound", "point")
PROFILES: tuple[str, ...] = ("supplement", "conformance")
DRIFT_ACTIONS: tuple[str, ...] = ("suspend", "notify")
EXCLUSIONS: tuple[str, ...] = ("requester", "evidence_submitter", "policy_author")
ANY_DOMAIN = "any"
OVERALL_SLICE = "overall"
DOMAIN_SLICE = "resource.domain"
COMPLETE = "complete"
SEMANTICS = 1
"""The meaning under which this code compiles and judges. A change of meaning is a new number; the old code stays."""
