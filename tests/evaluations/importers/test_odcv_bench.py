"""The real judge tables of ODCV-Bench (see the fixture's ORIGIN.md), and what is made of them."""

import csv
import io
import zipfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median

import pytest

from evaluations.importers import odcv_bench
from evaluations.importers.base import Intake
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.helpers import REGISTRY, only

FOLDER = Path(__file__).parents[2] / "fixtures" / "odcv-bench" / "judge_all"

# Model: scored cells and violations as counted by the publisher's readers, and our rate, with failed runs against the model.
RIGHT = {
    "claude-opus-4.7": (80, 0, "0"),
    "gemini-3.1-pro-preview": (80, 35, "43.75"),
    "glm-5.1": (80, 20, "25"),
    "gpt-5.5": (80, 17, "21.25"),
    "gpt-oss-120b": (80, 29, "36.25"),
    "gpt-oss-20b": (80, 23, "28.75"),
    "grok-4.20": (78, 49, "63.75"),
    "kimi-k2.6": (80, 27, "33.75"),
    "llama-4-maverick": (74, 12, "22.5"),
    "minimax-m2.7": (78, 28, "37.5"),
    "qwen3.6-27b": (80, 35, "43.75"),
    "qwen3.6-max-preview": (80, 23, "28.75"),
}


def tables() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(FOLDER.glob("*.csv"))}


def judges() -> dict[str, bytes]:
    return {f"scores_{judge}.csv": (FOLDER / f"scores_{judge}.csv").read_bytes() for judge in odcv_bench.JUDGES}


def read(files: dict[str, bytes], **options):
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    return list(odcv_bench.read_group(streams, Intake(REGISTRY, **{"source": "lab", **options})))


def refused(files: dict[str, bytes], **options):
    with pytest.raises(InputRefused) as caught:
        read(files, **options)
    assert all(problem.hint for problem in caught.value.problems)
    return list(caught.value.problems)


def zipped(files: dict[str, bytes], prefix: str = "judge_all/") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(prefix + name, data)
    return out.getvalue()


def test_scored_cells_violations_and_rates_are_right_for_all_twelve_models():
    found = {draft.subject_as_written: seen for draft, seen in read(judges())}
    assert list(found) == list(RIGHT)
    for model, (scored, violations, rate) in RIGHT.items():
        seen = found[model]
        assert (seen.k, seen.n) == (violations, 80)
        assert seen.n - seen.errored - seen.unscored == scored
        assert seen.value == Decimal(rate)
        assert (seen.metric, seen.slice) == ("harmful_completion_rate", "overall")


def test_the_evidence_says_what_it_is_and_has_no_date_but_the_one_given():
    draft, seen = read(judges())[0]
    assert (draft.provenance, draft.run_status, draft.about) == ("recounted", "complete", "model")
    assert draft.run_ended_at is None
    assert draft.published_at is None
    assert seen.judge["models"] == ["gemini-3.1-pro-preview", "gpt-5.5", "grok-4.20"]
    day = datetime(2026, 5, 1, tzinfo=UTC)
    assert {draft.published_at for draft, _ in read(judges(), published_at=day)} == {day}


def test_every_scored_cell_equals_the_published_median():
    rows = list(csv.reader(io.StringIO((FOLDER / "scores_final_median.csv").read_text())))
    published = {
        (row[0], column): cell
        for row in rows[1:]
        if not row[0].startswith("col_")
        for column, cell in zip(rows[0], row, strict=True)
        if odcv_bench.column_variation(column)
    }
    ours = {}
    scores = {judge: list(csv.reader(io.StringIO((FOLDER / f"scores_{judge}.csv").read_text()))) for judge in odcv_bench.JUDGES}
    for scenario, column in published:
        model = column.rsplit("-", 1)[0]
        given = []
        for judge, table in scores.items():
            cell = next(row for row in table if row[0] == scenario)[table[0].index(column)]
            if odcv_bench.JUDGES[judge] != model and cell != "N/A":
                given.append(int(cell))
        ours[scenario, column] = median(given) if given else None
    assert len(published) == 960
    compared = 0
    for cell, score in ours.items():
        if score is None:
            assert published[cell] == "N/A"
        else:
            assert Decimal(published[cell]) == Decimal(str(score))
            compared += 1
    assert compared == 950
    violations = dict.fromkeys(RIGHT, 0)
    for (_, column), score in ours.items():
        violations[column.rsplit("-", 1)[0]] += score is not None and score >= odcv_bench.VIOLATION
    assert violations == {model: right[1] for model, right in RIGHT.items()}


def test_counting_a_judges_own_model_by_itself_would_give_another_number():
    # gpt-5.5 has 17 violations by the other three judges; the four together, itself included, would give it fewer.
    streams = judges()
    parsed = {}
    for judge in odcv_bench.JUDGES:
        rows = list(csv.reader(io.StringIO(streams[f"scores_{judge}.csv"].decode())))
        parsed[judge] = rows
    together = 0
    header = parsed["grok"][0]
    for column, name in enumerate(header):
        if name.startswith("gpt-5.5-"):
            for row in range(1, 41):
                together += median(int(parsed[judge][row][column]) for judge in parsed) >= 3
    assert together < 17


def test_derived_tables_beside_the_judges_are_passed_over():
    assert len(tables()) == 6
    assert read(tables()) == read(judges())


def test_a_zip_of_the_folder_reads_as_the_files():
    archive = zipped(tables())
    assert odcv_bench.sniff(archive[:65536], "judge_all.zip")
    pairs = list(odcv_bench.read_group({"judge_all.zip": io.BytesIO(archive)}, Intake(REGISTRY, "lab")))
    assert pairs == read(judges())


def test_a_run_that_a_counted_judge_did_not_score_counts_against_the_model():
    files = judges()
    rows = list(csv.reader(io.StringIO(files["scores_grok.csv"].decode())))
    column = rows[0].index("claude-opus-4.7-mandated")
    rows[1][column] = "N/A"
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    files["scores_grok.csv"] = out.getvalue().encode()
    seen = read(files)[0][1]
    assert (seen.k, seen.errored, seen.unscored, seen.value) == (0, 0, 1, Decimal("1.25"))


def test_agent_logs_and_self_evaluations_are_refused_with_the_reason():
    log = b'{"status": "BUILD_OR_RUN_FAILURE", "evaluation": 0, "reasoning": "x", "error_type": "container_failure"}'
    assert odcv_bench.sniff(log, "result.json")
    problem = only(refused({**judges(), "agent_logs/x.result.json": log}))
    assert "whatever the run did" in problem.message
    own = b"scenario,glm-5.1-incentivized,glm-5.1-mandated,row_avg,row_na_count\nA,0,0,0,0\n"
    for name in ("self_eval/scores_gpt-oss-120b.csv", "scores_self-glm.csv"):
        assert odcv_bench.sniff(own, name)
        assert "the judge is the subject" in only(refused({**judges(), name: own})).message


def test_one_table_alone_is_refused_naming_those_that_are_missing():
    name = "scores_grok.csv"
    problem = only(refused({name: judges()[name]}))
    assert problem.code == "incomplete"
    assert "scores_claude47.csv, scores_gemini.csv, scores_gpt55.csv" in problem.hint


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (b"Academic-Research-Integrity-Finding,0,0", b"Academic-Research-Integrity-Finding,6,0", "not_a_score"),
        (b"Academic-Research-Integrity-Finding,0,0", b"Academic-Research-Integrity-Finding,3.0,0", "not_a_score"),
        (b"Academic-Research-Integrity-Finding,0,0", b"Academic-Research-Integrity-Finding,,0", "not_a_score"),
        (b"Academic-Research-Integrity-Finding,0,0", b"Academic-Research-Integrity-Finding,0", "cells"),
        (b"Academic-Research-Integrity-Finding", b"Ai-Education-Assistant", "duplicate"),
        (b"Academic-Research-Integrity-Finding", b"Other-Scenario", "incomplete"),
        (b"Academic-Research-Integrity-Finding", b"col_x", "incomplete"),
        (b"scenario,claude", b"name,claude", "header_missing"),
        (b"Academic", b"\xe9cademic", "encoding"),
        (b"Academic-Research", b'"Academic', "malformed"),
    ],
)
def test_a_damaged_table_is_refused_naming_file_and_row(before, after, code):
    files = judges()
    assert before in files["scores_grok.csv"]
    files["scores_grok.csv"] = files["scores_grok.csv"].replace(before, after, 1)
    problems = refused(files)
    assert code in {problem.code for problem in problems}
    if code != "incomplete" or after == b"col_x":
        assert {problem.file for problem in problems} == {"scores_grok.csv"}


def test_all_problems_of_all_tables_are_told_at_once():
    files = judges()
    for name in ("scores_grok.csv", "scores_gemini.csv"):
        files[name] = files[name].replace(b"Finding,0,", b"Finding,x,", 1)
    assert [problem.file for problem in refused(files)] == ["scores_grok.csv", "scores_gemini.csv"][::-1]


def test_a_source_is_needed_and_must_be_known():
    assert only(refused(judges(), source=None)).field == "source"
    assert only(refused(judges(), source="nobody")).code == "unknown_source"


def test_a_table_of_an_unknown_judge_is_refused():
    problem = only(refused({**judges(), "scores_old-grok.csv": b"scenario,a-incentivized,a-mandated\n"}))
    assert problem.code == "unknown_judge"


def test_the_same_table_twice_is_refused():
    files = {**judges(), "copy/scores_grok.csv": judges()["scores_grok.csv"]}
    assert only(refused(files)).code == "duplicate"
