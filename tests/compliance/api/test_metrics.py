"""`/metrics`: what is counted of answers, what is read at a scrape, who may ask, and what it costs."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings
from prometheus_client.parser import text_string_to_metric_families

from compliance.api import metrics
from compliance.api.metrics import observe_decisions, observe_unavailable
from compliance.deciding.codes import Code, Reason
from compliance.deciding.judge import Judgement
from compliance.models import LedgerEntry
from compliance.services.beats import record_beat
from compliance.services.people import create_token
from compliance.services.recording import Decided
from compliance.services.sealing import seal
from evaluations.kernel.clock import now
from tests.support import notices, signing, world
from tests.support.asking import ask_gate, ask_token
from tests.support.signing import Ground

SENT = {
    "subject": {"type": "model", "id": "model-a"},
    "action": {"name": "write"},
    "resource": {"type": "system", "id": "hr-prod"},
}
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(body: bytes) -> Values:
    """Return every sample of an answer by its name and labels."""
    found: Values = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def sample(name: str, /, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def scrape(client: Client | None = None, **headers: str) -> Values:
    with override_settings(METRICS_OPEN=True):
        answer = (client or Client()).get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return read(answer.content)


def answer(*codes: Code, entry: object = "entry") -> Decided:
    judgement = Judgement(not codes, tuple(Reason(code, {}) for code in codes))
    made: Any = Decided(judgement, {}, now(), None, entry, b"")  # type: ignore[arg-type]
    return made


@pytest.fixture
def counted() -> Any:
    """Return a function that says by how much a sample has grown since the test began: counts are the process's."""
    before = read(metrics.generate_latest(metrics.COUNTED))

    def grown(name: str, /, **labels: str) -> float:
        after = read(metrics.generate_latest(metrics.COUNTED))
        return after.get(sample(name, **labels), 0) - before.get(sample(name, **labels), 0)

    return grown


def test_answers_are_counted_by_their_first_reason_and_timed_by_answer(counted: Any) -> None:
    observe_decisions([answer()], 0.004)
    observe_decisions([answer(Code.NO_GRANT, Code.EVIDENCE_STALE)], 0.02)
    observe_decisions([answer(), answer(Code.NO_GRANT), answer(Code.NO_GRANT)], 0.2)
    observe_decisions([answer(Code.NO_POLICY), answer(Code.NO_GRANT)], 0.2)
    observe_decisions([], 0.2)
    observe_unavailable(3)
    assert counted("writegate_decisions_total", answer="allow", code="none") == 2
    assert counted("writegate_decisions_total", answer="deny", code="no_grant") == 4
    assert counted("writegate_decisions_total", answer="deny", code="no_policy") == 1
    assert counted("writegate_decisions_total", answer="deny", code="cannot_judge") == 3
    assert [counted("writegate_decision_seconds_count", answer=word) for word in ("allow", "deny", "mixed")] == [1, 2, 1]
    assert counted("writegate_decision_seconds_bucket", answer="allow", le="0.003") == 0
    assert counted("writegate_decision_seconds_bucket", answer="allow", le="0.005") == 1
    assert counted("writegate_decision_seconds_sum", answer="mixed") == pytest.approx(0.2)
    assert counted("writegate_unlogged_allows_total") == 0


def test_an_allow_without_an_entry_is_counted_as_the_fault_it_is(counted: Any) -> None:
    observe_decisions([answer(entry=None)], 0.001)
    observe_decisions([answer(entry=None), answer(Code.CANNOT_RECORD, entry=None)], 0.001)
    assert counted("writegate_unlogged_allows_total") == 2
    # What stands beside it in every test of the process is not spoilt by this one.
    metrics.UNLOGGED.reset()


def test_counting_an_answer_costs_less_than_ten_microseconds() -> None:
    one = [answer(Code.NO_GRANT)]
    best = 1.0
    for _ in range(20):
        began = perf_counter()
        for _ in range(500):
            observe_decisions(one, 0.001)
        best = min(best, (perf_counter() - began) / 500)
    assert best < 10e-6


@pytest.mark.django_db
def test_what_the_doors_answer_is_counted(counted: Any) -> None:
    land = signing.ground()
    token = ask_token(land.asker)
    signing.granted(land)
    headers = {"Authorization": f"Bearer {token}"}
    for body in (SENT, {**SENT, "subject": {"type": "model", "id": "nobody"}}):
        assert Client().post("/access/v1/evaluation", body, content_type="application/json", headers=headers).status_code == 200
    assert counted("writegate_decisions_total", answer="allow", code="none") == 1
    assert counted("writegate_decisions_total", answer="deny", code="unknown_subject") == 1
    assert counted("writegate_unlogged_allows_total") == 0


# --- what is read at a scrape


@pytest.mark.django_db
def test_a_scrape_tells_how_long_services_were_silent_and_what_waits() -> None:
    at = now()
    record_beat(name="worker", beat_at=at - timedelta(seconds=90))
    record_beat(name="scheduler", beat_at=at)
    with override_settings(NOTICE_MAIL_URL="mailto://user@example.org"):
        notices.notify(notices.person())
    found = scrape()
    assert 90 <= found[sample("writegate_beat_age_seconds", name="worker")] < 120
    assert found[sample("writegate_beat_age_seconds", name="scheduler")] < 30
    assert found[sample("writegate_ledger_pending_entries")] == LedgerEntry.objects.count() > 0
    assert found[sample("writegate_ledger_oldest_pending_seconds")] > 0
    assert found[sample("writegate_database_up")] == 1
    assert [found[sample("writegate_outbox_messages", status=word)] for word in ("waiting", "dead")] == [1, 0]
    assert sample("writegate_checkpoint_age_seconds") not in found
    seal()
    after = scrape()
    assert (after[sample("writegate_ledger_pending_entries")], after[sample("writegate_ledger_oldest_pending_seconds")]) == (0, 0)
    assert 0 <= after[sample("writegate_checkpoint_age_seconds")] < 30


def test_without_a_database_the_counts_are_told_and_that_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(**_: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(metrics, "read_gauges", gone)
    found = scrape()
    assert found[sample("writegate_database_up")] == 0
    assert sample("writegate_unlogged_allows_total") in found
    assert sample("writegate_ledger_pending_entries") not in found


# --- who may ask


@pytest.fixture
def land(db: None) -> Ground:
    return signing.ground()


def test_a_token_that_may_read_is_asked_for(land: Ground) -> None:
    def asked(*scopes: str) -> Any:
        made = create_token(actor=world.ACTOR, name="prometheus", scopes=scopes, person=land.asker.person)
        return Client().get("/metrics", headers={"Authorization": f"Bearer {made.secret}"})

    assert asked("read").status_code == 200
    for refused in (asked("decide"), asked("read:hr-prod")):
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    for headers in ({}, {"Authorization": "Bearer wg_unknown"}):
        unknown = Client().get("/metrics", headers=headers)
        assert (unknown.status_code, unknown.headers["WWW-Authenticate"]) == (401, "Bearer")
    person = Client()
    person.force_login(land.security)
    assert person.get("/metrics").status_code == 401, "machines scrape"
    assert Client().post("/metrics").status_code == 405


@pytest.mark.django_db
def test_it_is_open_where_the_operator_says_so() -> None:
    assert scrape()


# --- several processes


@pytest.mark.slow
def test_processes_that_share_a_directory_answer_for_each_other(tmp_path: Path) -> None:
    """Two processes count; a third that counted nothing answers with the sum of both."""
    count = (
        "import django; django.setup(); from compliance.api import metrics; from compliance.deciding.codes import Code;"
        "metrics.observe_unavailable({number}); metrics._seconds['allow'].observe(0.004)"
    )
    ask = (
        "import django; django.setup(); from prometheus_client import CollectorRegistry, generate_latest;"
        "from prometheus_client.multiprocess import MultiProcessCollector; from compliance.api import metrics;"
        "shown = CollectorRegistry(); MultiProcessCollector(shown); print(generate_latest(shown).decode())"
    )
    environment = {**os.environ, metrics.SHARED: str(tmp_path)}
    for number in (2, 5):
        run(count.format(number=number), environment)
    found = read(run(ask, environment))
    assert found[sample("writegate_decisions_total", answer="deny", code="cannot_judge")] == 7
    assert found[sample("writegate_decision_seconds_bucket", answer="allow", le="0.005")] == 2
    assert found[sample("writegate_unlogged_allows_total")] == 0


def run(code: str, environment: dict[str, str]) -> bytes:
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.django_db
def test_a_gate_that_is_asked_by_a_service_leaves_no_allow_unlogged(land: Ground, counted: Any) -> None:
    token = ask_token(land.asker)
    signing.granted(land)
    for subject in ("model-a", "nobody"):
        observe_decisions([ask_gate(token, subject)], 0.001)
    assert counted("writegate_unlogged_allows_total") == 0
