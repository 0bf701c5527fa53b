"""Activations: which version is in force, what is told of it, and what is judged anew."""

import json
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection

from compliance.models import LedgerEntry
from compliance.selectors.population import population_report
from compliance.vocabulary import RequestKind
from evaluations.kernel.actor import person
from evaluations.kernel.services import service_transaction
from evaluations.services.subjects import apply_register_subject_version
from policies import tasks
from policies.models import PolicyActivation, PolicyVersion, Standing, Verdict
from policies.selectors.policies import state_of, version_in_force, versions_in_force, versions_to_keep_judged
from policies.services.activations import VersionAlreadyInForce, apply_activate_policy_version
from policies.services.rejudging import judge_changed_policies
from policies.signals import policies_changed, policies_rejudged, standings_moved
from policies.vocabulary import VersionState
from tests.support import world
from tests.support.quorum import signed_request

ALICE = person(uuid4())


def entries(action: str) -> list[dict[str, Any]]:
    found = LedgerEntry.objects.filter(action=action).order_by("id").values_list("content", flat=True)
    return [json.loads(bytes(content)) for content in found]


@pytest.fixture
def heard() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What the app announces, in order."""
    told: list[tuple[str, dict[str, Any]]] = []
    signals = {"standings_moved": standings_moved, "changed": policies_changed, "rejudged": policies_rejudged}
    listeners = []
    for name, signal in signals.items():

        def listen(sender: Any, signal: Any, _name: str = name, **arguments: Any) -> None:
            told.append((_name, arguments))

        signal.connect(listen, weak=False)
        listeners.append((signal, listen))
    yield told
    for signal, listen in listeners:
        signal.disconnect(listen)


@pytest.mark.django_db
class TestActivating:
    def test_the_version_is_in_force_and_the_entry_says_which_one_was(self) -> None:
        world.register()
        first, second = world.propose(80), world.propose(90)
        assert versions_in_force() == []
        world.activate(first)
        activation = world.activate(second)
        assert version_in_force(first.policy) == second
        assert versions_in_force() == [second]
        assert (state_of(first), state_of(second)) == (VersionState.RETIRED, VersionState.ACTIVE)
        earlier = first.activations.get().recorded_at
        assert (state_of(first, known_at=earlier), state_of(second, known_at=earlier)) == (
            VersionState.ACTIVE,
            VersionState.PROPOSED,
        )
        told = entries("policy_version.activated")
        assert [(entry["target"]["id"], entry["old"]) for entry in told] == [
            ("one-rule@1", None),
            ("one-rule@2", {"in_force": "one-rule@1"}),
        ]
        assert told[1]["new"]["sign_off_request"] == str(activation.sign_off_request)

    def test_a_retired_version_may_come_back(self) -> None:
        world.register()
        first, second = world.propose(80), world.propose(90)
        for version in (first, second, first):
            world.activate(version)
        assert version_in_force(first.policy) == first

    def test_what_is_in_force_is_not_activated_again(self) -> None:
        world.register()
        version = world.propose()
        world.activate(version)
        with pytest.raises(VersionAlreadyInForce, match="one-rule@1"):
            world.activate(version)
        assert PolicyActivation.objects.count() == 1

    def test_without_a_signed_request_the_database_refuses(self) -> None:
        world.register()
        version = world.propose()
        with pytest.raises(DatabaseError, match="signatures of its quorum"), service_transaction("test"):
            apply_activate_policy_version(actor=world.ACTOR, version=version, sign_off_request=uuid4())

    def test_one_request_carries_one_activation(self) -> None:
        world.register()
        first, second = world.propose(80), world.propose(90)
        request = signed_request(RequestKind.ACTIVATION, policy_version=first)
        with service_transaction("test"):
            apply_activate_policy_version(actor=world.ACTOR, version=first, sign_off_request=request)
        with pytest.raises(DatabaseError, match="signatures of its quorum"), service_transaction("test"):
            apply_activate_policy_version(actor=world.ACTOR, version=second, sign_off_request=request)
        world.activate(second)
        with pytest.raises(DatabaseError, match="unique"), service_transaction("test"):
            apply_activate_policy_version(actor=world.ACTOR, version=first, sign_off_request=request)

    def test_every_row_has_its_entry(self) -> None:
        world.register()
        world.activate(world.propose())
        lines = {line.table: line for line in population_report()}
        line = lines["policies_policyactivation"]
        assert (line.rows, line.events, line.differing) == (1, 1, 0)

    def test_the_active_and_the_newest_version_are_kept_judged_of_each_policy(self) -> None:
        world.register()
        versions = [world.propose(bar) for bar in (70, 80, 90)]
        other = world.propose(name="other")
        world.activate(versions[0])
        assert versions_to_keep_judged() == [versions[0], versions[2], other]
        assert versions_to_keep_judged([other.policy_id]) == [other]


@pytest.mark.django_db
class TestJudgingAfterAChange:
    def test_only_the_policies_concerned_are_judged_and_older_versions_that_stand_are_too(self) -> None:
        (old,) = world.register("m")
        version, other = world.propose(), world.propose(name="other")
        world.judge_all()
        with service_transaction("test"):
            newer = apply_register_subject_version(actor=world.ACTOR, subject=old.subject, pin={"snapshot": "new"})
        checked = dict(Standing.objects.values_list("policy_version_id", "checked_at"))
        done = judge_changed_policies(actor=world.ACTOR, policy_ids=[version.policy_id])
        assert (done.judged, done.new, done.last) == (2, 1, None)
        assert set(Standing.objects.filter(policy_version=version).values_list("subject_version_id", flat=True)) == {
            old.pk,
            newer.pk,
        }
        assert Standing.objects.get(policy_version=version, subject_version=old).checked_at > checked[version.pk]
        assert Standing.objects.get(policy_version=other).checked_at == checked[other.pk]

    def test_slices_reach_every_subject_once(self, heard: list[tuple[str, dict[str, Any]]]) -> None:
        versions = world.register(*(f"m{number}" for number in range(5)))
        policy_version = world.propose()
        after: int | None = 0
        while after is not None:
            after = judge_changed_policies(actor=world.ACTOR, policy_ids=[policy_version.policy_id], after=after, limit=2).last
        assert Standing.objects.count() == Verdict.objects.count() == 5
        slices = [arguments["subject_version_ids"] for name, arguments in heard if name == "rejudged"]
        assert slices == [[versions[0].pk, versions[1].pk], [versions[2].pk, versions[3].pk], [versions[4].pk]]


def test_a_committed_activation_is_judged_by_a_task_on_behalf_of_whoever_signed_last(
    committed_db, run_tasks_inline, heard: list[tuple[str, dict[str, Any]]]
) -> None:
    (version,) = world.register("m")
    policy_version = world.propose()
    world.submit(world.submission("m"))
    first = Verdict.objects.get()
    heard.clear()
    request = signed_request(RequestKind.ACTIVATION, policy_version=policy_version)
    with service_transaction("test"):
        apply_activate_policy_version(actor=ALICE, version=policy_version, sign_off_request=request)
        assert heard == []
    # The newest version was judged already: no verdict is new, and still whatever rests on this subject is told of.
    assert Verdict.objects.get() == first
    asked = {"on_behalf_of": ALICE.as_value()}
    assert sorted(heard, key=lambda item: item[0]) == [
        ("changed", {"policy_ids": [policy_version.policy_id], **asked}),
        ("rejudged", {"policy_ids": [policy_version.policy_id], "subject_version_ids": [version.pk], **asked}),
    ]


def activate_and_fail(version: PolicyVersion, request: UUID) -> None:
    with service_transaction("test"):
        apply_activate_policy_version(actor=ALICE, version=version, sign_off_request=request)
        raise ZeroDivisionError


def test_an_activation_that_is_rolled_back_is_not_announced(committed_db, heard: list[tuple[str, dict[str, Any]]]) -> None:
    world.register("m")
    policy_version = world.propose()
    request = signed_request(RequestKind.ACTIVATION, policy_version=policy_version)
    with pytest.raises(ZeroDivisionError):
        activate_and_fail(policy_version, request)
    assert heard == []
    assert version_in_force(policy_version.policy) is None


def test_new_verdicts_are_announced_after_commit_and_checked_ones_are_not(
    committed_db, heard: list[tuple[str, dict[str, Any]]]
) -> None:
    (version,) = world.register("m")
    world.propose()
    tasks.judge_subject_versions([version.pk], ALICE.as_value())
    ((name, arguments),) = heard
    verdict = Verdict.objects.get()
    assert name == "standings_moved"
    assert arguments == {
        "subject_version_ids": [version.pk],
        "verdict_uids": [str(verdict.uid)],
        "on_behalf_of": ALICE.as_value(),
    }
    (entry,) = entries("verdict.recorded")
    assert entry["actor"]["id"] == "judge-after-change"
    assert entry["actor"]["on_behalf_of"] == ALICE.as_value()
    tasks.judge_subject_versions([version.pk], None)
    assert len(heard) == 1


def test_activations_at_the_same_time_leave_one_in_force_and_one_entry_each(committed_db) -> None:
    world.register()
    versions = [world.propose(bar) for bar in range(70, 78)]
    requests = [signed_request(RequestKind.ACTIVATION, policy_version=versions[number % 8]) for number in range(16)]
    together = threading.Barrier(16)
    refused: list[VersionAlreadyInForce] = []
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            together.wait(timeout=30)
            with service_transaction("test"):
                apply_activate_policy_version(actor=world.ACTOR, version=versions[number % 8], sign_off_request=requests[number])
        except VersionAlreadyInForce as error:
            refused.append(error)
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    rows = list(PolicyActivation.objects.order_by("id").select_related("version"))
    assert len(rows) + len(refused) == 16
    assert version_in_force(versions[0].policy) == rows[-1].version
    told = entries("policy_version.activated")
    # Each entry names the version that was in force before it: they are one chain, as if made one after another.
    names = [f"one-rule@{row.version.number}" for row in rows]
    assert [entry["old"]["in_force"] if entry["old"] else None for entry in told] == [None, *names[:-1]]
    assert [entry["new"]["in_force"] for entry in told] == names


def test_where_nothing_is_registered_nothing_is_judged(committed_db) -> None:
    world.register()
    policy_version = world.propose()
    assert tasks.judge_policies([policy_version.policy_id]) == {"judged": 0, "new": 0, "last": None}
