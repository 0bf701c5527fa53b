"""Which observations count for a clause, in the published order; the first failure is the reason shown.

identity → metric, benchmark, version, slice → run status → ruling → trust → provenance → attestation → n → errors → age

Three things are asked beside that order:

- a run that ended after `as_of` is not seen at all;
- a row whose number is not finite, out of the metric's range, or at odds with its counts can only have been written past
  every intake: it makes the rule an error (unless retracted), since nothing near it can be believed;
- an observation that clears everything but its age replaces earlier runs of the same source, benchmark version, slice
  and harness (as recorded; two runs without a harness count as one harness).

Weights. `FULL` clears the order. `AGED` fails on age alone. `WEAK` clears it up to attestation, but has too few samples,
too many errors or no date: it can no longer support a rule, but where it misses the bar it still speaks against the
subject, as an aged one does, so that adverse evidence does not expire by neglect.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from policies.language.compiled import Clause
from policies.language.facts import Candidate
from policies.language.results import ANY_DOMAIN, COMPLETE, Reason, Ruling

FULL, AGED, WEAK = 0, 1, 2

# Members of an enumeration are looked up through its class; plain texts are not. This is the inner loop.
_NO_DOMAIN = Reason.NO_DOMAIN.value
_NOT_YET_ENDED = Reason.NOT_YET_ENDED.value
_OTHER_KIND = Reason.OTHER_KIND.value
_OTHER_METRIC = Reason.OTHER_METRIC.value
_OTHER_BENCHMARK = Reason.OTHER_BENCHMARK.value
_NOT_COMPARABLE = Reason.NOT_COMPARABLE.value
_OTHER_SLICE = Reason.OTHER_SLICE.value
_RUN_NOT_COMPLETE = Reason.RUN_NOT_COMPLETE.value
_RETRACTED = Reason.RETRACTED.value
_VALUE_NOT_FINITE = Reason.VALUE_NOT_FINITE.value
_DISPUTED = Reason.DISPUTED.value
_DISPUTE_UPHELD = Reason.DISPUTE_UPHELD.value
_TRUST_TOO_LOW = Reason.TRUST_TOO_LOW.value
_PROVENANCE_TOO_WEAK = Reason.PROVENANCE_TOO_WEAK.value
_NOT_ATTESTED = Reason.NOT_ATTESTED.value
_SUPERSEDED = Reason.SUPERSEDED.value
_NO_DATE = Reason.NO_DATE.value
_TOO_OLD = Reason.TOO_OLD.value
_RULED_RETRACTED = Ruling.RETRACTED.value
_RULED_DISPUTED = Ruling.DISPUTED.value
_DISPUTES = frozenset({Ruling.DISPUTED.value, Ruling.DISPUTE_UPHELD.value})

_INSTANT = timedelta(microseconds=1)  # the resolution of our clock: the first instant at which an age limit is passed
_new = tuple.__new__  # builds a named tuple at half the cost of calling its class


class Weighed(NamedTuple):
    """An observation that bears on the clause. `value` is the rate with errors counted against the subject, `bound` its
    confidence bound (None where the statistic is the point, or too few samples), `measure` what is compared with a bar."""

    weight: int
    place: int
    candidate: Candidate
    value: Decimal
    bound: Decimal | None
    measure: Decimal


class Hearing(NamedTuple):
    """All candidates of a clause, weighed: the reason of each in the order given ("" qualifies), those that make the rule
    an error, those in dispute, those that speak, and the next instant at which time alone could change this."""

    reasons: tuple[str, ...]
    candidates: Sequence[Candidate]
    broken: Sequence[int]
    disputed: Sequence[int]
    live: Sequence[Weighed]
    due_at: datetime | None
    no_domain: bool = False


def hear(clause: Clause, candidates: Sequence[Candidate], domain: str, as_of: datetime) -> Hearing:
    """Weigh every candidate for one clause at one instant (in UTC)."""
    wanted_slice = clause.slice
    if clause.by_domain:
        if domain == ANY_DOMAIN:
            return Hearing((_NO_DOMAIN,) * len(candidates), candidates, (), (), (), None, True)
        wanted_slice = domain
    if not candidates:
        return _SILENCE
    reasons: list[str] = []
    broken: list[int] = []
    disputed: list[int] = []
    live: list[Weighed] = []
    unseen: datetime | None = None  # the earliest run that has not ended yet
    oldest: datetime | None = None  # the first of the qualifying observations to grow too old
    oldest_allowed = None if clause.max_age is None else as_of - clause.max_age
    for place, item in enumerate(candidates):
        (
            _, _, _, _, trust, provenance, attested, metric, benchmark, version, slice_, value, _, k, n, _, errored,
            unscored, run_status, ended_at, _, _, about, identity_problem, ruling, _,
        ) = item  # fmt: skip
        if ended_at is not None and ended_at > as_of:
            reason = _NOT_YET_ENDED
            if unseen is None or ended_at < unseen:
                unseen = ended_at
        elif identity_problem:
            reason = identity_problem
        elif about != clause.about:
            reason = _OTHER_KIND
        elif metric != clause.metric:
            reason = _OTHER_METRIC
        elif benchmark != clause.benchmark:
            reason = _OTHER_BENCHMARK
        elif version not in clause.versions:
            reason = _NOT_COMPARABLE
        elif slice_ != wanted_slice:
            reason = _OTHER_SLICE
        elif run_status != COMPLETE:
            reason = _RUN_NOT_COMPLETE
        elif ruling == _RULED_RETRACTED:
            reason = _RETRACTED
        elif not value.is_finite() or (k is not None and not k.is_finite()):
            reason = _VALUE_NOT_FINITE
            broken.append(place)
        else:
            reason, is_broken, rate, bound, measure = clause.assess(value, k, n, errored, unscored)
            if is_broken:
                broken.append(place)
            elif ruling in _DISPUTES:
                reason = _DISPUTED if ruling == _RULED_DISPUTED else _DISPUTE_UPHELD
                disputed.append(place)
            elif trust not in clause.trusted:
                reason = _TRUST_TOO_LOW
            elif provenance not in clause.proven:
                reason = _PROVENANCE_TOO_WEAK
            elif clause.require_attestation and not attested:
                reason = _NOT_ATTESTED
            else:
                weight = FULL
                if reason:
                    weight = WEAK
                elif oldest_allowed is not None:
                    if ended_at is None:
                        reason, weight = _NO_DATE, WEAK
                    elif ended_at < oldest_allowed:
                        reason, weight = _TOO_OLD, AGED
                    elif oldest is None or ended_at < oldest:
                        oldest = ended_at
                live.append(_new(Weighed, (weight, place, item, rate, bound, measure)))
        reasons.append(reason)
    # Two runs of different sources are by far the most common case beside one, and neither can replace the other.
    if disputed or len(live) > 2 or (len(live) == 2 and live[0][2].source == live[1][2].source):
        _supersede(candidates, reasons, disputed, live)
        # What is replaced has no age that matters.
        ends = [entry.candidate.ended_at for entry in live if entry.weight == FULL]
        oldest = min((end for end in ends if end is not None), default=None)
    due_at = unseen
    if oldest is not None and clause.max_age is not None:
        expiry = oldest + clause.max_age + _INSTANT
        due_at = expiry if unseen is None or expiry < unseen else unseen
    return _new(Hearing, (tuple(reasons), candidates, broken, disputed, live, due_at, False))


_SILENCE = Hearing((), (), (), (), (), None)


def _supersede(
    candidates: Sequence[Candidate],
    reasons: list[str],
    disputed: list[int],
    live: list[Weighed],
) -> None:
    """Take out the observations that a later run has replaced; changes the lists in place.

    Only a run that clears everything but its age replaces another: were a weaker one enough, a source could wash its
    adverse run away with one that proves nothing. What is replaced loses its dispute too: it is no longer relied on. A
    broken row stays: it is no measurement that another could replace.
    """
    places = [entry[1] for entry in live]
    places += disputed
    later = [entry.candidate for entry in live if entry.weight != WEAK and entry.candidate.run_ended]
    gone = set()
    for place in places:
        item = candidates[place]
        if item.run_ended and any(_replaces(newer, item) for newer in later):
            gone.add(place)
            reasons[place] = _SUPERSEDED
    if gone:
        live[:] = [entry for entry in live if entry.place not in gone]
        disputed[:] = [place for place in disputed if place not in gone]


def _replaces(newer: Candidate, item: Candidate) -> bool:
    if newer.evidence == item.evidence or newer.ended_at is None or item.ended_at is None:
        return False
    if newer.source != item.source or newer.harness != item.harness or newer.version != item.version:
        return False
    if newer.ended_at != item.ended_at:
        return newer.ended_at > item.ended_at
    # Two that name each other are a contradiction, and neither wins.
    return newer.supersedes == item.evidence and item.supersedes != newer.evidence
