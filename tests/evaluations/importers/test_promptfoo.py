"""promptfoo results: planned tests are the denominator, an errored row is no pass, and only a profile says what an assertion means."""

import io
import json
from typing import Any

import pytest

from evaluations.importers import promptfoo
from evaluations.importers.base import Pair, Profile
from evaluations.importers.registry import pick, read_files
from evaluations.kernel.errors import InputRefused, Problem
from tests.evaluations.importers.helpers import only
from tests.evaluations.importers.profiled import REGISTRY, measure, profile
from tests.support.evidence_files import evidence_bytes

EXPECTED = json.loads(evidence_bytes("promptfoo/expected.json"))["files"]
MODELS = {"scripted-refuser-v1": "refuser-1", "scripted-complier-v1": "complier-1"}
PROFILE = profile(
    promptfoo.NAME,
    measure("SafeRefusal", "harmful_refusal_rate"),
    measure("Completion", "task_completion_rate"),
    providers=MODELS,
)


def data(name: str = "out.json") -> bytes:
    return evidence_bytes(f"promptfoo/{name}")


def read(content: bytes, given: Profile | None = PROFILE, *, name: str = "out.json") -> list[Pair]:
    importer = pick(None, content[:65536], name)
    return list(read_files(importer, {name: io.BytesIO(content)}, registry=REGISTRY, source="lab", profile=given))


def refused(content: bytes, given: Profile | None = PROFILE, *, name: str = "out.json") -> list[Problem]:
    with pytest.raises(InputRefused) as caught:
        read(content, given, name=name)
    for problem in caught.value.problems:
        assert problem.file
        assert problem.hint
    return list(caught.value.problems)


def changed(index: int, **fields: Any) -> bytes:
    """Return the real file with fields of one row changed, its statistics left out of date only where asked."""
    value = json.loads(data())
    value["results"]["results"][index] |= fields
    counts = [row["failureReason"] for row in value["results"]["results"]]
    value["results"]["stats"] |= {"successes": counts.count(0), "failures": counts.count(1), "errors": counts.count(2)}
    return json.dumps(value).encode()


def refusals(content: bytes) -> Pair:
    """Return the refusal rate of the model that refuses."""
    (pair,) = [
        each for each in read(content) if (each[0].subject_as_written, each[1].metric) == ("refuser-1", "harmful_refusal_rate")
    ]
    return pair


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_the_real_files_give_the_same_counts_over_planned_tests(name):
    found = {(draft.subject_as_written, seen.metric): (draft, seen) for draft, seen in read(data(name), name=name)}
    for label, right in EXPECTED[name]["per_provider"].items():
        draft, seen = found[MODELS[label], "harmful_refusal_rate"]
        assert (seen.k, seen.n, seen.errored) == (
            right["safe_refusal_k"],
            right["safe_refusal_n_planned"],
            right["safe_refusal_n_planned"] - right["safe_refusal_n"],
        )
        assert draft.run_status == ("unknown" if name == "out.jsonl" else "complete")
        assert found[MODELS[label], "task_completion_rate"][1].n == 1
    assert len(found) == 4


def test_what_the_file_says_of_itself_goes_on_record():
    draft, _ = read(data())[0]
    assert draft.harness == f"promptfoo {EXPECTED['out.json']['promptfoo_version']}"
    assert draft.run_ended_at.isoformat() == "2026-11-29T17:15:14.097000+00:00"
    assert draft.note.startswith("read with the profile mine (sha256:")


@pytest.mark.parametrize("name", ["out.csv", "out.yaml", "out.xml"])
def test_other_forms_are_refused_and_the_json_is_asked_for(name):
    content = data(name) if name != "out.xml" else b"<promptfoo>\n  <evalId>eval-1</evalId>\n</promptfoo>\n"
    problem = only(refused(content, name=name))
    assert (problem.code, "JSON" in problem.hint) == ("unknown_shape", True)


def test_without_a_profile_an_assertion_means_nothing():
    problem = only(refused(data(), None))
    assert (problem.code, "`SafeRefusal`" in problem.message) == ("profile_missing", True)


def test_one_id_stands_for_two_models_and_a_label_that_nobody_mapped_is_refused():
    given = profile(promptfoo.NAME, measure("SafeRefusal", "harmful_refusal_rate"), providers={"file://scripted.js": "m"})
    assert {problem.code for problem in refused(data(), given)} == {"unmapped_name"}
    given = profile(promptfoo.NAME, measure("SafeRefusal", "harmful_refusal_rate"))
    assert only(refused(data(), given)).field == "providers"
    given = profile(promptfoo.NAME, measure("accuracy", "harmful_refusal_rate"), providers=MODELS)
    assert only(refused(data(), given)).code == "empty"


def test_a_headline_that_its_own_rows_contradict_is_refused():
    value = json.loads(data())
    value["results"]["stats"]["successes"] = 7
    problem = only(refused(json.dumps(value).encode()))
    assert (problem.code, problem.field) == ("contradicts_counts", "results.stats.successes")


def test_a_model_that_says_nothing_passes_no_assertion():
    rows = json.loads(data())["results"]["results"]
    index = next(place for place, row in enumerate(rows) if row["success"] and "SafeRefusal" in row["namedScores"])
    for said in ({"output": "  "}, {"output": ""}, {}):
        draft, seen = refusals(changed(index, response=said))
        assert (seen.k, seen.unscored, seen.errored) == (1, 1, 1)
        assert "1 rows without any output" in draft.note
    _, seen = refusals(changed(index, namedScores=dict.fromkeys(rows[index]["namedScores"], 0.5)))
    assert (seen.k, seen.unscored) == (1, 1)


def test_failures_are_counted_where_the_profile_says_so():
    given = profile(promptfoo.NAME, measure("SafeRefusal", "harmful_completion_rate", counts="failures"), providers=MODELS)
    found = {draft.subject_as_written: seen for draft, seen in read(data(), given)}
    assert (found["complier-1"].k, found["complier-1"].errored, found["complier-1"].value) == (2, 1, 100)
    assert found["refuser-1"].k == 0
    given = profile(promptfoo.NAME, measure("SafeRefusal", "harmful_completion_rate", counts="hits"), providers=MODELS)
    assert only(refused(data(), given)).field == "measures[0].counts"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"success": "yes"}, "unknown_shape"),
        ({"failureReason": 1, "success": True}, "contradicts_counts"),
        ({"failureReason": None}, "contradicts_counts"),
        ({"testIdx": None}, "missing"),
        ({"testIdx": -1}, "not_a_count"),
        ({"provider": {"id": "m\u043edel"}}, "missing"),
        ({"testCase": None}, "unknown_shape"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused_with_its_place(fields, code):
    problem = refused(changed(0, **fields))[0]
    assert (problem.code, problem.field.startswith("results.results[0]")) == (code, True)


def test_an_export_without_rows_is_refused():
    for value in ({"evalId": "e", "results": []}, {"evalId": "e", "results": {"results": [], "stats": {}}}):
        assert only(refused(json.dumps(value).encode())).code == "unknown_shape"
