"""Definitions under fire: whoever signs at the same moment, each key and each version is registered once, and never by hand."""

from functools import partial
from typing import Any

import psycopg
import pytest

from compliance.models import SignOff, SignOffRequest, User
from evaluations.models import Benchmark, BenchmarkVersion, Metric
from tests.support import signing, world
from tests.support.definitions import ask_benchmark, ask_metric, stewards
from tests.support.racing import codes, racers


def own_rate(people: list[User], number: int, **changes: Any) -> SignOffRequest:
    return ask_metric(people[0], key=f"own_rate_{number}", **changes)


def signs(account: User, request: SignOffRequest) -> partial:
    """Return the call by which somebody signs what stands there now."""
    return partial(signing.sign, account, SignOffRequest.objects.get(pk=request.pk))


def test_two_last_signatures_register_a_metric_once(committed_db) -> None:
    world.register()
    people = stewards()
    with racers(2) as race:
        for number in range(4):
            request = own_rate(people, number)
            outcomes = race.run(*[signs(account, request) for account in people[1:]])
            assert codes(outcomes) == ["", "request_closed"]
            assert Metric.objects.filter(key=f"own_rate_{number}").count() == 1
            assert SignOff.objects.filter(request=request).count() == 1


def test_two_definitions_of_one_key_come_one_after_the_other(committed_db) -> None:
    world.register()
    people = stewards()
    with racers(2) as race:
        for number in range(4):
            asked = [own_rate(people, number), own_rate(people, number, better="lower", title="Turned round")]
            outcomes = race.run(*map(signs, people[1:], asked))
            assert codes(outcomes) == ["", "dossier_changed"]
            assert Metric.objects.filter(key=f"own_rate_{number}").count() == 1


def test_two_proposals_of_one_version_register_it_once(committed_db) -> None:
    world.register()
    people = stewards()
    with racers(2) as race:
        for number in range(4):
            asked = [ask_benchmark(people[0], version=f"v{number}", tasks=tasks) for tasks in ("1", "2")]
            outcomes = race.run(*map(signs, people[1:], asked))
            assert codes(outcomes) == ["", "dossier_changed"]
    assert Benchmark.objects.filter(key="payroll-gym").count() == 1
    assert BenchmarkVersion.objects.filter(benchmark__key="payroll-gym").count() == 4


def test_the_runtime_role_inserts_no_definition_by_hand(committed_db, runtime_connection) -> None:
    world.register()
    with runtime_connection() as raw:
        raw.execute("BEGIN; SELECT set_config('writegate.service', 'by_hand', true)")
        with pytest.raises(psycopg.errors.CheckViolation, match="a metric needs the signatures"):
            raw.execute(
                "INSERT INTO evaluations_metric (key, title, unit, better, level, family, population, definition, minimum, digest, "
                "recorded_at) SELECT 'by_hand', title, unit, better, level, family, population, definition, minimum, 'sha256:x', now() "
                "FROM evaluations_metric LIMIT 1"
            )
    assert not Metric.objects.filter(key="by_hand").exists()
