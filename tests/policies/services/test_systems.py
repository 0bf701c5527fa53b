"""Systems: what is stated, changed and switched, each with its entry."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError

from compliance.models import LedgerEntry
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from policies.models import System
from policies.selectors.systems import system_digest
from policies.services.systems import SystemChanged, register_system, set_open_incident, update_system
from policies.signals import system_changed
from tests.support import world


def registered(**changes: Any) -> System:
    given = {"key": "hr-prod", "title": "HR production", "domain": "hr", "owner": "hr-platform", **changes}
    return register_system(actor=world.ACTOR, **given)


def entry(action: str) -> dict[str, Any]:
    return dict(json.loads(bytes(LedgerEntry.objects.filter(action=action).latest("id").content)))


@pytest.mark.django_db
class TestSystems:
    def test_what_is_stated_is_kept_and_recorded(self) -> None:
        system = registered(people_affected=900, holds_personal_data=True, money_at_stake_usd=Decimal("2500.50"))
        assert (system.people_affected, system.writes_per_day, system.money_at_stake_usd) == (900, None, Decimal("2500.50"))
        assert entry("system.registered")["new"]["money_at_stake_usd"] == "2500.5"
        assert registered() == system

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("domain", "payroll"),
            ("environment", "prod"),
            ("title", ""),
            ("title", "two\nlines"),
            ("owner", "HR"),
            ("people_affected", -1),
            ("people_affected", 10**10),
            ("people_affected", True),
            ("holds_personal_data", "yes"),
            ("reversible", None),
            ("money_at_stake_usd", Decimal("NaN")),
            ("money_at_stake_usd", Decimal(-1)),
            ("money_at_stake_usd", 2.5),
            ("key", "hr‐prod"),
        ],
    )
    def test_what_is_not_acceptable_is_named_when_registering_and_when_changing(self, field: str, value: Any) -> None:
        with pytest.raises(InputRefused) as refused:
            registered(**{field: value})
        assert [problem.field for problem in refused.value.problems] == [field]
        system = registered()
        with pytest.raises(InputRefused) as refused:
            update_system(actor=world.ACTOR, system=system, changes={field: value}, reason="because")
        assert field in [problem.field for problem in refused.value.problems]
        assert not LedgerEntry.objects.filter(action="system.changed").exists()

    def test_the_table_itself_refuses_money_that_is_none(self) -> None:
        system = registered()
        for value in (Decimal("NaN"), Decimal(-1), Decimal("0.0000001")):
            with pytest.raises(IntegrityError), service_transaction("test"):
                System.objects.filter(pk=system.pk).update(money_at_stake_usd=value)

    def test_a_change_tells_old_and_new_and_why(self) -> None:
        system = registered()
        changed = update_system(
            actor=world.ACTOR,
            system=system,
            changes={"reversible": True, "people_affected": 5, "title": system.title},
            reason="measured",
        )
        assert (changed.reversible, changed.people_affected) == (True, 5)
        told = entry("system.changed")
        assert told["old"] == {"reversible": False, "people_affected": None}
        assert told["new"] == {"reversible": True, "people_affected": 5, "reason": "measured"}

    def test_stating_what_stands_is_no_change(self) -> None:
        system = registered()
        update_system(actor=world.ACTOR, system=system, changes={"reversible": False}, reason="sure")
        assert not LedgerEntry.objects.filter(action="system.changed").exists()

    def test_a_change_needs_a_reason(self) -> None:
        system = registered()
        for act in (
            lambda reason: update_system(actor=world.ACTOR, system=system, changes={"title": "X"}, reason=reason),
            lambda reason: set_open_incident(actor=world.ACTOR, system=system, is_open=True, reason=reason),
        ):
            for reason in ("", "  ", "x" * 501):
                with pytest.raises(InputRefused, match="reason"):
                    act(reason)

    def test_who_saw_an_older_state_changes_nothing(self) -> None:
        system = registered()
        seen = system_digest(system)
        changed = update_system(actor=world.ACTOR, system=system, changes={"title": "New"}, reason="x", expected_digest=seen)
        with pytest.raises(SystemChanged):
            update_system(actor=world.ACTOR, system=system, changes={"title": "Newer"}, reason="x", expected_digest=seen)
        assert changed.reload().title == "New"
        assert LedgerEntry.objects.filter(action="system.refused").count() == 1

    def test_what_policies_read_is_announced_and_the_rest_is_not(self, django_capture_on_commit_callbacks: Any) -> None:
        system = registered()
        heard: list[int] = []

        def hear(system_id: int, **_: Any) -> None:
            heard.append(system_id)

        system_changed.connect(hear)
        try:
            for changes, count in (({"title": "X"}, 0), ({"domain": "email"}, 1), ({"reversible": True}, 2)):
                with django_capture_on_commit_callbacks(execute=True):
                    update_system(actor=world.ACTOR, system=system, changes=changes, reason="x")
                assert heard == [system.pk] * count
        finally:
            system_changed.disconnect(hear)

    def test_an_incident_is_opened_and_closed_once(self) -> None:
        system = registered()
        for is_open in (True, True, False, False):
            system = set_open_incident(
                actor=world.ACTOR, system=system, is_open=is_open, reason="payroll is down", link="https://status.example.org/7"
            )
            assert system.open_incident is is_open
        actions = LedgerEntry.objects.filter(action__startswith="incident.").order_by("id").values_list("action", flat=True)
        assert list(actions) == ["incident.opened", "incident.closed"]
        assert entry("incident.opened")["new"]["link"] == "https://status.example.org/7"
        with pytest.raises(InputRefused, match="address"):
            set_open_incident(actor=world.ACTOR, system=system, is_open=True, reason="x", link="javascript:alert(1)")
