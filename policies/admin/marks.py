"""How the closed words of verdicts look and read. The word is always there; symbol and colour repeat it."""

from typing import Any

from evaluations.kernel.display import Cell, Mark, chip
from evaluations.vocabulary import Domain
from policies.language.lint import Level
from policies.language.results import Note, Reason
from policies.vocabulary import ANY_DOMAIN, Result, Said, VersionState

RESULT_MARKS = {
    Result.PASS: Mark("passes", "pass", "check_circle"),
    Result.FAIL: Mark("fails", "fail", "cancel"),
    Result.MISSING: Mark("missing", "missing", "help"),
    Result.STALE: Mark("stale", "stale", "schedule"),
    Result.CONTESTED: Mark("contested", "contested", "compare_arrows"),
    Result.ERROR: Mark("error", "error", "error"),
}
STATE_MARKS = {
    VersionState.ACTIVE: Mark("active", "pass", "play_arrow"),
    VersionState.PROPOSED: Mark("proposed"),
    VersionState.RETIRED: Mark("retired"),
}
LINT_MARKS = {Level.BLOCK: Mark("blocks", "fail", "block"), Level.WARN: Mark("warns", "stale", "warning")}
REASON_WORDS: dict[str, str] = {
    "": "counts",
    Reason.NO_DOMAIN: "the policy asks per domain, and no system is meant",
    Reason.NOT_YET_ENDED: "the run ended after the instant judged",
    Reason.IDENTITY_UNRESOLVED: "it is not known who answered",
    Reason.IDENTITY_CONTESTED: "another model or harness may have answered",
    Reason.OTHER_KIND: "measured on the other of model and agent",
    Reason.OTHER_METRIC: "another metric",
    Reason.OTHER_BENCHMARK: "another benchmark",
    Reason.NOT_COMPARABLE: "a benchmark version that the policy does not name: not comparable",
    Reason.OTHER_SLICE: "another slice of the tasks",
    Reason.RUN_NOT_COMPLETE: "the run did not complete",
    Reason.RETRACTED: "retracted",
    Reason.VALUE_NOT_FINITE: "the value is no finite number",
    Reason.VALUE_OUT_OF_RANGE: "the value is outside the metric's range",
    Reason.COUNTS_INCONSISTENT: "the counts contradict one another",
    Reason.DISPUTED: "disputed, and not yet settled",
    Reason.DISPUTE_UPHELD: "the dispute was upheld",
    Reason.TRUST_TOO_LOW: "the source is not trusted enough",
    Reason.PROVENANCE_TOO_WEAK: "the provenance is too weak",
    Reason.NOT_ATTESTED: "not attested by a verified signature",
    Reason.SUPERSEDED: "a later run replaced it",
    Reason.NO_SAMPLE_SIZE: "n is not stated, so there is no bound",
    Reason.TOO_FEW_SAMPLES: "too few samples",
    Reason.ERRORS_NOT_STATED: "errored and unscored tasks are not stated",
    Reason.TOO_MANY_ERRORS: "too many errored or unscored tasks",
    Reason.NO_DATE: "no date is stated",
    Reason.TOO_OLD: "too old",
    # Reasons of rules.
    Reason.MEETS_BAR: "meets the bar",
    Reason.MISSES_BAR: "misses the bar",
    Reason.EVIDENCE_DISAGREES: "qualifying observations disagree about the bar",
    Reason.NO_EVIDENCE: "no observation is known",
}
NOTE_WORDS: dict[str, str] = {
    Note.DISAGREEMENT: "The qualifying observations all pass, with different values.",
    Note.SETTLED_BY_PREFER: "The policy's preferred source settled a contest.",
}


def result_chip(word: Any) -> Cell:
    """Render a result; an unknown word is an error, and is never hidden."""
    return chip(RESULT_MARKS.get(word, Mark(f"error: {word}", "error", "error")))


def state_chip(state: VersionState) -> Cell:
    return chip(STATE_MARKS[state])


def lint_chip(level: str) -> Cell:
    return chip(LINT_MARKS[Level(level)])


def reason_words(reason: str) -> str:
    return REASON_WORDS.get(reason, reason.replace("_", " "))


def said_words(word: str) -> str:
    """Return what a text says in a place, as a reader says it."""
    return str(Said(word).label) if word in Said.values else word


def domain_words(domain: str) -> str:
    if domain == ANY_DOMAIN:
        return "any"
    return str(Domain(domain).label) if domain in Domain.values else domain
