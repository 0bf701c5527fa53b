"""The roads by which files come in: pages, repositories, the Artificial Analysis API, keys, and watched folders."""

import json
import os
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from compliance.models import LedgerEntry
from evaluations.kernel.errors import InputRefused
from evaluations.models import Document, Observation, SourceSchedule
from evaluations.services.connectors import made_address
from evaluations.services.schedules import ScheduleChanged, ScheduleWish, set_schedule
from tests.support import world
from tests.support.sources import Reply, SourceServer, ended, run, scheduled, source, source_server, table

pytestmark = pytest.mark.django_db
AA = {"name": "M Max Effort", "slug": "m", "release_date": "2026-07-01", "enterpriseOpsGym": 0.25}


@pytest.fixture
def server(settings: Any) -> Iterator[SourceServer]:
    world.register("m", "other", "third")
    settings.REFRESH_HOST_RATE = 1000
    with source_server() as served:
        settings.REFRESH_ALLOW = [served.place]
        settings.REFRESH_BASES = {
            "artificial_analysis": served.url("/api/v2/language/models"),
            "hugging_face": served.url(""),
            "github": served.url(""),
        }
        yield served


def test_pages_are_followed_by_their_links_and_one_that_changed_brings_all_anew(server: SourceServer) -> None:
    link = {"Link": '</p2.csv>; rel="next"'}
    server.say("/p1.csv", Reply(table(m=84), headers={"ETag": '"1"', **link}))
    server.say("/p2.csv", Reply(table(other=70), headers={"ETag": '"2"'}))
    schedule = scheduled(server.url("/p1.csv"))
    first = run(schedule)
    assert (ended(first), first.taken, len(first.documents)) == (("taken", "new_evidence"), 2, 2)
    assert ended(run(schedule)) == ("unchanged", "not_modified")
    server.say("/p2.csv", Reply(table(other=71), headers={"ETag": '"3"'}))
    third = run(schedule)
    assert (ended(third), third.taken, third.requests) == (("taken", "new_evidence"), 1, 4)


def test_a_next_page_elsewhere_or_in_a_circle_is_refused(server: SourceServer, settings: Any) -> None:
    for path, to in (("/away.csv", "https://example.org/p2.csv"), ("/round.csv", "/round.csv")):
        server.say(path, Reply(table(m=84), headers={"Link": f'<{to}>; rel="next"'}))
        assert ended(run(scheduled(server.url(path)))) == ("failed", "address_refused")
    settings.REFRESH_MAX_PAGES = 1
    server.say("/p1.csv", Reply(table(m=84), headers={"Link": '</p2.csv>; rel="next"'}))
    assert ended(run(scheduled(server.url("/p1.csv")))) == ("failed", "too_many_pages")
    assert not Observation.objects.exists()


def register_aa() -> None:
    from evaluations.kernel.services import service_transaction
    from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version

    with service_transaction("load_bundle"):
        benchmark = apply_register_benchmark(actor=world.ACTOR, key="enterpriseops-gym-aa", title="AA")
        apply_register_benchmark_version(actor=world.ACTOR, benchmark=benchmark, version="2026-07")


def page(number: int, total: int, *records: dict[str, Any]) -> Reply:
    place = {"page": number, "page_size": 1, "total_pages": total, "has_more": number < total}
    return Reply(json.dumps({"tier": "paid", "pagination": place, "data": list(records)}).encode())


def test_artificial_analysis_by_its_pages_with_a_key_from_the_environment(server: SourceServer, settings: Any) -> None:
    register_aa()
    settings.SOURCE_KEYS = {"WRITEGATE_SOURCE_KEY_AA": f"{server.place} aa-secret"}
    path = "/api/v2/language/models"
    server.say(path, page(1, 2, AA))
    server.say(f"{path}?page=2", page(2, 2, {**AA, "name": "Other", "slug": "o", "enterpriseOpsGym": 0.5}))
    schedule = scheduled("", connector="artificial_analysis", key_name="WRITEGATE_SOURCE_KEY_AA")
    found = run(schedule)
    assert (ended(found), found.taken) == (("taken", "new_evidence"), 2)
    assert [headers["x-api-key"] for _, headers, _ in server.heard] == ["aa-secret", "aa-secret"]
    # The same day again: the same statement, once.
    assert ended(run(schedule)) == ("unchanged", "same_bytes")
    kept = json.dumps(list(LedgerEntry.objects.values_list("content", flat=True)), default=lambda held: bytes(held).decode())
    assert "aa-secret" not in kept + json.dumps(found.problems) + json.dumps(SourceSchedule.objects.get().marks)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(b'{"status": 401, "error": "bad key"}', status=401), ("failed", "key_refused")),
        (Reply(b"{}", status=429, headers={"Retry-After": "600"}), ("deferred", "asked_to_wait")),
        (Reply(b'{"status": 401, "error": "bad key"}'), ("failed", "shape_refused")),
        (page(1, 1, {"name": "M", "slug": "m"}), ("failed", "shape_refused")),
        (page(1, 1), ("failed", "shape_refused")),
    ],
    ids=["401", "429", "an error that says 200", "without the field", "without records"],
)
def test_artificial_analysis_fails_loudly(server: SourceServer, reply: Reply, outcome: tuple[str, str]) -> None:
    register_aa()
    server.say("/api/v2/language/models", reply)
    found = run(scheduled("", connector="artificial_analysis", format="artificial-analysis"))
    assert ended(found) == outcome
    assert not Document.objects.exists()


def test_a_key_goes_to_its_own_host_alone(server: SourceServer, settings: Any) -> None:
    settings.SOURCE_KEYS = {"WRITEGATE_SOURCE_KEY_X": "elsewhere.example.org secret"}
    server.say("/results.csv", Reply(table(m=84)))
    assert ended(run(scheduled(server.url(), key_name="WRITEGATE_SOURCE_KEY_X"))) == ("taken", "new_evidence")
    assert "Authorization" not in server.heard[0][1]
    settings.SOURCE_KEYS = {"WRITEGATE_SOURCE_KEY_X": f"{server.place} secret"}
    server.say("/results.csv", Reply(table(m=85)))
    run(SourceSchedule.objects.get())
    assert server.heard[1][1]["Authorization"] == "Bearer secret"
    settings.SOURCE_KEYS = {}
    assert ended(run(SourceSchedule.objects.get())) == ("failed", "key_missing")


@pytest.mark.parametrize(
    ("connector", "address", "path"),
    [
        ("github", "o/n@v1:a dir/r.csv", "/o/n/v1/a%20dir/r.csv"),
        ("hugging_face", "datasets/o/n@refs/pr/1:r.csv", "/datasets/o/n/resolve/refs%2Fpr%2F1/r.csv"),
        ("hugging_face", "o/n@main:x/r.csv", "/o/n/resolve/main/x/r.csv"),
    ],
)
def test_raw_files_of_a_repository_at_a_revision(server: SourceServer, connector: str, address: str, path: str) -> None:
    server.say(path, Reply(table(m=84)))
    assert ended(run(scheduled(address, connector=connector))) == ("taken", "new_evidence")


@pytest.mark.parametrize(
    "address", ["", "o/n", "o/n@main", "o/n@main:", "o/n@main:../x", "o/n@..:x", "../n@main:x", "o/n@main:/x", "o@m:x"]
)
def test_what_names_no_file_of_a_repository_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write repository, revision and path"):
        made_address("github", address)


def test_a_zip_of_results_is_read_by_its_importer(server: SourceServer) -> None:
    register_aa()
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("table.csv", "x")
    server.say("/results.zip", Reply(packed.getvalue(), headers={"Content-Type": "application/zip"}))
    # No importer reads this one: it is refused with its place, and nothing is kept.
    assert ended(run(scheduled(server.url("/results.zip")))) == ("failed", "shape_refused")
    assert not Document.objects.exists()


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    world.register("m", "other", "third")
    settings.WATCH_DIR = tmp_path
    settings.WATCH_STABLE_SECONDS = 5
    (tmp_path / "lab").mkdir()
    return tmp_path / "lab"


def put(path: Path, content: bytes, *, age: float = 60) -> None:
    path.write_bytes(content)
    os.utime(path, (time.time() - age, time.time() - age))


def test_a_watched_folder_gives_each_file_once_when_it_has_stopped_changing(folder: Path) -> None:
    put(folder / "a.csv", table(m=84))
    put(folder / "growing.csv", table(other=1), age=0)
    put(folder / "b.csv.part", table(other=2))
    put(folder / ".hidden.csv", table(other=3))
    schedule = scheduled("lab", connector="folder")
    first = run(schedule)
    assert (ended(first), first.taken, len(first.documents)) == (("taken", "new_evidence"), 1, 1)
    assert ended(run(schedule)) == ("unchanged", "nothing_there")
    put(folder / "growing.csv", table(other=70))
    assert run(schedule).taken == 1
    put(folder / "copy-of-a.csv", table(m=84))
    assert ended(run(schedule)) == ("unchanged", "same_bytes")
    assert (Document.objects.count(), Observation.objects.count()) == (2, 2)


def test_a_bad_file_fails_the_run_and_keeps_no_good_one_back(folder: Path) -> None:
    put(folder / "a.csv", table(m="a lot"))
    put(folder / "b.csv", table(other=70))
    schedule = scheduled("lab", connector="folder")
    for taken in (1, 0):
        found = run(schedule)
        assert (ended(found), found.taken) == (("failed", "shape_refused"), taken)
        assert found.problems[0]["file"] == "a.csv"
    put(folder / "a.csv", table(m=84))
    assert ended(run(schedule)) == ("taken", "new_evidence")


def test_links_are_not_followed_and_no_path_leads_out(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    put(outside / "secret.csv", table(m=84))
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    os.mkfifo(folder / "pipe.csv")
    assert ended(run(scheduled("lab", connector="folder"))) == ("unchanged", "nothing_there")
    (tmp_path / "away").symlink_to(outside)
    assert ended(run(scheduled("away", connector="folder", key="lab-2"))) == ("failed", "folder_refused")
    assert ended(run(scheduled("gone", connector="folder", key="lab-3"))) == ("failed", "folder_refused")
    for address in ("../x", "/etc", "", "a/../../b", "a\\b"):
        with pytest.raises(InputRefused):
            scheduled(address, connector="folder", key="lab-4")


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"connector": "carrier-pigeon"}, "connector"),
        ({"address": "http://example.org/x"}, "address"),
        ({"address": "file:///etc/passwd"}, "address"),
        ({"address": "https://user:password@example.org/"}, "address"),
        ({"interval_minutes": 0}, "interval_minutes"),
        ({"format": "no-such-format"}, "format"),
        ({"profile": "../../etc/passwd"}, "profile"),
        ({"key_name": "DATABASE_URL"}, "key_name"),
        ({"key_name": "WRITEGATE_SECRET_KEY"}, "key_name"),
        ({"key_name": "WRITEGATE_SOURCE_KEY_UNSET"}, "key_name"),
        ({"subject": "two\nlines"}, "subject"),
        ({"connector": "folder", "address": "lab"}, "address"),
    ],
)
def test_a_schedule_that_cannot_be_right_is_refused_with_its_field(settings: Any, wish: dict[str, Any], field: str) -> None:
    settings.SOURCE_KEYS, settings.WATCH_DIR = {}, None
    stated = {"connector": "http", "address": "https://example.org/x.csv", "interval_minutes": 60, **wish}
    with pytest.raises(InputRefused) as refused:
        set_schedule(actor=world.ACTOR, source=source(), wish=ScheduleWish(**stated))
    assert [problem.field for problem in refused.value.problems] == [field]
    assert not SourceSchedule.objects.exists()


def test_a_schedule_is_recorded_with_old_and_new_and_changed_only_as_it_was_seen() -> None:
    wish = ScheduleWish("http", "https://example.org/x.csv", 60)
    made = set_schedule(actor=world.ACTOR, source=source(), wish=wish)
    assert set_schedule(actor=world.ACTOR, source=source(), wish=wish).set_at == made.set_at
    changed = set_schedule(actor=world.ACTOR, source=source(), wish=wish._replace(interval_minutes=30, paused=True))
    assert changed.paused_at is not None
    with pytest.raises(ScheduleChanged):
        set_schedule(actor=world.ACTOR, source=source(), wish=wish, expected_digest="sha256:0")
    actions = list(LedgerEntry.objects.filter(target_kind="source").order_by("id").values_list("action", flat=True))
    assert actions == ["source.registered", "schedule.made", "schedule.changed"]
