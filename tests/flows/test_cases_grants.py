"""Real failures of others, tried on us: the halves of cases O-02, O-19, O-20, O-22, O-24 and O-30 that are about grants.

Tasks run as they are sent, in the caller's thread; everything commits.
"""

import json

import pytest

from compliance import tasks
from compliance.models import Decision, DriftNotice, GrantEvent, LedgerEntry, OutboxMessage
from compliance.selectors.decisions import replay_decision
from compliance.services.filing import request_ruling
from compliance.services.requests import QuorumCannotBeMet
from compliance.vocabulary import GrantStatus, NoticeKind, Role
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence
from evaluations.services.subjects import apply_assign_alias, assign_alias
from evaluations.signals import subject_versions_changed
from policies.models import Verdict
from policies.services.systems import register_system
from policies.tasks import judge_subject_versions
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token

LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}


@pytest.fixture
def land(committed_db, settings) -> signing.Ground:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"
    return signing.ground("84")


def news(value: object, **observed: object) -> None:
    world.submit(world.submission("model-a", world.observation(str(value), **observed), run=LATER))


def notices(kind: NoticeKind) -> int:
    return OutboxMessage.objects.filter(kind=kind).values("event_id").distinct().count()


def actors_of(action: str) -> list[dict[str, object]]:
    """Return the actor of each entry of an action, oldest first, as it was written down."""
    rows = LedgerEntry.objects.filter(action=action).order_by("id")
    return [json.loads(bytes(row.content))["actor"] for row in rows]


def test_case_o02_a_request_for_no_system_is_refused(land: signing.Ground) -> None:
    with pytest.raises(InputRefused, match="an empty list grants nothing"):
        signing.ask(land, systems=[])


def test_case_o02_a_group_without_members_approves_nothing(land: signing.Ground) -> None:
    orphan = register_system(actor=world.ACTOR, key="orphan", title="Orphan", domain="hr", owner="nobody-yet")
    with pytest.raises(QuorumCannotBeMet, match="`owner` lacks 1"):
        signing.ask(land, systems=[orphan])


def test_case_o19_a_result_of_another_version_suspends_nothing_and_is_told(land: signing.Ground, run_tasks_inline) -> None:
    grant = signing.granted(land)
    news("60", version="2")
    assert grant.reload().status == GrantStatus.ACTIVE
    assert list(DriftNotice.objects.values_list("cause", flat=True)) == ["not_comparable"]
    assert notices(NoticeKind.DRIFT_NOTICED) == 1
    measured = [rule["measured"] for row in Verdict.objects.all() for rule in json.loads(bytes(row.core))["rules"]]
    assert set(measured) == {"84"}


def test_case_o20_a_retraction_suspends_what_rests_on_it_and_the_same_file_revives_nothing(
    land: signing.Ground, run_tasks_inline
) -> None:
    grant = signing.granted(land)
    then = Verdict.objects.order_by("-id")[0]
    evidence = Evidence.objects.get()
    token = ask_token(land.asker)
    before = ask_gate(token)
    assert before.judgement.allowed
    stewards = [signing.human(f"Steward {name}", Role.EVIDENCE_STEWARD) for name in ("one", "two", "three")]
    request = request_ruling(
        actor=signing.actor_of(stewards[0]),
        evidence=evidence,
        kind="retracted",
        reason="the answers lay in the repository",
        link="https://example.org/465",
    )
    for steward in stewards[1:]:
        if request.reload().status == "open":
            signing.sign(steward, request)
    event = GrantEvent.objects.get(move="suspended")
    assert event.detail["evidence"] == [f"evidence_retracted:{evidence.uid}"]
    assert (grant.reload().status, notices(NoticeKind.GRANT_SUSPENDED)) == (GrantStatus.SUSPENDED, 1)
    # What was known then stays: the old verdict still passes, on that evidence.
    assert then.outcome == "pass"
    assert str(evidence.uid) in bytes(then.core).decode()
    world.submit(world.submission("model-a", world.observation("84")))
    assert (grant.reload().status, Evidence.objects.count()) == (GrantStatus.SUSPENDED, 1)
    answer = ask_gate(token)
    told = {reason.code.value: reason.detail for reason in answer.judgement.reasons}
    assert list(told)[:2] == ["grant_suspended", "evidence_retracted"]
    assert told["evidence_retracted"]["evidence"] == str(evidence.uid)
    again = replay_decision(Decision.objects.select_related("body").get(uid=before.uid))
    assert (again.outcome, before.judgement.evidence) == ("same", (str(evidence.uid),)), "what was known then, still answers yes"


def test_case_o22_a_moved_name_is_told_and_the_snapshot_keeps_its_grant(land: signing.Ground, run_tasks_inline) -> None:
    assign_alias(actor=world.ACTOR, name_as_written="hr-agent", subject_version=land.version)
    grant = signing.granted(land)
    (other,) = world.register("model-b")
    mover = signing.actor_of(land.security)
    assign_alias(actor=mover, name_as_written="hr-agent", subject_version=other)
    tasks.review_due_grants.delay()
    notice = DriftNotice.objects.get()
    assert (notice.cause, notice.detail["names"][0]["now"]) == ("alias_moved", "model-b@1")
    assert grant.reload().status == GrantStatus.ACTIVE
    assign_alias(actor=mover, name_as_written="hr-agent", subject_version=land.version)
    tasks.review_due_grants.delay()
    assert DriftNotice.objects.count() == 1
    assert [actor["kind"] for actor in actors_of("alias.assigned")][-2:] == ["person", "person"]


def test_case_o24_a_suspension_names_the_job_who_asked_and_the_task(land: signing.Ground, request: pytest.FixtureRequest) -> None:
    grant = signing.granted(land)
    alice = signing.actor_of(land.security)
    news("71")
    request.getfixturevalue("run_tasks_inline")
    judge_subject_versions.delay([land.version.pk], alice.as_value())
    (actor,) = actors_of("grant.suspended")
    assert grant.reload().status == GrantStatus.SUSPENDED
    assert (actor["kind"], actor["id"], actor["on_behalf_of"]["id"]) == ("system_job", "drift-check", alice.id)
    assert actor["task_id"]


def test_case_o24_the_scheduled_run_acts_for_nobody(land: signing.Ground, request: pytest.FixtureRequest) -> None:
    signing.granted(land)
    news("71")
    world.judge_all()
    request.getfixturevalue("run_tasks_inline")
    tasks.review_due_grants.delay()
    (actor,) = actors_of("grant.suspended")
    assert (actor["kind"], actor["id"], "on_behalf_of" in actor) == ("system_job", "drift-check", False)
    assert actor["task_id"]


def test_case_o30_the_same_task_again_does_its_work_once(land: signing.Ground, request: pytest.FixtureRequest) -> None:
    signing.granted(land)
    news("71")
    world.judge_all()
    request.getfixturevalue("run_tasks_inline")
    for _ in range(3):
        tasks.review_grants.delay([land.version.pk])
    assert GrantEvent.objects.filter(move="suspended").count() == 1
    assert LedgerEntry.objects.filter(action="grant.suspended").count() == 1
    assert notices(NoticeKind.GRANT_SUSPENDED) == 1


def assign_and_fail(land: signing.Ground) -> None:
    with service_transaction("test"):
        apply_assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=land.version)
        raise RuntimeError


def test_case_o30_what_rolls_back_announces_nothing(land: signing.Ground, run_tasks_inline) -> None:
    heard: list[list[int]] = []

    def hear(*, subject_version_ids: list[int], **_: object) -> None:
        heard.append(subject_version_ids)

    subject_versions_changed.connect(hear)
    try:
        with pytest.raises(RuntimeError):
            assign_and_fail(land)
        assert heard == []
        assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=land.version)
        assert heard == [[land.version.pk]]
    finally:
        subject_versions_changed.disconnect(hear)
