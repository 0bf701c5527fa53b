"""Who must sign, who may, and whether enough have: one engine for grants, activations, waivers and rulings. Pure.

A quorum is a list of factors, all of which must be filled; a factor has places, and each place takes one person. Nobody
fills two places, whatever her roles: people are matched to places (a maximum matching by augmenting paths), so that
somebody who could fill either of two factors sits where she is needed. Two promises follow:

- the quorum is met exactly if some way to seat the people who approved fills every place;
- one more approval never takes a filled place away, and one fewer never fills one.

Nothing here knows an account, a clock or a request: the caller says who is barred and why, which roles count, what a
filter may read, and what each person said last.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import Any, NamedTuple

from policies.language.compiled import Factor, SignOffs
from policies.language.conditions import Answer, Condition, ask_values
from policies.language.results import EXCLUSIONS

_STRICTEST = SignOffs((), EXCLUSIONS, 5, 72)


class Meaning(StrEnum):
    """What a person's last word on a dossier means. `reviewed` and `withdrawn` are no verdict."""

    REVIEWED = "reviewed"
    APPROVED = "approved"
    ACCEPTED_RESIDUAL_RISK = "accepted_residual_risk"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


APPROVING: frozenset[str] = frozenset({Meaning.APPROVED, Meaning.ACCEPTED_RESIDUAL_RISK})
"""The meanings that fill a place."""

NO_VERDICT: frozenset[str] = frozenset({Meaning.REVIEWED, Meaning.WITHDRAWN})
"""The meanings that leave a person free to sign."""


class Hindrance(StrEnum):
    """Why a signature would not count, beside the caller's own codes. The two of a filter are followed by `:<factor>`."""

    UNKNOWN_PERSON = "unknown_person"
    NO_ROLE = "no_role"
    FILTER_EXCLUDES = "filter_excludes"
    FILTER_ERROR = "filter_error"
    ALREADY_SIGNED = "already_signed"
    NOT_NEEDED = "not_needed"
    ENDED_BY_REJECTION = "ended_by_rejection"


class Candidate(NamedTuple):
    """Somebody who might sign. `roles` are those that count for this request; `barred` says why she may not sign at all.

    `asks` holds what filters read, one nested mapping (see `conditions.ask_values`, with `signer`) for each system: a
    filter must be true in every one.
    """

    person: str
    roles: frozenset[str]
    asks: tuple[Mapping[str, Any], ...]
    barred: tuple[str, ...]


class Vote(NamedTuple):
    """A person's last event on the present dossier."""

    person: str
    meaning: str


class Seat(NamedTuple):
    """A person in one place of a factor; `number` counts from 1."""

    factor: str
    number: int
    person: str


class Assessment(NamedTuple):
    """Where a quorum stands.

    `met` is false as soon as anybody eligible has rejected (`rejected_by`). `open` counts the places of each factor that
    are still empty. `eligible` names everybody whose vote counts, with the factors she could fill; each of them may reject.
    `may_sign` names those who have given no verdict and whose approval would fill one more place, with the factors in
    which it could; nobody else's would, now or after further approvals. `may_not` names all others with the reasons.
    `lapsed` names those whose verdict does not count (they are barred, or no longer eligible), with the reasons.
    `can_be_met` says whether everybody eligible together would be enough.
    """

    met: bool
    rejected_by: tuple[str, ...]
    seats: tuple[Seat, ...]
    open: Mapping[str, int]
    eligible: Mapping[str, tuple[str, ...]]
    may_sign: Mapping[str, tuple[str, ...]]
    may_not: Mapping[str, tuple[str, ...]]
    lapsed: Mapping[str, tuple[str, ...]]
    can_be_met: bool


# Putting quorums together.


def unite(quorums: Sequence[SignOffs]) -> SignOffs:
    """Return the quorum that fulfils every one of several.

    Factors with the same role and filter become one with the largest number of signatures and the first one's name; a
    name that is taken gets the role appended. Exclusions add up; the shortest limits win. Within one quorum, two factors
    of the same role and filter ask for different people, so their numbers are added first. Uniting nothing gives a quorum
    without factors, which nobody can meet.
    """
    if not quorums:
        return _STRICTEST
    united: dict[tuple[str, str | None], Factor] = {}
    for quorum in quorums:
        for key, factor in _by_key(quorum.all_of).items():
            held = united.get(key)
            united[key] = factor if held is None else _asking(held, max(held.approve, factor.approve))
    return SignOffs(
        _named(united.values()),
        tuple(dict.fromkeys(word for quorum in quorums for word in quorum.exclude)),
        min(quorum.reauthenticate_within_minutes for quorum in quorums),
        min(quorum.request_expires_after_hours for quorum in quorums),
    )


def with_floor(quorum: SignOffs, factor: Factor) -> SignOffs:
    """Return the quorum with at least the signatures that a floor asks for."""
    return unite([quorum, _with_factors(quorum, (factor,))])


def with_more(quorum: SignOffs, factor: Factor) -> SignOffs:
    """Return the quorum with further signatures: as many as `factor` asks for, beside those of its role and filter."""
    return unite([_with_factors(quorum, (*quorum.all_of, factor))])


def _with_factors(quorum: SignOffs, factors: tuple[Factor, ...]) -> SignOffs:
    return SignOffs(factors, quorum.exclude, quorum.reauthenticate_within_minutes, quorum.request_expires_after_hours)


def _by_key(factors: Iterable[Factor]) -> dict[tuple[str, str | None], Factor]:
    keyed: dict[tuple[str, str | None], Factor] = {}
    for factor in factors:
        key = (factor.role, None if factor.filter is None else factor.filter.text)
        held = keyed.get(key)
        keyed[key] = factor if held is None else _asking(held, held.approve + factor.approve)
    return keyed


def _asking(factor: Factor, approve: int) -> Factor:
    return Factor(factor.factor, factor.role, approve, factor.filter)


def _named(factors: Iterable[Factor]) -> tuple[Factor, ...]:
    taken: dict[str, Factor] = {}
    for factor in factors:
        name = factor.factor
        if name in taken:
            name = longer = f"{name}-{factor.role}"
            numbers = count(2)
            while name in taken:
                name = f"{longer}-{next(numbers)}"
        taken[name] = Factor(name, factor.role, factor.approve, factor.filter)
    return tuple(taken.values())


# Assessing one.


def assess(quorum: SignOffs, candidates: Sequence[Candidate], votes: Sequence[Vote]) -> Assessment:
    """Say where a quorum stands, given everybody who might sign and what each said last (in the order of signing).

    Where a person has several votes, the last counts. Raises `ValueError` for a meaning that is not of `Meaning`, for two
    candidates that are one person, and for two factors of one name.
    """
    factors = quorum.all_of
    names = tuple(factor.factor for factor in factors)
    if len(set(names)) != len(names):
        raise ValueError(f"two factors have one name: {', '.join(names)}")
    said = _last_words(votes)
    standings = _standings(factors, candidates)
    able = {person: places for person, (places, reasons) in standings.items() if places and not reasons.barred}
    rejected_by = tuple(person for person, word in said.items() if word == Meaning.REJECTED and person in able)
    approved = [person for person, word in said.items() if word in APPROVING and person in able]
    seating = _Seating(factors, able)
    for person in approved:
        seating.seat(person)
    seats = seating.seats()
    still_open = seating.open()
    helpful = seating.helpful()
    # A factor that asks for nobody is no factor: an empty list approves nothing.
    sound = bool(factors) and all(factor.approve > 0 for factor in factors)
    met = sound and not rejected_by and not any(still_open.values())
    may_sign: dict[str, tuple[str, ...]] = {}
    may_not: dict[str, tuple[str, ...]] = {}
    for person, (places, reasons) in standings.items():
        if person not in able:
            may_not[person] = reasons.listed()
        elif said.get(person) in APPROVING:
            may_not[person] = (Hindrance.ALREADY_SIGNED.value,)
        elif rejected_by:
            may_not[person] = (Hindrance.ENDED_BY_REJECTION.value,)
        elif fitting := tuple(names[place] for place in places if place in helpful):
            may_sign[person] = fitting
        else:
            may_not[person] = (*reasons.listed(), Hindrance.NOT_NEEDED.value)
    for person in able:
        if said.get(person) not in APPROVING:
            seating.seat(person)
    return Assessment(
        met=met,
        rejected_by=rejected_by,
        seats=seats,
        open=still_open,
        eligible={person: tuple(names[place] for place in places) for person, places in able.items()},
        may_sign=may_sign,
        may_not=may_not,
        lapsed={
            person: may_not.get(person, (Hindrance.UNKNOWN_PERSON.value,))
            for person, word in said.items()
            if word not in NO_VERDICT and person not in able
        },
        can_be_met=sound and not rejected_by and not any(seating.open().values()),
    )


def _last_words(votes: Iterable[Vote]) -> dict[str, Meaning]:
    said: dict[str, Meaning] = {}
    for person, meaning in votes:
        said.pop(person, None)  # the order is that of the last words
        said[person] = Meaning(meaning)
    return said


class _Reasons(NamedTuple):
    barred: tuple[str, ...]
    others: tuple[str, ...]

    def listed(self) -> tuple[str, ...]:
        return (*self.barred, *self.others)


def _standings(factors: Sequence[Factor], candidates: Sequence[Candidate]) -> dict[str, tuple[tuple[int, ...], _Reasons]]:
    """Return for each person the factors that her role and the filters let her fill, and what stands against her."""
    standings: dict[str, tuple[tuple[int, ...], _Reasons]] = {}
    for candidate in candidates:
        if candidate.person in standings:
            raise ValueError(f"`{candidate.person}` stands among the candidates twice")
        places: list[int] = []
        against: list[str] = []
        asks: list[Mapping[str, Any]] | None = None
        answers: dict[str, Answer] = {}  # policies on one question tend to share their filters
        no_role = True
        for place, factor in enumerate(factors):
            if factor.role not in candidate.roles:
                continue
            no_role = False
            if factor.filter is None:
                places.append(place)
                continue
            if asks is None:
                asks = [ask_values(ask) for ask in candidate.asks]
            answer = answers.get(factor.filter.text) or _filtered(factor.filter, asks)
            answers[factor.filter.text] = answer
            if answer is Answer.TRUE:
                places.append(place)
            else:
                word = Hindrance.FILTER_ERROR if answer is Answer.ERROR else Hindrance.FILTER_EXCLUDES
                against.append(f"{word.value}:{factor.factor}")
        if no_role:
            against.append(Hindrance.NO_ROLE.value)
        standings[candidate.person] = (tuple(places), _Reasons(candidate.barred, tuple(against)))
    return standings


def _filtered(condition: Condition, asks: Sequence[Mapping[str, Any]]) -> Answer:
    """True in every ask; an error in any is an error, and so is nothing to ask about."""
    answers = {condition.evaluate(ask).answer for ask in asks}
    if not answers or Answer.ERROR in answers:
        return Answer.ERROR
    return Answer.FALSE if Answer.FALSE in answers else Answer.TRUE


class _Seating:
    """People in the places of factors: each in at most one, and as many as there can be of those who came."""

    def __init__(self, factors: Sequence[Factor], able: Mapping[str, tuple[int, ...]]) -> None:
        self.factors = factors
        self.able = able
        self.sitting: list[list[str]] = [[] for _ in factors]
        self.came: list[str] = []

    def seat(self, person: str) -> None:
        """Seat a person, moving others to places that they can fill too; whoever sits keeps a seat."""
        self.came.append(person)
        self._place(person, set())

    def _place(self, person: str, tried: set[int]) -> bool:
        for place in self.able[person]:
            if place in tried:
                continue
            tried.add(place)
            sitting = self.sitting[place]
            if len(sitting) < self.factors[place].approve:
                sitting.append(person)
                return True
            for at, other in enumerate(sitting):
                if self._place(other, tried):
                    sitting[at] = person
                    return True
        return False

    def helpful(self) -> set[int]:
        """Return the factors in which one more person would raise the number of filled places."""
        found = {place for place, factor in enumerate(self.factors) if len(self.sitting[place]) < factor.approve}
        grown = bool(found)
        while grown:
            grown = False
            for place, sitting in enumerate(self.sitting):
                if place not in found and any(not found.isdisjoint(self.able[person]) for person in sitting):
                    found.add(place)
                    grown = True
        return found

    def open(self) -> dict[str, int]:
        return {
            factor.factor: max(factor.approve - len(sitting), 0)
            for factor, sitting in zip(self.factors, self.sitting, strict=True)
        }

    def seats(self) -> tuple[Seat, ...]:
        """Return who sits where, within a factor in the order of signing."""
        order = {person: at for at, person in enumerate(self.came)}
        return tuple(
            Seat(factor.factor, number, person)
            for factor, sitting in zip(self.factors, self.sitting, strict=True)
            for number, person in enumerate(sorted(sitting, key=order.__getitem__), start=1)
        )
