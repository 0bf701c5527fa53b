"""Whatever an offline bundle allows, `decide` allows, then and as long as the bundle counts, in worlds to which anything happened."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compliance.client.offline import Bundle
from compliance.ledger.offline import seal_statement
from compliance.models import Grant, User
from compliance.services import decisions, offline
from compliance.services.accounts import deactivate_account
from compliance.services.sealing import keyring
from compliance.services.stopping import revoke_grant, suspend_grant
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError
from evaluations.services.agents import register_route
from evaluations.services.subjects import assign_alias, register_subject_version
from policies.services.systems import set_open_incident
from tests.support import grants, signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.offline import bundle_for
from tests.support.undoing import undone

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

LATER = [0, 29, 59, 61, 119, 121, 200, 299]
"""Seconds after its making at which a bundle is held against the gate."""


class World:
    """A world that things happen to, and how far ahead the clock is by which it is asked."""

    def __init__(self, land: signing.Ground, administrator: User) -> None:
        self.land, self.administrator = land, administrator
        self.ahead = timedelta(0)
        self.happened = 0

    def grant(self) -> None:
        signing.granted(self.land)

    def begin_later(self) -> None:
        grants.starting(self.land)

    def open_glass(self) -> None:
        grants.glass(self.land)

    def suspend(self) -> None:
        for grant in Grant.objects.filter(status="active"):
            suspend_grant(actor=signing.actor_of(self.land.security), grant=grant, reason="wait")

    def revoke(self) -> None:
        for grant in Grant.objects.filter(status="active")[:1]:
            revoke_grant(actor=signing.actor_of(self.land.security), grant=grant, reason="enough")

    def turn_incident(self) -> None:
        self.land.system.refresh_from_db()
        turned = not self.land.system.open_incident
        set_open_incident(actor=world.ACTOR, system=self.land.system, is_open=turned, reason="it happens")

    def guard(self) -> None:
        world.activate(world.propose_text(signing.GUARDED))

    def register_another_version(self) -> None:
        pin = {"snapshot": f"another {self.happened}"}
        register_subject_version(actor=world.ACTOR, subject=self.land.version.subject, pin=pin)

    def name(self) -> None:
        assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=self.land.version, reason="x")

    def withdraw_name(self) -> None:
        assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=None, reason="x")

    def withdraw_name_soon(self) -> None:
        soon = now() + self.ahead + timedelta(seconds=120)
        assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=None, reason="x", effective_from=soon)

    def route(self) -> None:
        register_route(actor=world.ACTOR, key="cheap", models=["model-a"])

    def tell_news(self) -> None:
        told = world.observation(str(82 + self.happened))
        world.submit(world.submission("model-a", told, run={"status": "running"}), f"{self.happened}.json")

    def judge(self) -> None:
        world.judge_all()

    def leave(self) -> None:
        deactivate_account(actor=signing.actor_of(self.administrator), user=self.land.owner, reason="left")

    def wait(self) -> None:
        self.ahead += timedelta(seconds=45)

    def wait_long(self) -> None:
        self.ahead += timedelta(days=29, hours=23, minutes=58)


ACTS: list[Callable[[World], None]] = [held for name, held in vars(World).items() if callable(held) and name != "__init__"]
QUESTIONS: list[dict[str, Any]] = [
    {"subject": "model-a"},
    {"subject": "model-a", "kind": "subject"},
    {"subject": "model-a", "kind": "agent"},
    {"subject": "model-a", "action": "delete"},
    {"subject": "model-a", "fingerprint": "own"},
    {"subject": "model-a", "fingerprint": "sha256:" + "ab" * 32},
    {"subject": "model-a@1"},
    {"subject": "model-a@2"},
    {"subject": "fast", "kind": "alias"},
    {"subject": "fast", "kind": "alias", "fingerprint": "own"},
    {"subject": "model-a", "kind": "alias"},
    {"subject": "cheap", "kind": "route"},
    {"subject": "cheap@1", "kind": "subject"},
]


@pytest.fixture
def administrator(land: signing.Ground) -> User:
    return grants.administrator()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(st.sampled_from(ACTS), max_size=7))
@example(acts=[World.name, World.withdraw_name_soon, World.judge])
@example(acts=[World.route, World.tell_news])
@example(acts=[World.wait_long])
@example(acts=[World.suspend, World.open_glass, World.guard])
def test_what_a_bundle_allows_the_gate_allows(
    acts: list[Callable[[World], None]], land: signing.Ground, administrator: User
) -> None:
    with undone():
        token = ask_token(land.asker)
        made = World(deepcopy(land), administrator)
        for act in (World.judge, World.grant, *acts):
            made.happened += 1
            # A refusal is an answer; what counts is what stands afterwards.
            with suppress(DomainError):
                act(made)
        _compare(made, token)


def _compare(made: World, token: str) -> None:
    at = now() + made.ahead
    with patch.object(offline, "now", lambda: at):
        stored = bundle_for(token, made.land.system)
    signed = seal_statement(bytes(stored.payload), keyring().current)
    clock = [at]
    bundle = Bundle.verified(signed, system="hr-prod", keys=[keyring().current.verifier], clock=lambda: clock[0])
    for seconds in LATER:
        clock[0] = at + timedelta(seconds=seconds)
        for asked in QUESTIONS:
            _hold_against(asked, bundle, token, clock[0], complete=not seconds, land=made.land)


def _hold_against(
    asked: dict[str, Any], bundle: Bundle, token: str, at: datetime, *, complete: bool, land: signing.Ground
) -> None:
    given = {"kind": "model", "action": "write", **asked}
    if given.get("fingerprint") == "own":
        given["fingerprint"] = land.version.digest
    offline_answer = bundle.check(given["subject"], given["action"], given.get("fingerprint"), type=given["kind"])
    if not (offline_answer or complete):
        return
    with patch.object(decisions, "now", lambda: at):
        gate = ask_gate(token, **given)
    assert gate.judgement.allowed or not offline_answer, (asked, codes_of(gate))
    if complete and given["kind"] != "alias":
        # A name that is to move before the bundle ends is the one thing that is left to those who ask.
        assert bool(offline_answer) is gate.judgement.allowed, asked
