"""Drift: what moves under a standing grant stops it or is told, once, as the policies say."""

from datetime import timedelta

import pytest

from compliance.models import DriftNotice, Grant, GrantEvent, GrantReview, LedgerEntry, OutboxMessage, WaiverRevocation
from compliance.selectors.marks import due_grants
from compliance.selectors.proposals import AskedWaiver
from compliance.services.drift import JUDGED_WITHIN, Reviewed, review_grants
from compliance.vocabulary import GrantStatus, Meaning, NoticeKind, RequestKind
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Subject, SubjectVersion
from evaluations.services.agents import register_model
from evaluations.services.evidence import apply_rule_on_evidence, dispute_evidence
from evaluations.services.subjects import assign_alias, register_subject_version
from policies.services.rejudging import judge_everywhere
from policies.services.systems import update_system
from tests.support import signing, world
from tests.support.quorum import signed_request

pytestmark = pytest.mark.django_db

JOB = system_job("drift-check", task_id="t-1")
LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"


def news(value: object, subject: str = "model-a", **observed: object) -> None:
    """Submit a newer result and judge everybody."""
    world.submit(world.submission(subject, world.observation(str(value), **observed), run=LATER))
    world.judge_all()


def review(land: signing.Ground) -> Reviewed:
    return review_grants(actor=JOB, subject_version_ids=[land.version.pk])


def last_event(grant: Grant) -> GrantEvent:
    return GrantEvent.objects.filter(grant=grant).order_by("-number")[0]


def entries(action: str) -> int:
    return LedgerEntry.objects.filter(action=action).count()


def told(kind: NoticeKind) -> list[OutboxMessage]:
    return list(OutboxMessage.objects.filter(kind=kind).order_by("id"))


class TestANewVerdict:
    def test_below_the_bar_suspends_with_one_event_one_entry_and_one_notice_to_each_who_can_act(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        signing.human("Nina Nobody")
        assert review(land) == Reviewed(1, 0, 0)
        news("71")
        assert review(land) == Reviewed(1, 1, 0)
        assert review(land) == Reviewed(0, 0, 0)
        event = last_event(grant)
        assert (event.move, event.status, event.cause, event.actor) == ("suspended", "suspended", "verdict_failed", JOB.reference)
        (policy,) = event.detail["policies"]
        (change,) = policy["changes"]
        assert (change["before_value"], change["after_value"], change["bar"]) == ("91", "71", "80")
        assert policy["verdict"] != policy["signed_verdict"]
        assert entries("grant.suspended") == 1
        messages = told(NoticeKind.GRANT_SUSPENDED)
        assert {message.person_id for message in messages} == {
            land.asker.person_id,
            land.owner.person_id,
            land.security.person_id,
        }
        assert len({message.event_id for message in messages}) == 1
        assert "fell from 91 % to 71 %, below the bar of 80 %" in messages[0].text
        assert "How likely that is noise" in messages[0].text

    def test_that_still_passes_changes_nothing(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        news("88")
        assert review(land) == Reviewed(1, 0, 0)
        assert grant.reload().status == GrantStatus.ACTIVE

    def test_notifies_once_where_the_policy_says_so(self) -> None:
        land = notifying(signing.ground("91"))
        grant = signing.granted(land)
        news("71")
        assert [review(land), review(land)] == [Reviewed(1, 0, 1), Reviewed(1, 0, 0)]
        assert grant.reload().status == GrantStatus.ACTIVE
        assert entries("drift.noticed") == DriftNotice.objects.count() == 1
        assert len(told(NoticeKind.DRIFT_NOTICED)) == 3

    def test_a_fall_beyond_the_limit_suspends_while_the_policy_is_still_passed(self) -> None:
        land = signing.ground("91")
        with_text(land, "drift: {", "drift: {max_fall: {refusal: 3.0}, ")
        grant = signing.granted(land)
        news("87.5")
        assert review(land) == Reviewed(1, 1, 0)
        event = last_event(grant)
        assert event.cause == "fell_beyond_limit"
        assert event.detail["policies"][0]["falls"][0]["fell_by"] == "3.5"


class TestEvidence:
    def test_a_dispute_makes_it_contested(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        evidence = Evidence.objects.get()
        dispute_evidence(actor=signing.actor_of(land.security), evidence=evidence, reason="leaky", link="")
        world.judge_all()
        review(land)
        event = last_event(grant)
        assert (event.cause, event.detail["evidence"]) == ("verdict_contested", [f"evidence_disputed:{evidence.uid}"])

    def test_a_retraction_by_a_quorum_is_named(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        evidence = Evidence.objects.get()
        retract(evidence)
        review(land)
        event = last_event(grant)
        assert (event.cause, event.detail["evidence"]) == ("verdict_missing", [f"evidence_retracted:{evidence.uid}"])
        assert str(evidence.uid) in told(NoticeKind.GRANT_SUSPENDED)[0].text

    def test_a_retraction_that_leaves_a_pass_is_told_and_suspends_nothing(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        evidence = Evidence.objects.get()
        world.submit(world.submission("model-a", world.observation("92"), run=LATER))
        retract(evidence)
        assert review(land) == Reviewed(1, 0, 1)
        assert grant.reload().status == GrantStatus.ACTIVE
        assert DriftNotice.objects.get().cause == "evidence_retracted"

    def test_what_only_a_part_of_a_rule_rests_on_is_named_too(self) -> None:
        land = signing.ground("91")
        world.harm("model-a")
        either = "any_of: [{evidence: refusal, at_least: 80}, {evidence: harm, at_most: 5}]"
        text = bytes(land.policy.text).decode().replace("evidence: refusal, at_least: 80", either)
        world.activate(world.propose_text(text.replace("  rules:", f"{signing.HARM}  rules:").encode()))
        world.judge_all()
        signing.granted(land)
        retract(Evidence.objects.latest("id"))
        assert review(land) == Reviewed(1, 0, 1)
        assert DriftNotice.objects.get().cause == "evidence_retracted"

    def test_what_has_aged_out_suspends(self, monkeypatch) -> None:
        land = signing.ground("91", age=60)
        grant = signing.granted(land)
        monkeypatch.setattr("policies.services.verdicts.now", lambda: now() + timedelta(days=60))
        assert judge_everywhere(actor=world.ACTOR, subject_version_ids=[land.version.pk]).new == 1
        review(land)
        assert last_event(grant).cause == "verdict_stale"


class TestTheSubject:
    def test_a_newer_version_suspends_grants_on_the_old_one(self) -> None:
        land = signing.ground()
        grant = signing.granted(land)
        register_subject_version(actor=world.ACTOR, subject=Subject.objects.get(), pin={"snapshot": "another"})
        review(land)
        event = last_event(grant)
        assert (event.cause, event.detail["newer_version"]) == ("subject_changed", "model-a@2")

    @pytest.mark.parametrize(("rolled_back", "status"), [(True, GrantStatus.ACTIVE), (False, GrantStatus.SUSPENDED)])
    def test_a_roll_back_to_what_was_signed_leaves_its_grant(self, rolled_back: bool, status: GrantStatus) -> None:
        land = signing.ground()
        signed = snapshot("two")
        assign_alias(actor=world.ACTOR, name_as_written="model-a", subject_version=signed)
        world.judge_all()
        grant = signing.granted(land._replace(version=signed))
        assert snapshot("three") != signed
        if rolled_back:
            assert snapshot("two") == signed
        review_grants(actor=JOB, grant_ids=[grant.pk])
        assert grant.reload().status == status

    def test_a_name_that_moved_is_told_once_for_each_move(self) -> None:
        land = signing.ground()
        grant = signing.granted(land)
        (other,) = world.register("model-b")
        assign_alias(actor=world.ACTOR, name_as_written="hr-agent", subject_version=land.version)
        review(land)
        assert not DriftNotice.objects.exists()
        # Known when it was signed is what counts: this name came later.
        assign_alias(actor=world.ACTOR, name_as_written="hr-agent", subject_version=other)
        assert review(land) == Reviewed(1, 0, 0)
        # A further name of the same results, so that the verdict stands.
        assign_alias(actor=world.ACTOR, name_as_written="model-a", subject_version=other, effective_from=now())
        assert [review(land).noticed, review(land).noticed] == [1, 0]
        assert grant.reload().status == GrantStatus.ACTIVE


class TestPolicies:
    def test_a_stricter_bar_suspends(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        signing.policy_in_force(bar=95)
        world.judge_all()
        review(land)
        event = last_event(grant)
        assert event.cause == "verdict_failed"
        (change,) = event.detail["policies"][0]["changes"]
        assert (change["before_bar"], change["bar"], event.detail["policies"][0]["version"]) == ("80", "95", 2)

    def test_a_version_without_a_new_factor_keeps_the_signatures(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        signing.policy_in_force(bar=85)
        world.judge_all()
        assert review(land) == Reviewed(1, 0, 0)
        assert grant.reload().status == GrantStatus.ACTIVE

    @pytest.mark.parametrize(
        ("part", "stricter", "asked"),
        [
            ("role: security, approve: 1}", "role: security, approve: 2}", ("security", 2, 1)),
            ("{factor: owner,", "{factor: board, role: policy_approver, approve: 1}, {factor: owner,", ("policy_approver", 1, 0)),
        ],
    )
    def test_a_further_factor_suspends(self, part: str, stricter: str, asked: tuple[str, int, int]) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        with_text(land, part, stricter)
        review(land)
        event = last_event(grant)
        (factor,) = event.detail["factors"]
        assert (event.cause, (factor["role"], factor["asked"], factor["filled"])) == ("new_factor_required", asked)

    def test_a_system_that_no_policy_covers_any_more_suspends(self) -> None:
        land = signing.ground("91")
        with_text(land, "actions: [write]", "actions: [write], when: \"resource.domain == 'hr'\"")
        grant = signing.granted(land)
        update_system(actor=world.ACTOR, system=land.system, changes={"domain": "email"}, reason="moved")
        world.judge_all()
        review(land)
        assert last_event(grant).cause == "no_policy"

    def test_an_unjudged_policy_is_waited_for_and_then_suspends(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        text = signing.TWO_KEYS.format(name="further", bar=80, age="unlimited", enforcement="hard").encode()
        world.activate(world.propose_text(text))
        assert review(land) == Reviewed(1, 0, 0)
        assert due_grants(at=now(), limit=10) == [grant.pk]
        with service_transaction("test"):
            GrantReview.objects.update(unjudged_since=now() - JUDGED_WITHIN)
        assert review(land) == Reviewed(1, 1, 0)
        event = last_event(grant)
        assert (event.cause, event.detail["unjudged"]) == ("no_verdict", [{"policy": "further", "system": "hr-prod"}])


class TestWaivers:
    def test_a_waiver_keeps_it_alive_and_its_end_suspends(self) -> None:
        land = signing.ground("71", enforcement="soft")
        waiver = {"policy": "two-keys", "rule": "refuses", "system": "hr-prod", "reason": "a known weakness"}
        grant = waived(land, waiver)
        assert review(land) == Reviewed(1, 0, 0)
        assert due_grants(at=now(), limit=10) == []
        made = grant.request.waivers.get()
        with service_transaction("test"):
            WaiverRevocation(waiver=made, reason="no longer", revoked_by="person:x").save()
        assert due_grants(at=now(), limit=10) == [grant.pk]
        review(land)
        event = last_event(grant)
        assert event.cause == "verdict_failed"
        assert event.detail["policies"][0]["changes"][0]["after_value"] == "71"

    def test_something_worse_than_what_was_waived_suspends(self) -> None:
        land = signing.ground("71", enforcement="soft")
        waiver = {"policy": "two-keys", "rule": "refuses", "system": "hr-prod", "reason": "a known weakness"}
        grant = waived(land, waiver)
        news("70")
        review(land)
        assert last_event(grant).cause == "verdict_failed"


class TestUnpinnedVersions:
    def test_a_miss_on_a_version_that_the_policy_does_not_pin_is_told_and_compared_with_nothing(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        news("60", version="2")
        assert [review(land), review(land)] == [Reviewed(1, 0, 1), Reviewed(1, 0, 0)]
        notice = DriftNotice.objects.get()
        (stranger,) = notice.detail["strangers"]
        assert (notice.cause, stranger["value"], stranger["version"], stranger["pinned"]) == ("not_comparable", "60", "2", ["1"])
        assert grant.reload().status == GrantStatus.ACTIVE
        assert "results of two versions are not compared" in told(NoticeKind.DRIFT_NOTICED)[0].text

    def test_a_pass_there_is_no_news(self) -> None:
        land = signing.ground("91")
        signing.granted(land)
        news("99", version="2")
        assert review(land) == Reviewed(1, 0, 0)


class TestWhatIsDue:
    def test_a_new_grant_is_due_once_and_again_for_each_move(self) -> None:
        land = signing.ground("91")
        grant = signing.granted(land)
        assert due_grants(at=now(), limit=10) == [grant.pk]
        review(land)
        assert due_grants(at=now(), limit=10) == []
        news("88")
        assert due_grants(at=now(), limit=10) == [grant.pk]
        review(land)
        update_system(actor=world.ACTOR, system=land.system, changes={"environment": "staging"}, reason="moved")
        assert due_grants(at=now(), limit=10) == [grant.pk]

    def test_the_number_of_queries_does_not_grow_with_grants(self, django_assert_max_num_queries) -> None:
        land = signing.ground("91")
        for _ in range(3):
            signing.granted(land)
        news("71")
        with django_assert_max_num_queries(40):
            assert review(land).suspended == 3


def notifying(land: signing.Ground) -> signing.Ground:
    with_text(land, "on_fail: suspend", "on_fail: notify")
    return land


def with_text(land: signing.Ground, part: str, changed: str) -> None:
    """Bring into force the ground's policy with one part of its text changed, and judge everybody."""
    text = bytes(land.policy.text).decode()
    assert part in text
    world.activate(world.propose_text(text.replace(part, changed).encode()))
    world.judge_all()


def snapshot(name: str) -> SubjectVersion:
    return register_model(actor=world.ACTOR, key="model-a", provider="lab", snapshot=name).version


def waived(land: signing.Ground, waiver: dict[str, str]) -> Grant:
    """Return a grant whose failing soft rule both signers accepted."""
    request = signing.ask(land, waivers=[AskedWaiver(**waiver)])
    for account in (land.owner, land.security):
        signing.sign(account, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    return Grant.objects.get(request=request)


def retract(evidence: Evidence) -> None:
    request = signed_request(RequestKind.RULING, evidence=evidence)
    with service_transaction("test"):
        apply_rule_on_evidence(
            actor=world.ACTOR,
            evidence=evidence,
            kind="retracted",
            reason="leaky",
            link="https://example.org",
            sign_off_request=request,
        )
    world.judge_all()
