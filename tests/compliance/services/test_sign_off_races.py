"""Sign-offs under fire: whoever comes at the same moment, there is one outcome, one event, and no grant without its quorum."""

from datetime import timedelta
from functools import partial

import pytest

from compliance.models import Grant, GrantEvent, LedgerEntry, RoleMembership, SignOff, SignOffRequest, User
from compliance.services.accounts import deactivate_account, reactivate_account
from compliance.services.filing import request_reinstatement, request_renewal
from compliance.services.roles import end_role, give_role
from compliance.services.sign_offs import complete_request
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import Meaning, RequestStatus, Role
from evaluations.kernel.clock import now
from tests.support import signing
from tests.support.racing import Outcome, codes, racers
from tests.support.unsigned import unsigned_grants

# A short run each time, the long one where there is time for it.
ROUNDS = pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=pytest.mark.slow)])
AT_ONCE = 20


def signs(account: User, request: SignOffRequest, meaning: Meaning = Meaning.APPROVED) -> partial:
    """Return the call by which somebody signs what stands there now."""
    return partial(signing.sign, account, SignOffRequest.objects.get(pk=request.pk), meaning)


def told(request: SignOffRequest) -> list[str]:
    """Return how the request ended, by its entries."""
    ends = [f"request.{status}" for status in RequestStatus.values]
    return list(LedgerEntry.objects.filter(target_id=str(request.uid), action__in=ends).values_list("action", flat=True))


def live_role(account: User, role: Role) -> RoleMembership:
    return RoleMembership.objects.get(person=account.person_id, role=role, ends_at=None)


def assert_one_grant(request: SignOffRequest) -> Grant:
    grant = Grant.objects.get(request=request)
    assert list(GrantEvent.objects.filter(grant=grant).values_list("move", flat=True)) == ["made"]
    assert LedgerEntry.objects.filter(action="grant.made", target_id=str(grant.uid)).count() == 1
    assert told(request) == ["request.completed"]
    return grant


@pytest.mark.slow
@ROUNDS
def test_two_last_signatures_at_once_make_one_grant(committed_db, rounds: int) -> None:
    land = signing.ground()
    second = signing.human("Sara Second", Role.SECURITY, team="sec")
    with racers(2) as race:
        for number in range(rounds):
            request = signing.ask(land)
            if number % 2:
                # Either may be the last.
                outcomes = race.run(signs(land.owner, request), signs(land.security, request))
                assert codes(outcomes) == ["", ""]
                assert sorted(outcome.value.completed for outcome in outcomes) == [False, True]
            else:
                # One place is left, and two come for it.
                signing.sign(land.owner, request)
                outcomes = race.run(signs(second, request), signs(land.security, request))
                assert codes(outcomes) == ["", "request_closed"]
                assert SignOff.objects.filter(request=request).count() == 2
            assert_one_grant(request)
            assert unsigned_grants() == []


@pytest.mark.slow
@ROUNDS
def test_an_approval_against_a_rejection_ends_in_one_of_them(committed_db, rounds: int) -> None:
    land = signing.ground()
    second = signing.human("Sara Second", Role.SECURITY, team="sec")
    ends = set()
    with racers(2) as race:
        for _ in range(rounds):
            request = signing.ask(land)
            signing.sign(land.owner, request)
            outcomes = race.run(signs(land.security, request), signs(second, request, Meaning.REJECTED))
            assert codes(outcomes) == ["", "request_closed"]
            status = request.reload().status
            ends.add(status)
            if status == RequestStatus.COMPLETED:
                assert_one_grant(request)
            else:
                assert told(request) == ["request.rejected"]
                assert not Grant.objects.filter(request=request).exists()
            assert unsigned_grants() == []
    assert ends <= {RequestStatus.COMPLETED, RequestStatus.REJECTED}


@pytest.mark.slow
@ROUNDS
def test_twenty_who_complete_an_approved_request_at_once_get_one_grant(committed_db, rounds: int) -> None:
    """O-14: one approval, one effect."""
    land = signing.ground()
    root = signing.human("Ada Admin", Role.ADMINISTRATOR)
    by = signing.actor_of(root)
    with racers(AT_ONCE) as race:
        for _ in range(rounds):
            request = signing.ask(land)
            signing.sign(land.owner, request)
            # Her signature lapses, the last one is given, and her role comes back: signed by enough people, and still open.
            end_role(actor=by, membership=live_role(land.owner, Role.SYSTEM_OWNER))
            assert not signing.sign(land.security, request).completed
            give_role(actor=by, person=land.owner.person, role=Role.SYSTEM_OWNER)
            call = partial(complete_request, actor=signing.actor_of(land.asker), request=request)
            outcomes = race.run(*[call] * AT_ONCE)
            assert codes(outcomes) == [""] * AT_ONCE
            grant = assert_one_grant(request)
            assert {outcome.value.made_grant for outcome in outcomes} == {grant}
            assert unsigned_grants() == []


@pytest.mark.slow
@ROUNDS
def test_a_suspension_against_a_reinstatement_leaves_one_state_and_its_event(committed_db, rounds: int) -> None:
    land = signing.ground()
    grant = signing.granted(land)
    by = signing.actor_of(land.security)
    with racers(2) as race:
        for _ in range(rounds):
            if grant.reload().status == "active":
                suspend_grant(actor=by, grant=grant, reason="a look is needed")
            before = GrantEvent.objects.filter(grant=grant).count()
            request = request_reinstatement(actor=signing.actor_of(land.asker), grant=grant.reload(), reason="looked at")
            signing.sign(land.owner, request)
            suspends = partial(suspend_grant, actor=by, grant=grant, reason="stop")
            back, stopped = race.run(signs(land.security, request), suspends)
            assert back.value.completed
            assert stopped.refused in ("", "grant_not_live")
            moves = list(GrantEvent.objects.filter(grant=grant).order_by("number").values_list("move", flat=True))[before:]
            assert moves == ["reinstated"] + ["suspended"] * (not stopped.refused)
            assert grant.reload().status == ("active" if stopped.refused else "suspended")
            assert told(request) == ["request.completed"]
            assert unsigned_grants() == []


@pytest.mark.slow
@ROUNDS
def test_a_signer_who_goes_in_between_counts_or_does_not(committed_db, rounds: int) -> None:
    """Her account is closed, or a role ends, just as the last signature is given: before it or after it, never half."""
    land = signing.ground()
    by = signing.actor_of(signing.human("Ada Admin", Role.ADMINISTRATOR))
    goes = (
        ("account", land.owner, partial(deactivate_account, actor=by, user=land.owner, reason="left")),
        ("role", land.owner, None),
        ("role", land.security, None),
    )
    roles = {land.owner.pk: Role.SYSTEM_OWNER, land.security.pk: Role.SECURITY}
    with racers(2) as race:
        for number in range(rounds):
            what, who, leave = goes[number % len(goes)]
            request = signing.ask(land)
            signing.sign(land.owner, request)
            gone = leave or partial(end_role, actor=by, membership=live_role(who, roles[who.pk]))
            last, left = race.run(signs(land.security, request), gone)
            assert left.refused == ""
            _assert_before_or_after(request, last, signer_gone=who == land.security)
            assert unsigned_grants() == []
            if what == "account":
                reactivate_account(actor=by, user=who, reason="back")
            else:
                give_role(actor=by, person=who.person, role=roles[who.pk])


def _assert_before_or_after(request: SignOffRequest, last: Outcome, *, signer_gone: bool) -> None:
    if last.refused:
        assert signer_gone
        assert last.refused == "signer_not_eligible"
        assert SignOff.objects.filter(request=request).count() == 1
    elif last.value.completed:
        assert_one_grant(request)
        return
    else:
        assert not signer_gone
        assert last.value.state.assessment.lapsed
    assert request.reload().status == RequestStatus.OPEN
    assert request.expires_at > now()
    assert not Grant.objects.filter(request=request).exists()


@pytest.mark.slow
@ROUNDS
def test_of_two_renewals_signed_at_once_one_is_made(committed_db, rounds: int) -> None:
    land = signing.ground()
    second = signing.human("Sara Second", Role.SECURITY, team="sec")
    grant = signing.granted(land)
    with racers(2) as race:
        for _ in range(rounds):
            asked = [
                request_renewal(
                    actor=signing.actor_of(land.asker), grant=grant, ends_at=now() + timedelta(days=60), reason=f"renewal {name}"
                )
                for name in "ab"
            ]
            for request in asked:
                signing.sign(land.owner, request)
            outcomes = race.run(signs(land.security, asked[0]), signs(second, asked[1]))
            assert sorted(outcome.refused == "" for outcome in outcomes) in ([False, True], [True, True])
            (made,) = Grant.objects.filter(renews=grant)
            assert (made.status, grant.reload().status) == ("active", "expired")
            assert unsigned_grants() == []
            grant = made
