"""Bad input at the command: one clear message with file, line or row, and field; exit code 2; nothing half loaded."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from compliance.models import LedgerEntry
from evaluations.models import Document, Evidence, Observation
from tests.support import world

pytestmark = pytest.mark.django_db
HEADER = "subject,source,provenance,metric,benchmark,version,value,unit,run_status,run_ended_at\n"
ROW = "m,lab,run_log,infeasible_refusal_rate,bench,1,{value},percent,complete,2026-11-01T00:00:00Z\n"


@pytest.fixture(autouse=True)
def registered() -> None:
    world.register("m")


def run(*arguments: object) -> tuple[int, str, str]:
    """Run the command; return exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import_evidence", *map(str, arguments), stdout=out, stderr=err)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def written(directory: Path, name: str, content: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def nothing_was_kept() -> bool:
    return not (Evidence.objects.exists() or Observation.objects.exists() or Document.objects.exists())


def test_a_good_file_is_imported_and_the_same_bytes_once(tmp_path: Path) -> None:
    path = written(tmp_path, "good.csv", HEADER + ROW.format(value="84.4"))
    code, out, err = run(path)
    assert (code, err) == (0, "")
    assert "1 observations in 1 pieces of evidence" in out
    code, out, _ = run(path)
    assert code == 0
    assert "recorded before" in out
    assert Observation.objects.count() == 1
    assert Document.objects.get().size == path.stat().st_size


def document(**change: object) -> str:
    return json.dumps(world.submission("m", world.observation(**change)))


BAD = {
    "truncated.json": (document()[:-30], ["truncated.json", "line 1"]),
    "nan.json": (document().replace('"84"', "NaN"), ["nan.json", "value"]),
    "infinity.json": (document().replace('"84"', "Infinity"), ["infinity.json", "value"]),
    "huge.json": (document().replace('"84"', "1e400"), ["huge.json", "value"]),
    "unit.json": (document(unit="fraction"), ["unit.json", "unit"]),
    "metric.json": (document(metric="safe_refusal"), ["metric.json", "safe_refusal", "metric"]),
    "benchmark.json": (document(benchmark="nowhere"), ["benchmark.json", "nowhere"]),
    "version.json": (document(version="9"), ["version.json", "version"]),
    "twice.json": (document().replace('"unit": "percent"', '"unit": "percent", "unit": "percent"'), ["twice.json", "unit"]),
    "empty.json": ("", ["empty.json", "empty"]),
    "nothing.json": (json.dumps({**world.submission("m"), "evidence": []}), ["nothing.json", "evidence"]),
    "rows.csv": (HEADER + ROW.format(value="84") + ROW.format(value="84"), ["rows.csv", "3"]),
    "second.csv": (HEADER + ROW.format(value="84") + ROW.format(value="nan").replace("m,", "m2,"), ["second.csv", "3", "value"]),
    "latin.csv": ((HEADER + ROW.format(value="84")).replace("m,lab", "m\xe9,lab").encode("latin-1"), ["latin.csv", "UTF-8"]),
    "wide.csv": ((HEADER + ROW.format(value="84")).encode("utf-16"), ["wide.csv", "UTF"]),
    "bom.csv": (b"\xef\xbb\xbf" + (HEADER + ROW.format(value="84")).encode(), ["bom.csv", "byte order mark"]),
    "header.csv": ("subject,metric\nm,x\n", ["header.csv", "row 1", "`provenance`"]),
    "semicolon.csv": ((HEADER + ROW.format(value="84")).replace(",", ";"), ["semicolon.csv"]),
    "range.csv": (HEADER + ROW.format(value="101"), ["range.csv", "value", "100"]),
    "negative.csv": (HEADER + ROW.format(value="-1"), ["negative.csv", "value"]),
    "digits.csv": (HEADER + ROW.format(value="79.99999999"), ["digits.csv", "value"]),
    "future.csv": (HEADER + ROW.format(value="84").replace("2026-11-01", "2999-01-01"), ["future.csv", "future"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    content, told = BAD[name]
    code, _, err = run(written(tmp_path, name, content))
    assert code == 2, err
    assert err.startswith("error: ")
    assert "Traceback" not in err
    for word in told:
        assert word in err, err
    assert nothing_was_kept()
    assert LedgerEntry.objects.filter(action="evidence.refused").count() == 1


def test_one_bad_file_of_two_leaves_neither(tmp_path: Path) -> None:
    good = written(tmp_path, "good.csv", HEADER + ROW.format(value="84"))
    bad = written(tmp_path, "bad.csv", HEADER + ROW.format(value="84%"))
    code, _, err = run(good, bad)
    assert code == 2
    assert "bad.csv" in err
    assert nothing_was_kept()


def test_a_late_problem_undoes_the_rows_already_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluations.services.loading.BATCH", 10)
    rows = "".join(ROW.format(value="84").replace("m,", f"m{number},") for number in range(50))
    code, _, err = run(written(tmp_path, "late.csv", HEADER + rows + ROW.format(value="x")))
    assert code == 2
    assert "52" in err
    assert nothing_was_kept()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    code, _, err = run(tmp_path)
    assert code == 2
    assert "is a directory" in err
    code, _, err = run(tmp_path / "nowhere.json")
    assert code == 2
    assert "nowhere.json" in err
    assert "No such file" in err


def test_a_file_of_two_gigabytes_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as out:
        out.truncate(2 * 1024**3)
    code, _, err = run(path)
    assert code == 2
    assert "huge.csv" in err
    assert "larger than" in err
    assert nothing_was_kept()


PROFILE = {
    "format": "writegate-profile/1",
    "name": "lab-table",
    "importer": "table",
    "subject": "Model",
    "provenance": "reported",
    "run_status": "complete",
    "measures": [
        {
            "of": "Refused",
            "metric": "infeasible_refusal_rate",
            "better": "higher",
            "level": "task",
            "unit": "percent",
            "benchmark": "bench",
            "version": "1",
        }
    ],
}


def test_a_table_is_imported_by_a_profile_whose_bytes_are_kept_and_named(tmp_path: Path) -> None:
    table = written(tmp_path, "table.csv", "Model,Refused\nm,84.4\n")
    code, _, err = run(table, "--source", "lab")
    assert code == 2
    assert "table.csv" in err
    assert "--profile" in err
    profile = written(tmp_path, "lab.json", json.dumps(PROFILE))
    code, out, err = run(table, "--source", "lab", "--profile", profile)
    assert (code, err) == (0, "")
    assert "1 observations in 1 pieces of evidence (table)" in out
    kept = Document.objects.get(file_name="lab.json")
    assert kept.digest in Evidence.objects.get().note
    code, _, err = run(table, "--source", "lab", "--profile", tmp_path / "nowhere.json")
    assert code == 2
    assert "nowhere.json" in err


def test_the_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call_command("import_evidence", "--help")
    told = capsys.readouterr().out
    assert "examples:\n  manage.py import_evidence results.json" in told
    assert "--source demo-lab" in told
    assert "One of your own is proposed under *Sources*" in told


@pytest.mark.parametrize("place", ["subject", "note", "as_written", "slice", "metric", "version"])
def test_a_nul_character_is_refused_wherever_it_stands(tmp_path: Path, place: str) -> None:
    whole = world.submission("m")
    evidence = whole["evidence"][0]
    if place in {"subject", "note"}:
        evidence[place] = "m\0"
    else:
        evidence["observations"][0][place] = "1\0"
    code, _, err = run(written(tmp_path, "nul.json", json.dumps(whole)))
    assert code == 2, err
    assert err.startswith("error: ")
    assert nothing_was_kept()
