"""Who may sign a dossier, and why not the others; where its quorum stands."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db.models import Q

from compliance.models import Dossier, Person, RoleMembership, SignOff, SignOffRequest, User
from compliance.selectors.access import held_signing_holds
from compliance.selectors.dossiers.base import Built, person_facts
from compliance.vocabulary import SECOND_FACTORS, Meaning, Role
from evaluations.kernel.actor import ActorKind
from policies.language.compiled import Factor, SignOffs
from policies.language.quorum import Assessment, Candidate, Vote, assess
from policies.models import System

ACCOUNT_INACTIVE = "account_inactive"
NO_SECOND_FACTOR = "no_second_factor"
SIGNING_ON_HOLD = "signing_on_hold"
ROLE_NOT_HELD = "role_not_held"
ROLE_GIVEN_BY_REQUESTER = "role_given_by_requester_or_self"


class LastWord(NamedTuple):
    """A person's last sign-off on a request. `void` where it is on another dossier than the present one."""

    sign_off: SignOff
    void: bool


class QuorumState(NamedTuple):
    """Where a request's quorum stands: the assessment by person id, the people in it, everybody's last word, and every word before."""

    assessment: Assessment
    people: dict[UUID, Person]
    last_words: dict[UUID, LastWord]
    candidates: dict[UUID, Candidate]
    sign_offs: Sequence[SignOff]


def read_quorum(
    request: SignOffRequest, built: Built, dossier: Dossier | None, *, at: datetime, only: Collection[UUID] | None = None
) -> QuorumState:
    """Return where the quorum of a dossier stands at an instant, over everybody who holds one of its roles.

    `dossier` is the one that signatures count on (None: nobody has signed). `only` narrows the people, for the question whether one
    person may sign. The number of queries does not grow with people.
    """
    given = list(SignOff.objects.filter(request=request).select_related("dossier", "reauthentication").order_by("id"))
    words = _last_words(given, dossier)
    roles = {factor.role for factor in built.quorum.all_of}
    people, candidates = _candidates(request, built, roles, at=at, words=words, only=only)
    return QuorumState(_assess(built, candidates, words), people, words, candidates, given)


def after_sign_off(state: QuorumState, built: Built, sign_off: SignOff) -> QuorumState:
    """Return where the quorum stands with one more sign-off on the present dossier, given under the locks of `state`."""
    given = [*state.sign_offs, sign_off]
    words = _last_words(given, sign_off.dossier)
    return state._replace(assessment=_assess(built, state.candidates, words), last_words=words, sign_offs=given)


def can_be_met(request: SignOffRequest, built: Built, *, at: datetime) -> Assessment:
    """Return the assessment of a dossier that nobody has signed: `can_be_met` says whether enough people could."""
    return read_quorum(request, built, None, at=at).assessment


def lapsed_seats(dossier: Dossier, *, at: datetime) -> dict[UUID, list[str]]:
    """Return, by person, why signers who fill a place of a dossier could not sign it at an instant; empty where all still could.

    Asked again when a grant begins: account, second factor, holds, and the role of the place.
    """
    seats = list(dossier.seats.select_related("factor", "sign_off"))
    words = {seat.person_id: LastWord(seat.sign_off, void=False) for seat in seats}
    systems = tuple(System.objects.filter(sign_off_requests__request=dossier.request_id).order_by("key"))
    factors = tuple(Factor(seat.factor.factor, seat.factor.role, seat.factor.approve, None) for seat in seats)
    nobody_barred = Built({}, b"", SignOffs(factors, (), 0, 0), {}, (), systems)
    roles = {factor.role for factor in factors}
    _, candidates = _candidates(dossier.request, nobody_barred, roles, at=at, words=words, only=set(words))
    lapsed: defaultdict[UUID, list[str]] = defaultdict(list)
    for seat in seats:
        candidate = candidates[seat.person_id]
        lapsed[seat.person_id] += candidate.barred
        if seat.factor.role not in candidate.roles:
            lapsed[seat.person_id].append(ROLE_NOT_HELD)
    return {person: reasons for person, reasons in lapsed.items() if reasons}


def _assess(built: Built, candidates: Mapping[UUID, Candidate], words: Mapping[UUID, LastWord]) -> Assessment:
    votes = [Vote(str(person), _counting(word.sign_off.meaning, built)) for person, word in words.items() if not word.void]
    return assess(built.quorum, list(candidates.values()), votes)


def _counting(meaning: str, built: Built) -> str:
    # Where a residual risk is to be accepted, only a signature that says so fills a place.
    if built.risk_accepted and meaning == Meaning.APPROVED:
        return Meaning.REVIEWED
    return meaning


def _last_words(given: Sequence[SignOff], dossier: Dossier | None) -> dict[UUID, LastWord]:
    last: dict[UUID, LastWord] = {}
    for sign_off in given:
        last.pop(sign_off.person_id, None)
        last[sign_off.person_id] = LastWord(sign_off, dossier is None or sign_off.dossier_id != dossier.pk)
    return last


def _candidates(
    request: SignOffRequest,
    built: Built,
    roles: set[str],
    *,
    at: datetime,
    words: Mapping[UUID, LastWord],
    only: Collection[UUID] | None,
) -> tuple[dict[UUID, Person], dict[UUID, Candidate]]:
    also = set(words)
    held = (
        RoleMembership.objects.filter(Q(role__in=roles) | Q(person__in=also), starts_at__lte=at)
        .filter(Q(ends_at=None) | Q(ends_at__gt=at))
        .select_related("team", "person__team")
        .order_by("person__created_at", "id")
    )
    if only is not None:
        held = held.filter(person__in=[*only, *also])
    memberships: defaultdict[UUID, list[RoleMembership]] = defaultdict(list)
    for membership in held:
        memberships[membership.person_id].append(membership)
    people = {person: rows[0].person for person, rows in memberships.items()}
    people.update({person.pk: person for person in Person.objects.filter(pk__in=also - set(people)).select_related("team")})
    accounts: defaultdict[UUID, set[int]] = defaultdict(set)
    for person, account in User.objects.filter(person__in=people, is_active=True).values_list("person_id", "pk"):
        accounts[person].add(account)
    open_accounts = [account for found in accounts.values() for account in found]
    factors = Authenticator.objects.filter(user__in=open_accounts, type__in=SECOND_FACTORS)
    strong = set(factors.values_list("user__person_id", flat=True))
    on_hold = held_signing_holds(person_ids=people, at=at)
    candidates: dict[UUID, Candidate] = {}
    for person, row in people.items():
        counted, given = _counted(memberships[person], request, built.systems)
        barred = []
        if person in built.excluded:
            barred.append(built.excluded[person])
        word = words.get(person)
        # A signature that was given with an account since closed is as doubtful as the account, whatever others she has.
        if person not in accounts or (word is not None and not word.void and word.sign_off.account_id not in accounts[person]):
            barred.append(ACCOUNT_INACTIVE)
        elif person not in strong:
            barred.append(NO_SECOND_FACTOR)
        if person in on_hold:
            barred.append(SIGNING_ON_HOLD)
        if given and not counted & roles:
            barred.append(ROLE_GIVEN_BY_REQUESTER)
        signer = person_facts(row, counted)
        facts = {"key": signer["key"], "team": signer["team"], "roles": signer["roles"]}
        asks = tuple({**ask, "signer": facts} for ask in built.asks)
        candidates[person] = Candidate(str(person), frozenset(counted), asks, tuple(barred))
    return people, candidates


def _counted(memberships: Sequence[RoleMembership], request: SignOffRequest, systems: Sequence[System]) -> tuple[set[str], bool]:
    """Return the roles that count for a request, and whether one was left out because of who gave it.

    A role that the requester or the person herself gave does not count. A system owner counts where her team (the one the role was
    given for, else her own) owns every system of the request.
    """
    owners = {system.owner for system in systems}
    counted: set[str] = set()
    left_out = False
    prefix = f"{ActorKind.PERSON.value}:"
    for membership in memberships:
        if membership.given_by in (f"{prefix}{membership.person_id}", f"{prefix}{request.requester_id}"):
            left_out = True
            continue
        if membership.role == Role.SYSTEM_OWNER and owners:
            team = membership.team or membership.person.team
            if team is None or owners != {team.key}:
                continue
        counted.add(membership.role)
    return counted, left_out
