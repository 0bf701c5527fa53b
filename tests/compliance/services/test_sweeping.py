"""Tidying writes down what the clock has decided; nothing waits for it, and it does nothing twice."""

import threading
from datetime import timedelta

import pytest
from django.db import connections

from compliance.models import GrantEvent, OutboxMessage, RoleMembership
from compliance.selectors.grants import standing_of
from compliance.services.accounts import deactivate_account, reset_factors
from compliance.services.requests import RequestExpired
from compliance.services.roles import end_role
from compliance.services.stopping import suspend_grant
from compliance.services.sweeping import Swept, begin_grant, sweep
from compliance.tasks import sweep_grants
from compliance.vocabulary import EffectiveStatus, GrantStatus, NoticeKind, RequestStatus
from evaluations.kernel.clock import now
from tests.support import grants, signing, world

NOTHING = Swept(begun=0, suspended=0, expired=0, closed=0, waivers_ended=0)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL, settings.NOTICE_CHAT_URLS = "mailto://127.0.0.1", []


@pytest.mark.django_db
def test_what_the_clock_has_decided_is_written_down_once() -> None:
    land = signing.ground()
    short, long = signing.granted(land, days=20), signing.granted(land, days=60)
    asked = signing.ask(land)
    assert sweep(at=now()) == NOTHING
    assert sweep(at=asked.expires_at - SECOND) == NOTHING
    assert sweep(at=asked.expires_at) == NOTHING._replace(closed=1)
    assert (asked.reload().status, asked.closed_at) == (RequestStatus.EXPIRED, asked.expires_at)
    assert grants.told(NoticeKind.REQUEST_DECIDED) >= grants.people(land.asker)
    assert not standing_of(short, at=short.ends_at).usable
    assert sweep(at=short.ends_at) == NOTHING._replace(expired=1)
    assert (short.reload().status, short.cause) == (GrantStatus.EXPIRED, "ended")
    assert sweep(at=long.recertify_by) == NOTHING._replace(suspended=1)
    assert (long.reload().status, long.cause) == (GrantStatus.SUSPENDED, "recertification_missed")
    assert grants.told(NoticeKind.GRANT_SUSPENDED) == grants.people(land.asker, land.owner)
    assert sweep(at=long.recertify_by) == NOTHING
    assert sweep(at=long.ends_at) == NOTHING._replace(expired=1)
    assert list(long.events.values_list("move", flat=True)) == ["made", "suspended", "expired"]
    assert GrantEvent.objects.count() == 5


@pytest.mark.django_db
def test_a_request_that_ran_out_is_not_signed_whatever_its_row_says(monkeypatch) -> None:
    land = signing.ground()
    asked = signing.ask(land)
    signing.sign(land.owner, asked)
    monkeypatch.setattr("compliance.services.sign_offs.now", lambda: asked.expires_at)
    with pytest.raises(RequestExpired):
        signing.sign(land.security, asked)
    assert asked.reload().status == RequestStatus.OPEN


@pytest.mark.django_db
def test_a_later_start_begins_when_it_has_come() -> None:
    land = signing.ground()
    grant = grants.starting(land)
    assert standing_of(grant, at=now()).status == EffectiveStatus.NOT_BEGUN
    assert sweep(at=grant.starts_at - SECOND) == NOTHING
    assert begin_grant(actor=world.ACTOR, grant=grant, at=grant.starts_at - SECOND).begun_at is None
    assert not standing_of(grant, at=grant.starts_at).usable
    assert sweep(at=grant.starts_at) == NOTHING._replace(begun=1)
    assert sweep(at=grant.starts_at) == NOTHING
    assert grant.reload().begun_at == grant.starts_at
    assert standing_of(grant, at=grant.starts_at).usable
    assert list(grant.events.values_list("move", flat=True)) == ["made", "begun"]
    assert grants.told(NoticeKind.GRANT_BEGAN) == grants.people(land.asker, land.owner)


@pytest.mark.django_db
def test_one_that_came_back_before_its_start_still_waits_for_it() -> None:
    land = signing.ground()
    grant = grants.starting(land)
    suspend_grant(actor=signing.actor_of(land.owner), grant=grant, reason="a doubt")
    grants.back(land, grant.reload())
    assert grant.reload().begun_at is None
    assert sweep(at=grant.starts_at) == NOTHING._replace(begun=1)


LEFT = {
    "account_inactive": lambda admin, owner: deactivate_account(actor=admin, user=owner, reason="left"),
    "signing_on_hold": lambda admin, owner: reset_factors(actor=admin, user=owner, reason="lost her phone"),
    "role_not_held": lambda admin, owner: end_role(actor=admin, membership=RoleMembership.objects.get(person=owner.person_id)),
}


@pytest.mark.django_db
@pytest.mark.parametrize("reason", LEFT)
def test_it_does_not_begin_once_a_signer_could_not_sign_it(reason: str) -> None:
    land = signing.ground()
    grant = grants.starting(land)
    LEFT[reason](signing.actor_of(grants.administrator()), land.owner)
    assert sweep(at=grant.starts_at) == NOTHING._replace(suspended=1)
    assert (grant.reload().status, grant.cause, grant.begun_at) == ("suspended", "signer_no_longer_eligible", None)
    (signer,) = grant.events.get(move="suspended").detail["signers"]
    assert signer["person"] == str(land.owner.person_id)
    assert reason in signer["reasons"]
    assert not standing_of(grant, at=grant.starts_at).usable


@pytest.mark.slow
def test_several_sweepers_at_once_do_each_thing_once(committed_db, run_tasks_inline) -> None:
    land = signing.ground()
    held = [signing.granted(land, days=20) for _ in range(3)]
    waiting = [grants.starting(land) for _ in range(3)]
    at = max(grant.ends_at for grant in held)
    done: list[Swept] = []
    ready = threading.Barrier(4)

    def work() -> None:
        ready.wait()
        done.append(sweep(at=at))
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert sum(one.expired for one in done) == 3
    for grant in held:
        assert list(grant.events.values_list("move", flat=True)) == ["made", "expired"]
    for grant in waiting:
        assert list(grant.events.values_list("move", flat=True)) == ["made", "begun"]
    assert OutboxMessage.objects.filter(kind=NoticeKind.GRANT_BEGAN, channel="mail").count() == 6
    assert sweep_grants.delay()
