"""Names settled: by a steward who saw what it touches, judged anew after the commit, with the grants named."""

import json
from itertools import count

import pytest

from compliance.models import Grant, LedgerEntry
from compliance.selectors.naming import touched_by
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.naming import NameMoved, settle_name
from compliance.services.registrations import RoleMissing
from compliance.services.sign_offs import SignerNotEligible
from compliance.vocabulary import Role
from evaluations.kernel.errors import InputRefused
from evaluations.models import AliasAssignment, Source
from evaluations.selectors.names import find_waiting_names
from policies.models import Verdict
from tests.support import grants, signing, world

LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}


_NUMBERS = count()


def steward():
    return signing.actor_of(signing.human(f"Stella Steward {next(_NUMBERS)}", Role.EVIDENCE_STEWARD))


def settle(name, means, actor=None, **more):
    seen = touched_by(name=name, source=more.get("source"), means=means).digest
    return settle_name(actor=actor or steward(), name=name, means=means, **{"seen": seen, **more})


@pytest.mark.django_db
class TestSettling:
    def test_a_steward_says_whom_it_means_and_nothing_waits_any_more(self) -> None:
        (mine,) = world.register("m")
        world.submit(world.submission("M (high)"))
        settled = settle("M (high)", mine, reason="the same snapshot")
        assert (settled.assignment.subject_version, settled.touched.landing) == (mine, 1)
        assert find_waiting_names()[:5] == []

    def test_nobody_takes_a_reason(self) -> None:
        world.register("m")
        world.submit(world.submission("other"))
        with pytest.raises(InputRefused, match="say why"):
            settle("other", None)
        assert settle("other", None, reason="a competitor's").assignment.subject_version is None

    def test_in_one_source_it_means_nothing_for_another(self) -> None:
        (mine,) = world.register("m")
        world.submit(world.submission("x"))
        source = Source.objects.get(key="lab")
        assert settle("x", mine, source=source).assignment.source == source

    @pytest.mark.parametrize("what", ["model", "agent"])
    def test_whoever_settled_a_name_signs_for_nobody_whom_its_evidence_clears(self, what: str) -> None:
        """One person says whom a name means: hers would be the word that clears, and a signature beside it."""
        land = signing.ground("70")
        eve = signing.human("Eve Both", Role.EVIDENCE_STEWARD, Role.SECURITY, team="sec")
        other = signing.human("Stella Other", Role.EVIDENCE_STEWARD, Role.SECURITY, team="sec")
        world.submit(world.submission("A (high)", world.observation("91"), run=LATER), "high.json")
        settle("unheard of", land.version, actor=signing.actor_of(other))
        settle("A (high)", land.version, actor=signing.actor_of(eve))
        if what == "agent":
            land = land._replace(version=grants.agent(land))
        world.judge_all()
        request = signing.ask(land)
        with pytest.raises(SignerNotEligible, match="name_settler"):
            signing.sign(eve, request)
        signing.sign(land.owner, request)
        assert signing.sign(other, request).completed

    @pytest.mark.parametrize("role", [Role.REQUESTER, Role.SECURITY, Role.AUDITOR])
    def test_another_role_is_refused(self, role: Role) -> None:
        (mine,) = world.register("m")
        with pytest.raises(RoleMissing):
            settle("x", mine, actor=signing.actor_of(signing.human("Otto Other", role)))
        assert not AliasAssignment.objects.filter(name_as_written="x").exists()

    def test_a_job_is_refused(self) -> None:
        (mine,) = world.register("m")
        with pytest.raises(RoleMissing):
            settle("x", mine, actor=world.ACTOR)

    def test_what_moved_since_it_was_shown_is_refused(self) -> None:
        (mine,) = world.register("m")
        world.submit(world.submission("x"))
        seen = touched_by(name="x", source=None, means=mine).digest
        world.submit(world.submission("x", run=LATER))
        with pytest.raises(NameMoved):
            settle("x", mine, seen=seen)
        assert settle("x", mine).touched.landing == 2

    def test_a_retry_repeats_and_another_statement_under_its_key_is_refused(self) -> None:
        mine, theirs = world.register("m", "t")
        person = steward()
        first = settle("x", mine, actor=person, idempotency_key="k")
        again = settle("x", mine, actor=person, idempotency_key="k", seen="sha256:" + "0" * 64)
        assert first.assignment == again.assignment
        with pytest.raises(IdempotencyKeyReused):
            settle("x", theirs, actor=person, idempotency_key="k")


def test_moving_a_name_lists_the_grant_it_touches_and_judges_anew_after_the_commit(
    committed_db, run_tasks_inline, settings
) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"
    land = signing.ground("84")
    grant = signing.granted(land)
    world.submit(world.submission("Model A (max)", world.observation("20"), run=LATER))
    touched = touched_by(name="Model A (max)", source=None, means=land.version)
    assert ([row.uid for row in touched.grants], touched.landing) == ([grant.uid], 1)
    assert {row.subject_version_id for row in touched.standings} == {land.version.pk}
    before = Verdict.objects.count()
    settle("Model A (max)", land.version)
    # The new number is worse than the one it was signed on: judged after the commit, and the grant stopped.
    assert Verdict.objects.count() > before
    assert Grant.objects.get(pk=grant.pk).status == "suspended"
    entry = LedgerEntry.objects.filter(action="alias.assigned").latest("id")
    assert json.loads(bytes(entry.content))["new"]["touches"] == [str(grant.uid)]
