"""Where a request stands: its places, who filled them, who still may, and why not the others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from compliance.models import QuorumFactor, Seat, SignOff, SignOffRequest
from compliance.selectors.actors import actor_names
from compliance.selectors.dossiers.base import Obstacle
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.requests import find_sign_offs, status_at
from compliance.selectors.signers import read_quorum
from compliance.vocabulary import RequestStatus


class Place(NamedTuple):
    """A place of a factor, the person in it, and her signature."""

    number: int
    person: UUID
    sign_off: UUID


class FactorStanding(NamedTuple):
    """One factor: so many with a role (and a filter), the places that are filled, and how many are open."""

    factor: str
    role: str
    approve: int
    filter: str
    seats: Sequence[Place]
    open: int


class Word(NamedTuple):
    """A person's last sign-off. `void` where it is on an earlier dossier, `lapsed` with the reasons why it does not count."""

    sign_off: SignOff
    void: bool
    lapsed: Sequence[str]


class RequestStanding(NamedTuple):
    """Where a request stands at an instant.

    `is_current` is false where the world has moved since the present dossier was recorded: whoever signs will be shown a new one, and
    the signatures here are void. Once the request is closed nobody may sign, `is_current` is None, and the seats are those on record.
    `names` are the printed names of all people here, by id, as far as they are kept.
    """

    status: str
    is_current: bool | None
    met: bool
    factors: Sequence[FactorStanding]
    may_sign: Mapping[UUID, Sequence[str]]
    may_not_sign: Mapping[UUID, Sequence[str]]
    words: Sequence[Word]
    obstacles: Sequence[Obstacle]
    reauthenticate_within_minutes: int | None
    names: Mapping[UUID, str]


def read_standing(request: SignOffRequest, *, at: datetime) -> RequestStanding:
    """Return where a request stands at an instant. Reads alone: a dossier that has changed is recorded when somebody signs."""
    status = status_at(request, at)
    if status != RequestStatus.OPEN or request.dossier is None:
        return _closed(request, status)
    built = build_dossier(request, at=at)
    is_current = built.digest == request.dossier.digest
    state = read_quorum(request, built, request.dossier if is_current else None, at=at)
    assessment = state.assessment
    seated = {
        name: [
            Place(seat.number, UUID(seat.person), state.last_words[UUID(seat.person)].sign_off.uid)
            for seat in assessment.seats
            if seat.factor == name
        ]
        for name in assessment.open
    }
    factors = [
        FactorStanding(
            factor.factor,
            factor.role,
            factor.approve,
            factor.filter.text if factor.filter else "",
            seated.get(factor.factor, []),
            assessment.open.get(factor.factor, 0),
        )
        for factor in built.quorum.all_of
    ]
    words = [
        Word(word.sign_off, word.void, () if word.void else assessment.lapsed.get(str(person), ()))
        for person, word in state.last_words.items()
    ]
    may_sign = {UUID(person): factors for person, factors in assessment.may_sign.items()}
    may_not = {UUID(person): reasons for person, reasons in assessment.may_not.items()}
    return RequestStanding(
        status,
        is_current,
        assessment.met,
        factors,
        may_sign,
        may_not,
        words,
        built.obstacles,
        built.quorum.reauthenticate_within_minutes,
        _names({request.requester_id, *may_sign, *may_not, *state.last_words}),
    )


def _closed(request: SignOffRequest, status: str) -> RequestStanding:
    last: dict[UUID, SignOff] = {}
    for sign_off in find_sign_offs(request=request).order_by("id"):
        last.pop(sign_off.person_id, None)
        last[sign_off.person_id] = sign_off
    seats: dict[int, list[Place]] = {}
    for seat in Seat.objects.filter(dossier=request.dossier_id).select_related("sign_off").order_by("factor_id", "number"):
        seats.setdefault(seat.factor_id, []).append(Place(seat.number, seat.person_id, seat.sign_off.uid))
    factors = [
        FactorStanding(
            factor.factor,
            factor.role,
            factor.approve,
            factor.filter,
            seats.get(factor.pk, []),
            factor.approve - len(seats.get(factor.pk, [])),
        )
        for factor in QuorumFactor.objects.filter(dossier=request.dossier_id).order_by("ordinal")
    ]
    words = [Word(sign_off, sign_off.dossier_id != request.dossier_id, ()) for sign_off in last.values()]
    met = status == RequestStatus.COMPLETED
    return RequestStanding(status, None, met, factors, {}, {}, words, (), None, _names({request.requester_id, *last}))


def _names(people: set[UUID]) -> dict[UUID, str]:
    found = actor_names([f"person:{person}" for person in sorted(people)])
    return {UUID(reference.partition(":")[2]): name for reference, name in found.items()}
