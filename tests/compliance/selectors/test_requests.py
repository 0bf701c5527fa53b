"""What waits for whom: by roles, ownership, part taken, and what was said on the present dossier."""

from uuid import UUID

import pytest

from compliance.models import SignOffRequest, User
from compliance.selectors.requests import inbox
from compliance.selectors.sight import sight_of, visible_requests
from compliance.services.filing import request_activation
from compliance.services.sign_offs import refresh_dossier
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.clock import now
from policies.services.systems import register_system
from tests.support import signing, world

pytestmark = pytest.mark.django_db


def waiting(account: User) -> list[UUID]:
    at = now()
    return [row.uid for row in inbox(account.person_id, sight_of(account.person_id, at=at), at=at)]


def test_a_request_waits_for_those_whose_role_it_asks_for_until_they_have_said_yes_or_no() -> None:
    land = signing.ground()
    first, second = signing.ask(land), signing.ask(land, days=50)
    assert waiting(land.owner) == waiting(land.security) == [first.uid, second.uid]
    assert waiting(land.asker) == waiting(signing.human("Ada", Role.AUDITOR)) == []
    signing.sign(land.owner, first, Meaning.REVIEWED)
    assert waiting(land.owner) == [first.uid, second.uid]
    signing.sign(land.owner, first)
    assert waiting(land.owner) == [second.uid]
    signing.sign(land.owner, first, Meaning.WITHDRAWN)
    assert waiting(land.owner) == [first.uid, second.uid]
    signing.sign(land.security, second, Meaning.REJECTED)
    assert waiting(land.owner) == [first.uid]


def test_a_fresh_dossier_waits_again_for_those_who_signed_the_one_before() -> None:
    land = signing.ground()
    request = signing.ask(land)
    signing.sign(land.owner, request)
    run = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
    world.submit(world.submission("model-a", world.observation("93"), run=run))
    world.judge_all()
    assert waiting(land.owner) == []
    refresh_dossier(actor=signing.actor_of(land.security), request=request)
    assert waiting(land.owner) == [request.uid]


def test_a_system_owner_is_waited_for_only_where_her_team_owns_every_system() -> None:
    land = signing.ground()
    away = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    signing.human("Ivan Owner", Role.SYSTEM_OWNER, team="it")
    beside = register_system(actor=world.ACTOR, key="hr-test", title="HR test", domain="hr", owner="hr")
    both = signing.ask(land, systems=[land.system, beside])
    there = signing.ask(land, systems=[away], days=40)
    assert waiting(land.owner) == [both.uid]
    assert waiting(land.security) == [both.uid, there.uid]
    twofold = signing.human("Tia Twofold", Role.SYSTEM_OWNER, Role.SECURITY, team="it")
    assert waiting(twofold) == [both.uid, there.uid]


def test_nobody_is_waited_for_who_had_a_part_in_it_or_once_its_time_is_over() -> None:
    land = signing.ground()
    asker = signing.human("Super User", *Role, team="hr")
    request = signing.ask(land, account=asker)
    assert request.uid not in waiting(asker)
    at = request.expires_at
    assert not inbox(land.security.person_id, sight_of(land.security.person_id, at=at), at=at).exists()


def test_what_is_about_no_system_waits_for_every_owner_and_is_seen_by_her() -> None:
    land = signing.ground()
    approvers = [signing.human(f"Approver {letter}", Role.POLICY_APPROVER) for letter in "abcd"]
    version = world.propose_text(signing.fit_text(bar=85))
    request = request_activation(actor=signing.actor_of(approvers[0]), version=version, reason="stricter")
    assert request.uid in waiting(approvers[1])
    assert waiting(land.owner) == [request.uid]
    for account in (*approvers, land.owner, land.security):
        at = now()
        seen = visible_requests(sight_of(account.person_id, at=at))
        assert seen.filter(pk=request.pk).exists()
    assert SignOffRequest.objects.filter(pk=request.pk, status="open").exists()
