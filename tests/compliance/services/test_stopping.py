"""Taking access away: one person is enough, and coming back takes the quorum."""

import pytest

from compliance.models import Grant, GrantEvent, LedgerEntry, OutboxMessage
from compliance.services import stopping
from compliance.services.closing import MayNotClose
from compliance.services.filing import request_reinstatement
from compliance.services.grants import GrantNotLive
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.sign_offs import DossierChanged
from compliance.services.stopping import Stopped, revoke_grant, stop_grants, suspend_grant, suspend_grants
from compliance.vocabulary import GrantStatus, NoticeKind, Role
from evaluations.kernel.actor import service, system_job
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject
from evaluations.services.benchmarks import apply_register_benchmark
from evaluations.services.subjects import apply_register_subject
from policies.services.systems import register_system
from tests.support import grants, signing, world
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL, settings.NOTICE_CHAT_URLS = "mailto://127.0.0.1", []


def stop(land: Ground, scope: str = "system", key: str = "hr-prod", *, by: object = None, **more: object) -> Stopped:
    return stop_grants(actor=signing.actor_of(by or land.security), scope=scope, key=key, reason="it leaks", **more)


def test_one_person_stops_everything_in_a_scope_and_the_rest_goes_on() -> None:
    land = signing.ground()
    elsewhere = register_system(actor=world.ACTOR, key="hr-archive", title="Archive", domain="hr", owner="hr")
    held, later = signing.granted(land), grants.starting(land)
    other = signing.granted(land, systems=[elsewhere])
    done = stop(land)
    assert (done.count, set(done.uids)) == (2, {held.uid, later.uid})
    assert {grant.reload().status for grant in (held, later)} == {GrantStatus.SUSPENDED}
    assert other.reload().status == GrantStatus.ACTIVE
    events = GrantEvent.objects.filter(cause="stopped").order_by("grant_id")
    assert [(event.grant, event.move, event.detail["reason"], event.number) for event in events] == [
        (held, "suspended", "it leaks", 2),
        (later, "suspended", "it leaks", 2),
    ]
    (pulled,) = LedgerEntry.objects.filter(action="stop.pulled")
    assert b'"count":2' in bytes(pulled.content)
    assert pulled.target_id == events[0].detail["order"]
    # One notice a person, however many grants.
    assert grants.told(NoticeKind.STOP_PULLED) == grants.people(land.asker, land.owner)
    assert OutboxMessage.objects.filter(kind=NoticeKind.STOP_PULLED).count() == 2
    assert stop(land).count == 0


def test_it_comes_back_by_its_quorum_alone() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    stop(land, "all", "")
    grants.back(land, grant.reload())
    assert grant.reload().status == GrantStatus.ACTIVE
    assert list(grant.events.values_list("move", flat=True)) == ["made", "suspended", "reinstated"]


@pytest.mark.parametrize(
    ("scope", "key", "reached"),
    [
        ("all", "", True),
        ("subject", "model-a", True),
        ("subject", "model-b", False),
        ("system", "hr-prod", True),
        ("system", "hr-archive", False),
        ("provider", "acme", True),
        ("provider", "other", False),
        ("benchmark", "bench", True),
        ("benchmark", "another", False),
    ],
)
@pytest.mark.parametrize("what", ["model", "agent", "suspended"])
def test_a_stop_voids_what_was_signed_before_it(what: str, scope: str, key: str, reached: bool) -> None:
    """What is half signed has no grant that could be suspended: one signature would have brought it past the stop."""
    land = signing.ground()
    with service_transaction("test"):
        Subject.objects.filter(key="model-a").update(provider="acme")
        apply_register_subject(actor=world.ACTOR, key="model-b", kind="model", provider="other")
        apply_register_benchmark(actor=world.ACTOR, key="another", title="Another")
    register_system(actor=world.ACTOR, key="hr-archive", title="Archive", domain="hr", owner="hr")
    if what == "agent":
        land = land._replace(version=grants.agent(land))
        world.judge_all()
    if what == "suspended":
        grant = signing.granted(land)
        suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a look is needed")
        request = request_reinstatement(actor=signing.actor_of(land.asker), grant=grant.reload(), reason="looked at")
    else:
        request = signing.ask(land)
    signing.sign(land.owner, request)
    stop(land, scope, key)
    if not reached:
        assert signing.sign(land.security, request).completed
        return
    with pytest.raises(DossierChanged):
        signing.sign(land.security, request)
    assert request.reload().dossier.because == "changed: stops"
    assert not signing.sign(land.security, request).completed
    # Who knows of the stop may sign: it comes back by its quorum.
    assert signing.sign(land.owner, request).completed


@pytest.mark.parametrize(
    ("who", "scope", "key", "allowed"),
    [
        ("security", "all", "", True),
        ("administrator", "subject", "model-a", True),
        ("owner", "system", "hr-prod", True),
        ("owner", "subject", "model-a", False),
        ("owner", "all", "", False),
        ("other", "system", "hr-prod", False),
        ("asker", "system", "hr-prod", False),
    ],
)
def test_a_system_owner_stops_what_reaches_her_systems_alone(who: str, scope: str, key: str, allowed: bool) -> None:
    land = signing.ground()
    grant = signing.granted(land)
    accounts = {
        "security": land.security,
        "owner": land.owner,
        "asker": land.asker,
        "administrator": grants.administrator(),
        "other": signing.human("Otto Other", Role.SYSTEM_OWNER, team="it"),
    }
    if allowed:
        assert stop(land, scope, key, by=accounts[who]).count == 1
        return
    with pytest.raises(MayNotClose):
        stop(land, scope, key, by=accounts[who])
    assert grant.reload().status == GrantStatus.ACTIVE
    assert grants.entries("stop.refused") == 1


@pytest.mark.parametrize(("scope", "key"), [("system", "hr-prd"), ("all", "hr-prod"), ("provider", ""), ("everything", "")])
def test_a_misspelt_scope_is_told_and_not_taken_for_nothing(scope: str, key: str) -> None:
    land = signing.ground()
    with pytest.raises(InputRefused):
        stop(land, scope, key)


def test_the_same_order_again_is_the_same_stop() -> None:
    land = signing.ground()
    signing.granted(land)
    first = stop(land, idempotency_key="k-1")
    second = signing.granted(land)
    assert stop(land, idempotency_key="k-1") == first
    assert second.reload().status == GrantStatus.ACTIVE
    with pytest.raises(IdempotencyKeyReused):
        stop(land, "all", "", idempotency_key="k-1")


@pytest.mark.parametrize("change", [suspend_grant, revoke_grant])
def test_an_owner_closes_one_grant_once(change: object) -> None:
    land = signing.ground()
    grant = signing.granted(land)
    for nobody in (signing.actor_of(signing.human("Nils Nobody", Role.AUDITOR)), system_job("test")):
        with pytest.raises(MayNotClose):
            change(actor=nobody, grant=grant, reason="because")
    with pytest.raises(InputRefused):
        change(actor=signing.actor_of(land.owner), grant=grant, reason=" ")
    by_token = service("a-token", on_behalf_of=signing.actor_of(land.owner))
    closed = change(actor=by_token, grant=grant, reason="a doubt")
    assert (closed.status, closed.cause) == ("suspended" if change is suspend_grant else "revoked", "taken_back")
    assert grants.told(NoticeKind.GRANT_SUSPENDED) == grants.people(land.asker, land.owner)
    with pytest.raises(GrantNotLive):
        change(actor=by_token, grant=grant, reason="once more")


def test_whoever_asked_revokes_her_own_and_does_not_suspend() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    with pytest.raises(MayNotClose):
        suspend_grant(actor=signing.actor_of(land.asker), grant=grant, reason="pause")
    assert revoke_grant(actor=signing.actor_of(land.asker), grant=grant, reason="done").status == GrantStatus.REVOKED


def test_many_are_suspended_each_with_its_event_or_none(monkeypatch) -> None:
    land = signing.ground()
    elsewhere = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    held = [signing.granted(land) for _ in range(3)]
    foreign = grants.glass(land, systems=[elsewhere]).grant
    owner = signing.actor_of(land.owner)
    with pytest.raises(MayNotClose):
        suspend_grants(actor=owner, grants=[*held, foreign], reason="a doubt")
    assert Grant.objects.filter(status=GrantStatus.SUSPENDED).count() == 0
    revoke_grant(actor=owner, grant=held[2], reason="done")
    monkeypatch.setattr(stopping, "TOLD_APART", 1)
    assert suspend_grants(actor=owner, grants=held, reason="a doubt") == held[:2]
    assert grants.entries("grant.suspended") == GrantEvent.objects.filter(move="suspended").count() == 2
    titles = OutboxMessage.objects.filter(kind=NoticeKind.GRANT_SUSPENDED, title__startswith="2 grants")
    assert titles.count() == 2
