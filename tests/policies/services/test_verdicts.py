"""Verdicts and standings: sets, agents, the sweep that needs no message, and two judges at once."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compliance.models import LedgerEntry
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Subject, SubjectVersion
from evaluations.selectors.subjects import current_versions
from evaluations.services.evidence import dispute_evidence
from evaluations.services.subjects import apply_register_subject, apply_register_subject_version
from policies import tasks
from policies.models import Standing, Verdict
from policies.selectors.gate import ask_gate
from policies.selectors.replays import replay_verdict
from policies.selectors.verdicts import due_subject_version_ids
from policies.services.verdicts import judge_subject_versions
from tests.support import world


def agent(key: str, *members: SubjectVersion, closed: bool = True) -> SubjectVersion:
    with service_transaction("test"):
        subject = apply_register_subject(actor=world.ACTOR, key=key, kind="agent", candidate=True)
        return apply_register_subject_version(
            actor=world.ACTOR, subject=subject, pin={"prompt": key}, members=members, closed=closed
        )


def result_of(version: SubjectVersion) -> str:
    return Standing.objects.get(subject_version=version).verdict.result


@pytest.mark.django_db
class TestJudging:
    def test_many_subjects_take_as_many_queries_as_few(self) -> None:
        world.register(*(f"m{number}" for number in range(12)))
        policy_version = world.propose()
        for number in range(12):
            world.submit(world.submission(f"m{number}"), f"{number}.json")
        versions = current_versions(known_at=now())
        counts = []
        for chosen in (versions[:2], versions[2:]):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                judge_subject_versions(actor=world.ACTOR, policy_version=policy_version, versions=chosen, domain="any")
            counts.append(len(queries))
        assert counts[0] == counts[1]
        assert Verdict.objects.count() == 12

    def test_each_new_verdict_has_its_entry(self) -> None:
        world.register("a", "b")
        world.propose()
        world.judge_all()
        recorded = LedgerEntry.objects.filter(action="verdict.recorded").values_list("target_id", flat=True)
        assert set(recorded) == {str(uid) for uid in Verdict.objects.values_list("uid", flat=True)}

    def test_an_agent_is_as_good_as_the_worst_model_it_can_reach(self) -> None:
        good, bad = world.register("good", "bad")
        world.propose()
        world.submit(world.submission("good", world.observation("90")), "good.json")
        world.submit(world.submission("bad", world.observation("60")), "bad.json")
        careful, loose = agent("careful", good), agent("loose", good, bad)
        world.judge_all()
        assert (result_of(careful), result_of(loose)) == ("pass", "fail")
        verdict = Standing.objects.get(subject_version=loose).verdict
        assert '"model":"bad"' in bytes(verdict.core).decode()
        assert replay_verdict(verdict).same

    def test_an_open_route_has_no_verdict_and_is_not_cleared(self) -> None:
        (good,) = world.register("good")
        policy_version = world.propose()
        world.submit(world.submission("good", world.observation("90")))
        version = agent("auto", good, closed=False)
        world.judge_all()
        assert not Standing.objects.filter(subject_version=version).exists()
        moment = now()
        row = next(row for row in ask_gate(policy_version, as_of=moment, known_at=moment).rows if row.version == version)
        assert (row.outcome, row.result, row.judgement) == ("fail", "missing", None)

    def test_evidence_about_a_model_marks_the_agents_that_reach_it(self) -> None:
        (good,) = world.register("good")
        version = agent("careful", good)
        before = Subject.objects.get(key="careful").changed_at
        world.submit(world.submission("good"))
        assert Subject.objects.get(pk=version.subject_id).changed_at > before


@pytest.mark.django_db
class TestSweep:
    def test_what_was_never_judged_is_due(self) -> None:
        (version,) = world.register("m")
        world.propose()
        assert due_subject_version_ids() == [version.pk]

    def test_what_changed_is_due_and_what_aged_out_is_due(self) -> None:
        (version,) = world.register("m")
        world.propose()
        world.submit(world.submission("m"))
        world.judge_all()
        with service_transaction("test"):
            Subject.objects.update(changed_at=now() - timedelta(days=1))
        assert due_subject_version_ids() == []
        with service_transaction("test"):
            Standing.objects.update(due_at=now() - timedelta(seconds=1))
        assert due_subject_version_ids() == [version.pk]
        with service_transaction("test"):
            Standing.objects.update(due_at=None)
        dispute_evidence(actor=world.ACTOR, evidence=Evidence.objects.get(), reason="wrong model")
        assert due_subject_version_ids() == [version.pk]

    def test_the_scheduled_task_needs_no_message(self) -> None:
        (version,) = world.register("m")
        world.propose()
        world.submit(world.submission("m"))
        assert tasks.judge_due() == {"judged": 1, "new": 1}
        assert result_of(version) == "pass"
        assert tasks.judge_due()["new"] == 0


def test_a_committed_change_is_judged_by_the_task_it_announces(committed_db, run_tasks_inline) -> None:
    (version,) = world.register("m")
    world.propose()
    world.submit(world.submission("m"))
    assert result_of(version) == "pass"
    dispute_evidence(actor=world.ACTOR, evidence=Evidence.objects.get(), reason="wrong model")
    assert result_of(version) == "contested"
    assert Verdict.objects.last() is not None
    judged_by = set(Verdict.objects.values_list("judged_by", flat=True))
    assert judged_by == {"system_job:judge-after-change"}


def test_judges_at_the_same_time_leave_one_verdict(committed_db) -> None:
    (version,) = world.register("m")
    policy_version = world.propose()
    world.submit(world.submission("m"))
    versions = list(SubjectVersion.objects.filter(pk=version.pk).select_related("subject"))
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def run() -> None:
        try:
            together.wait(timeout=10)
            judge_subject_versions(actor=world.ACTOR, policy_version=policy_version, versions=versions, domain="any")
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    assert Verdict.objects.count() == 1
    assert Standing.objects.count() == 1


def test_two_imports_of_the_same_bytes_at_once_keep_one(committed_db) -> None:
    world.register("m")
    together = threading.Barrier(3)
    taken: list[tuple[int, int]] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            together.wait(timeout=10)
            imported = world.submit(world.submission("m"))
            taken.append((imported.evidence, imported.repeated))
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    assert sorted(taken) == [(0, 1), (0, 1), (1, 0)]
    assert Evidence.objects.count() == 1
