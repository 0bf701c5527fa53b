"""A source refreshed from a real HTTP server on the loopback address: what changes, what does not, and every way it goes wrong."""

import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compliance.models import LedgerEntry
from evaluations.kernel.actor import person
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Document, Evidence, HostPace, Observation, RefreshRun, SourceSchedule
from evaluations.services import fetching
from evaluations.services.refresh import claim_due, refresh_source, request_refresh
from tests.support import world
from tests.support.sources import LOOPBACK, Reply, SourceServer, ended, run, scheduled, self_signed, source, source_server, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Any) -> Iterator[SourceServer]:
    world.register("m", "other")
    settings.REFRESH_HOST_RATE = 1000
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        yield served


def nothing_was_kept() -> bool:
    return not (Evidence.objects.exists() or Observation.objects.exists() or Document.objects.exists())


def test_what_is_new_is_taken_and_the_next_run_asks_whether_it_has_changed(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84, stranger=70), headers={"ETag": '"one"'}))
    schedule = scheduled(server.url())
    first = run(schedule)
    assert ended(first) == ("taken", "new_evidence")
    assert (first.taken, first.held, first.refused, first.evidence, first.http_status) == (2, 1, 0, 2, 200)
    assert (first.documents, first.etag) == ([Document.objects.get().digest], '"one"')
    assert (first.requests, first.bytes_received) == (1, len(table(m=84, stranger=70)))
    second = run(schedule)
    assert ended(second) == ("unchanged", "not_modified")
    assert (second.http_status, second.taken, second.bytes_received) == (304, 0, 0)
    assert server.heard[1][1]["If-None-Match"] == '"one"'
    # Asked to fetch it anyway: the same bytes are recorded once.
    third = run(schedule, forced=True)
    assert ended(third) == ("unchanged", "same_bytes")
    assert "If-None-Match" not in server.heard[2][1]
    assert (Document.objects.count(), Observation.objects.count(), Evidence.objects.count()) == (1, 2, 2)
    assert schedule.reload().failed_runs == 0
    assert schedule.due_at > now() + timedelta(minutes=59)


def test_a_source_that_confirms_does_not_make_its_evidence_younger(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84), headers={"ETag": '"one"'}))
    schedule = scheduled(server.url())
    run(schedule)
    before, known = schedule.reload().succeeded_at, list(Evidence.objects.values())
    for forced, cause in ((False, "not_modified"), (True, "same_bytes")):
        assert ended(run(schedule, forced=forced)) == ("unchanged", cause)
    assert schedule.reload().succeeded_at > before
    assert list(Evidence.objects.values()) == known
    assert Evidence.objects.get().run_ended_at == datetime(2026, 11, 1, tzinfo=UTC)


def test_a_date_serves_where_there_is_no_tag(server: SourceServer) -> None:
    server.say(
        "/results.csv",
        Reply(table(m=84), headers={"Last-Modified": "Sun, 29 Nov 2026 10:00:00 GMT"}),
        Reply(status=304, length=False),
    )
    schedule = scheduled(server.url())
    assert run(schedule).last_modified == "Sun, 29 Nov 2026 10:00:00 GMT"
    assert ended(run(schedule)) == ("unchanged", "not_modified")
    assert server.heard[1][1]["If-Modified-Since"] == "Sun, 29 Nov 2026 10:00:00 GMT"


def test_a_304_that_nobody_asked_for_is_an_error(server: SourceServer) -> None:
    server.say("/results.csv", Reply(status=304, length=False))
    assert ended(run(scheduled(server.url()))) == ("failed", "http_error")


def test_who_set_the_schedule_vouches_for_what_it_brings_in(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84)))
    keeper = person("3b0a1f5e-6f7c-4a7e-9a8e-111111111111")
    schedule = scheduled(server.url(), actor=keeper)
    run(schedule)
    assert Evidence.objects.get().submitted_by == keeper.reference
    assert {entry.actor for entry in LedgerEntry.objects.filter(action="refresh_run.ended")} == {"system_job:refresh"}
    assert {entry.actor for entry in LedgerEntry.objects.filter(action="evidence.recorded")} == {keeper.reference}


def test_500_then_200_is_one_run_that_takes(server: SourceServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    server.say("/results.csv", Reply(status=500), Reply(status=502), Reply(table(m=84)))
    found = run(scheduled(server.url()))
    assert ended(found) == ("taken", "new_evidence")
    assert found.requests == 3


def test_500_for_ever_fails_with_its_cause_and_is_tried_again_sooner_than_the_interval(
    server: SourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    server.say("/results.csv", Reply(status=500))
    schedule = scheduled(server.url(), interval_minutes=600)
    for failures, minutes in ((1, 5), (2, 10), (3, 20)):
        found = run(schedule)
        assert ended(found) == ("failed", "http_error")
        assert (found.http_status, found.requests) == (500, 4)
        assert schedule.reload().failed_runs == failures
        assert timedelta(minutes=minutes - 1) < schedule.due_at - now() <= timedelta(minutes=minutes)
    assert nothing_was_kept()


def test_429_waits_as_long_as_it_is_told(server: SourceServer) -> None:
    server.say("/results.csv", Reply(status=429, headers={"Retry-After": "1"}), Reply(table(m=84)))
    assert ended(run(scheduled(server.url()))) == ("taken", "new_evidence")
    (_, _, first), (_, _, second) = server.heard
    assert 1.0 <= second - first < 3.0


def test_429_for_longer_than_a_run_lasts_defers_it_and_keeps_all_others_from_the_host(server: SourceServer) -> None:
    server.say("/results.csv", Reply(status=429, headers={"Retry-After": "3600"}))
    schedule = scheduled(server.url())
    began = time.monotonic()
    found = run(schedule)
    assert time.monotonic() - began < 2
    assert ended(found) == ("deferred", "asked_to_wait")
    assert (found.http_status, "3600 s" in found.detail) == (429, True)
    schedule.reload()
    assert schedule.failed_runs == 0
    assert timedelta(minutes=58) < schedule.due_at - now() <= timedelta(minutes=60)
    other = scheduled(server.url("/other.csv"), key="other-lab")
    assert ended(run(other)) == ("deferred", "host_busy")
    assert server.asked("/other.csv") == 0


def test_a_slow_drip_is_cut_off_in_time(server: SourceServer, settings: Any) -> None:
    settings.REFRESH_SECONDS = 1
    server.say("/results.csv", Reply(table(m=84), drip=0.05))
    began = time.monotonic()
    found = run(scheduled(server.url()))
    assert time.monotonic() - began < 3
    assert ended(found) == ("failed", "timed_out")
    assert nothing_was_kept()


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(table(m=84, other=70), cut=len(table(m=84))), id="shorter than it said"),
        pytest.param(Reply(table(m=84), length=False), id="says no length"),
        pytest.param(
            Reply(b"%x\r\n%s" % (500, table(m=84)), headers={"Transfer-Encoding": "chunked"}), id="a chunk that does not end"
        ),
    ],
)
def test_a_truncated_body_is_no_document(server: SourceServer, reply: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    server.say("/results.csv", reply)
    found = run(scheduled(server.url()))
    assert ended(found) == ("failed", "truncated")
    assert nothing_was_kept()


def test_a_whole_chunked_body_is_one(server: SourceServer) -> None:
    body = table(m=84)
    server.say("/results.csv", Reply(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), headers={"Transfer-Encoding": "chunked"}))
    assert ended(run(scheduled(server.url()))) == ("taken", "new_evidence")


def test_a_body_beyond_the_limit_is_not_read_to_its_end(server: SourceServer, settings: Any) -> None:
    settings.REFRESH_MAX_BYTES = 1000
    big = b"x" * 5_000_000
    server.say("/results.csv", Reply(big))
    server.say("/chunks.csv", Reply(b"%x\r\n%s\r\n0\r\n\r\n" % (len(big), big), headers={"Transfer-Encoding": "chunked"}))
    assert ended(run(scheduled(server.url()))) == ("failed", "too_large")
    found = run(scheduled(server.url("/chunks.csv")))
    assert ended(found) == ("failed", "too_large")
    assert found.bytes_received < 200_000


def test_an_encoding_that_nobody_asked_for_is_refused(server: SourceServer) -> None:
    server.say("/results.csv", Reply(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}))
    assert ended(run(scheduled(server.url()))) == ("failed", "no_http")


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/", "https://127.0.0.1/", "https://localhost/", "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/", "https://10.0.0.1/", "https://0x7f.1/", "ftp://example.org/", "file:///etc/passwd", "https://u:p@example.org/",
    ],
)  # fmt: skip
def test_a_redirect_to_a_private_address_is_not_followed(server: SourceServer, location: str) -> None:
    server.say("/results.csv", Reply(status=302, headers={"Location": location}))
    found = run(scheduled(server.url()))
    assert ended(found) == ("failed", "address_refused")
    assert (found.requests, nothing_was_kept()) == (1, True)


def test_redirects_within_what_is_allowed_are_followed_up_to_a_number(server: SourceServer) -> None:
    server.say("/results.csv", Reply(status=301, headers={"Location": "/moved.csv"}))
    server.say("/moved.csv", Reply(table(m=84)))
    assert ended(run(scheduled(server.url()))) == ("taken", "new_evidence")
    server.say("/round.csv", Reply(status=307, headers={"Location": "/round.csv"}))
    found = run(scheduled(server.url("/round.csv")))
    assert ended(found) == ("failed", "address_refused")
    assert found.requests == fetching.MAX_HOPS + 1


def test_a_name_that_turns_inward_between_two_runs_is_not_asked(
    server: SourceServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REFRESH_ALLOW = []
    schedule = scheduled("https://results.example.org/a.csv")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (LOOPBACK, server.port))])
    assert ended(run(schedule)) == ("failed", "address_refused")
    assert server.heard == []


def test_a_certificate_that_nobody_vouches_for_is_an_error(server: SourceServer, settings: Any, tmp_path: Path) -> None:
    with source_server(self_signed(tmp_path)) as secured:
        settings.REFRESH_ALLOW = [secured.place]
        secured.say("/results.csv", Reply(table(m=84)))
        found = run(scheduled(secured.url()))
    assert ended(found) == ("failed", "certificate")
    assert "self-signed" in found.detail or "self signed" in found.detail
    assert (secured.heard, nothing_was_kept()) == ([], True)


def test_a_payload_that_changed_its_shape_fails_loudly_and_is_fetched_again(server: SourceServer) -> None:
    schedule = scheduled(server.url())
    server.say("/results.csv", Reply(table(m=84), headers={"ETag": '"one"'}))
    run(schedule)
    server.say("/results.csv", Reply(table(m=71, other=70).replace(b"value", b"score"), headers={"ETag": '"two"'}))
    for _ in range(2):
        # Never "not modified": what was refused is not known.
        found = run(schedule)
        assert ended(found) == ("failed", "shape_refused")
        assert found.refused >= 1
        assert found.problems[0]["file"] == "results.csv"
        assert found.detail
    assert (Observation.objects.count(), Document.objects.count()) == (1, 1)
    server.say("/results.csv", Reply(table(m=71), headers={"ETag": '"three"'}))
    assert ended(run(schedule)) == ("taken", "new_evidence")


def test_a_source_speaks_for_itself_alone(server: SourceServer) -> None:
    source("trusted", title="Trusted")
    body = table(m=84).replace(b"subject,", b"subject,source,").replace(b"m,run_log", b"m,trusted,run_log")
    server.say("/results.csv", Reply(body))
    assert ended(run(scheduled(server.url()))) == ("failed", "shape_refused")
    assert nothing_was_kept()


@pytest.mark.parametrize(
    ("status", "cause"), [(401, "key_refused"), (403, "key_refused"), (404, "not_found"), (418, "http_error")]
)
def test_what_will_not_pass_is_asked_once(server: SourceServer, status: int, cause: str) -> None:
    server.say("/results.csv", Reply(status=status))
    found = run(scheduled(server.url()))
    assert ended(found) == ("failed", cause)
    assert (found.http_status, found.requests) == (status, 1)


def test_where_nobody_listens_is_a_cause(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.01)
    world.register("m")
    with socket.socket() as held:
        held.bind((LOOPBACK, 0))
        place = f"{LOOPBACK}:{held.getsockname()[1]}"
        settings.REFRESH_ALLOW = [place]
        assert ended(run(scheduled(f"http://{place}/x.csv"))) == ("failed", "unreachable")


def test_an_error_of_ours_ends_the_run_too(
    server: SourceServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("evaluations.services.refresh.apply_import_files", broken)
    server.say("/results.csv", Reply(table(m=84)))
    found = run(scheduled(server.url()))
    assert (*ended(found), found.detail) == ("failed", "our_fault", "ZeroDivisionError")
    assert "the refresh of lab failed" in caplog.text


def test_a_host_is_asked_so_often_a_second_and_no_more(server: SourceServer, settings: Any) -> None:
    settings.REFRESH_HOST_RATE = 5
    server.say("/results.csv", Reply(table(m=84)))
    schedules = [scheduled(server.url(), key=f"lab-{number}") for number in range(4)]
    began = time.monotonic()
    for schedule in schedules:
        run(schedule)
    assert time.monotonic() - began >= 0.6
    assert HostPace.objects.get().host == server.place


def test_the_clock_finds_what_is_due_once(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84)))
    schedule = scheduled(server.url())
    paused = scheduled(server.url(), key="paused", paused=True)
    assert claim_due(limit=10) == [schedule.source_id]
    assert claim_due(limit=10) == []
    assert refresh_source(schedule.source_id) is not None
    assert refresh_source(schedule.source_id) is None, "it is not due again"
    assert refresh_source(paused.source_id) is None
    late = now() + timedelta(minutes=61)
    assert claim_due(limit=10, at=late) == [schedule.source_id]


def test_asking_gives_one_open_run_and_the_worker_carries_that_out(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84)))
    schedule = scheduled(server.url(), paused=True)
    asked = request_refresh(actor=world.ACTOR, source=schedule.source, forced=True)
    assert request_refresh(actor=world.ACTOR, source=schedule.source).pk == asked.pk
    assert (asked.outcome, RefreshRun.objects.count()) == ("queued", 1)
    # The message was lost: the clock finds it, once the message had its time.
    assert claim_due(limit=10) == []
    assert claim_due(limit=10, at=now() + timedelta(minutes=6)) == [schedule.source_id]
    done = refresh_source(schedule.source_id)
    assert done is not None
    assert (done.pk, done.outcome, done.forced) == (asked.pk, "taken", True)
    assert LedgerEntry.objects.filter(action="refresh_run.opened").count() == 1
    assert LedgerEntry.objects.filter(action="refresh_run.ended").count() == 1


def test_a_run_whose_worker_is_gone_is_ended_by_the_next(server: SourceServer) -> None:
    server.say("/results.csv", Reply(table(m=84)))
    schedule = scheduled(server.url())
    left = request_refresh(actor=world.ACTOR, source=schedule.source)
    with service_transaction("test"):
        RefreshRun.claim(left.pk, expected={}, moved_to={"outcome": "running", "started_at": now()})
    done = refresh_source(schedule.source_id)
    assert done is not None
    assert (ended(left.reload()), ended(done)) == (("interrupted", "worker_gone"), ("taken", "new_evidence"))
    assert left.ended_at is not None


def test_what_ends_workers_again_and_again_is_left_alone_for_a_while(server: SourceServer) -> None:
    schedule = scheduled(server.url())
    for _ in range(3):
        left = request_refresh(actor=world.ACTOR, source=schedule.source)
        with service_transaction("test"):
            RefreshRun.claim(left.pk, expected={}, moved_to={"outcome": "running"})
            SourceSchedule.objects.update(due_at=now() + timedelta(hours=1))
        last = refresh_source(schedule.source_id)
        if last is None:
            break
    assert last is None
    assert schedule.reload().due_at > now()
