"""How a grant stands is read from the row and the clock, to the second, whatever a sweeper has got round to."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compliance.models import Grant
from compliance.selectors.grants import find_grants, grants_in_scope, live_grants_on, standing_of, with_standing
from compliance.selectors.sight import sight_of
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.vocabulary import EffectiveStatus, GrantKind, GrantStatus, Role, StopScope
from evaluations.kernel.clock import now
from evaluations.services.subjects import register_subject
from policies.services.systems import register_system
from tests.support import grants, signing, world

SECOND = timedelta(seconds=1)
STARTS = datetime(2026, 10, 1, 12, tzinfo=UTC)
DAYS_30 = timedelta(days=30)


def row(**changes: object) -> Grant:
    return Grant(
        **{
            "status": GrantStatus.ACTIVE,
            "cause": "signed",
            "starts_at": STARTS,
            "begun_at": STARTS,
            "ends_at": STARTS + DAYS_30,
            "recertify_by": STARTS + timedelta(days=20),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("changes", "at", "status", "cause", "until"),
    [
        ({}, STARTS, "active", "signed", STARTS + timedelta(days=20)),
        ({}, STARTS - SECOND, "not_begun", "not_begun", STARTS),
        ({"begun_at": None}, STARTS + SECOND, "not_begun", "not_begun", None),
        ({}, STARTS + timedelta(days=20) - SECOND, "active", "signed", STARTS + timedelta(days=20)),
        ({}, STARTS + timedelta(days=20), "suspended", "recertification_missed", STARTS + DAYS_30),
        ({"recertify_by": None}, STARTS + DAYS_30 - SECOND, "active", "signed", STARTS + DAYS_30),
        ({"recertify_by": None}, STARTS + DAYS_30, "expired", "ended", None),
        ({"status": "suspended", "cause": "stopped"}, STARTS, "suspended", "stopped", STARTS + DAYS_30),
        ({"status": "suspended", "cause": "stopped"}, STARTS + DAYS_30, "expired", "ended", None),
        ({"status": "revoked", "cause": "taken_back"}, STARTS - timedelta(hours=1), "revoked", "taken_back", None),
        ({"status": "expired", "cause": "ended"}, STARTS + SECOND, "expired", "ended", None),
    ],
)
def test_a_grant_stands_as_row_and_clock_say(
    changes: dict, at: datetime, status: str, cause: str, until: datetime | None
) -> None:
    standing = standing_of(row(**changes), at=at)
    assert (standing.status, standing.cause, standing.until) == (status, cause, until)
    assert standing.usable == (status == "active")


def test_30_days_across_the_end_of_summer_time_are_exactly_2_592_000_seconds() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    starts = datetime(2026, 10, 10, 14, tzinfo=berlin).astimezone(UTC)
    held = row(starts_at=starts, begun_at=starts, ends_at=starts + DAYS_30, recertify_by=None)
    last = starts + timedelta(seconds=2_592_000)
    assert standing_of(held, at=last - SECOND).usable
    assert not standing_of(held, at=last).usable
    assert held.ends_at.astimezone(berlin).hour == 13


@pytest.mark.django_db
def test_the_database_filters_by_the_same_standing() -> None:
    land = signing.ground()
    grant = signing.granted(land, days=60)
    instants = [
        grant.starts_at - SECOND,
        grant.starts_at,
        grant.recertify_by - SECOND,
        grant.recertify_by,
        grant.ends_at - SECOND,
        grant.ends_at,
    ]
    for change in (None, suspend_grant, revoke_grant):
        if change is not None:
            change(actor=signing.actor_of(land.owner), grant=grant, reason="to be sure")
            grant.refresh_from_db()
        for at in instants:
            (held,) = with_standing(Grant.objects.all(), at=at)
            assert held.standing == standing_of(grant, at=at).status, (grant.status, at)


@pytest.mark.django_db
def test_who_could_write_then_is_told_by_history_in_one_statement() -> None:
    land = signing.ground()
    sight = sight_of(land.owner.person_id, at=now())

    def could(at: datetime, **more: str) -> list[Grant]:
        with CaptureQueriesContext(connection) as queries:
            found = list(find_grants(sight, now=now(), system="hr-prod", at=at, **more).order_by("-id"))
            assert [held.system_keys for held in found] == [["hr-prod"]] * len(found)
            assert all(held.subject_version.subject.key == "model-a" for held in found)
        assert len(queries) == 1
        return found

    before = now()
    grant = signing.granted(land)
    other = signing.granted(land)
    granted = now()
    suspend_grant(actor=signing.actor_of(land.owner), grant=grant, reason="a doubt")
    suspended = now()
    grants.back(land, grant.reload())
    again = now()
    revoke_grant(actor=signing.actor_of(land.owner), grant=grant.reload(), reason="no longer needed")
    assert could(before) == []
    assert could(granted) == [other, grant]
    assert could(suspended) == [other]
    assert could(again) == [other, grant]
    assert could(now()) == [other]
    assert could(again, status=EffectiveStatus.REVOKED) == [grant]
    # Certified anew only since it came back: before that, its old date counted.
    assert could(grant.recertify_by + SECOND) == []


@pytest.mark.django_db
def test_lists_are_filtered_and_narrowed_to_what_one_sees() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    opened = grants.glass(land).grant
    stranger = signing.human("Nils Nobody", Role.REQUESTER, team="elsewhere")

    def found(account: object = land.security, **filters: object) -> set[Grant]:
        return set(find_grants(sight_of(account.person_id, at=now()), now=now(), **filters))

    assert found() == {grant, opened}
    assert found(kind=GrantKind.BREAK_GLASS) == {opened}
    assert found(subject="model-a", status=EffectiveStatus.ACTIVE) == {grant, opened}
    assert found(subject="model-b") == found(system="hr-prod-2") == found(status=EffectiveStatus.EXPIRED) == set()
    assert found(land.asker) == {grant}
    assert found(stranger) == set()


@pytest.mark.django_db
def test_a_grant_reaches_exactly_what_it_names() -> None:
    land = signing.ground()
    grant = signing.granted(land)
    neighbour = register_system(actor=world.ACTOR, key="hr-prod-2", title="HR 2", domain="hr", owner="hr")
    (other,) = world.register("model-ab")
    exact = {"subject_version_id": land.version.pk, "system_id": land.system.pk, "action": "write", "at": now()}
    assert live_grants_on(**exact) == [grant]
    for change in (
        {"subject_version_id": other.pk},
        {"system_id": neighbour.pk},
        {"action": "delete"},
        {"action": "writ"},
        {"at": grant.ends_at},
    ):
        assert live_grants_on(**{**exact, **change}) == []


@pytest.mark.django_db
def test_a_stop_reaches_what_lies_behind_a_route() -> None:
    register_subject(actor=world.ACTOR, key="model-a", kind="model", provider="acme", candidate=True)
    land = signing.ground()
    grant, later = signing.granted(land), grants.starting(land)
    opened = grants.glass(land, subject_version=grants.agent(land)).grant

    def stopped(scope: StopScope, key: str) -> set[Grant]:
        return set(grants_in_scope(scope, key, at=now()))

    assert stopped(StopScope.SUBJECT, "model-a") == stopped(StopScope.PROVIDER, "acme") == {grant, later, opened}
    assert stopped(StopScope.SYSTEM, "hr-prod") == stopped(StopScope.ALL, "") == {grant, later, opened}
    assert stopped(StopScope.SUBJECT, "hr-agent") == {opened}
    assert stopped(StopScope.BENCHMARK, "bench") == {grant, later}
    for scope in (StopScope.SUBJECT, StopScope.SYSTEM, StopScope.PROVIDER, StopScope.BENCHMARK):
        assert stopped(scope, "nothing") == set()
    assert not grants_in_scope(StopScope.ALL, "", at=later.ends_at + timedelta(days=90)).exists()
