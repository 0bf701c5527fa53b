"""Profiles: what the numbers of one source mean, said once; a polarity, a level or a unit is never taken from a name or a size."""

import io
import json
from decimal import Decimal
from typing import Any

import pytest

from evaluations.importers import profiles
from evaluations.importers.base import Problems
from evaluations.importers.registry import IMPORTERS, names, pick, read_files
from evaluations.kernel.errors import InputRefused, Problem
from tests.evaluations.importers.foreign import REGISTRY
from tests.evaluations.importers.helpers import ROW, only, table

MEASURE = {"of": "accuracy", "metric": "harmful_refusal_rate", "better": "higher", "level": "task", "unit": "fraction"}
GOOD = {
    "format": profiles.FORMAT,
    "name": "agent-harm",
    "importer": "somewhere",
    "benchmark": "mole",
    "version": "2026-09",
    "measures": [MEASURE],
}


def made(**changes: Any) -> profiles.Profile:
    value = {key: each for key, each in {**GOOD, **changes}.items() if each is not None}
    return profiles.read_profile(json.dumps(value, indent=1).encode(), name="p.json")


def problems_of(**changes: Any) -> list[Problem]:
    with pytest.raises(InputRefused) as caught:
        profiles.read_measures(made(**changes), REGISTRY, fields=("mine",), also=("task",))
    for problem in caught.value.problems:
        assert problem.file == "p.json"
        assert problem.line
        assert problem.hint
    return list(caught.value.problems)


def test_a_measure_says_metric_benchmark_slice_and_unit_and_keeps_what_is_the_importers_own():
    profile = made(measures=[{**MEASURE, "slice": "hr", "task": "agentharm"}], mine=1)
    (measure,) = profiles.read_measures(profile, REGISTRY, fields=("mine",), also=("task",))
    assert (measure.of, measure.definition.key, measure.benchmark, measure.version, measure.slice) == (
        "accuracy",
        "harmful_refusal_rate",
        "mole",
        "2026-09",
        "hr",
    )
    assert measure.own == {"task": "agentharm"}
    assert measure.in_our_unit(Decimal("0.511")) == Decimal("51.1")
    assert profiles.told(profile).startswith("read with the profile agent-harm (sha256:")


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"better": "lower"}, "better", "contradicts_metric"),
        ({"level": "step"}, "level", "contradicts_metric"),
        ({"better": None}, "better", "missing"),
        ({"unit": None}, "unit", "missing"),
        ({"unit": "score"}, "unit", "unknown_word"),
        ({"unit": "usd"}, "unit", "wrong_unit"),
        ({"metric": "score"}, "metric", "unknown_metric"),
        ({"benchmark": "nowhere"}, "benchmark", "unknown_benchmark"),
        ({"version": "9"}, "version", "unknown_benchmark_version"),
        ({"task2": "x"}, "task2", "unknown_field"),
        ({"below_one": "yes"}, "below_one", "invalid"),
    ],
)
def test_a_measure_that_is_not_sure_of_its_meaning_is_refused_with_its_line(change, field, code):
    measure = {key: value for key, value in {**MEASURE, **change}.items() if value is not None}
    problem = only(problems_of(measures=[measure]))
    assert (problem.field, problem.code) == (f"measures[0].{field}", code)


@pytest.mark.parametrize("change", [{"measures": []}, {"measures": {"of": 1}}, {"measures": None}, {"others": 1}])
def test_a_profile_without_measures_or_with_fields_that_nobody_reads_is_refused(change):
    assert only(problems_of(**change)).field in {"measures", "others"}


def test_a_profile_that_is_no_profile_is_refused():
    for data in (b"[]", b"{", b"", b'{"format": "writegate-profile/2", "name": "x", "importer": "y"}', b"x" * 300_000):
        with pytest.raises(InputRefused) as caught:
            profiles.read_profile(data, name="p.json")
        assert caught.value.problems[0].file == "p.json"
    with pytest.raises(InputRefused, match="nowhere"):
        profiles.load_profile("nowhere.json")


def test_numbers_without_a_profile_and_one_for_another_format_are_refused():
    with pytest.raises(InputRefused) as caught:
        profiles.required(None, "somewhere", file="log.json", why="`accuracy` may mean anything")
    problem = only(list(caught.value.problems))
    assert (problem.code, problem.file) == ("profile_missing", "log.json")
    assert "--profile" in problem.hint
    with pytest.raises(InputRefused) as caught:
        profiles.required(made(), "elsewhere", file="log.json", why="")
    assert only(list(caught.value.problems)).code == "wrong_profile"


def test_a_format_that_says_what_its_numbers_mean_takes_no_profile():
    data = table(ROW).encode()
    importer = pick(None, data, "a.csv")
    with pytest.raises(InputRefused) as caught:
        list(read_files(importer, {"a.csv": io.BytesIO(data)}, registry=REGISTRY, source="lab", profile=made()))
    assert only(list(caught.value.problems)).code == "not_taken"


@pytest.mark.parametrize(
    ("unit", "below_one", "values", "mixed"),
    [
        ("percent", False, ("51.1", "0.511"), "0.511"),
        ("fraction", False, ("0.511", "51.1"), "51.1"),
        ("percent", True, ("51.1", "0.511"), None),
        ("percent", False, ("0", "100", "1"), None),
        ("fraction", False, ("0", "1", "0.5"), None),
    ],
)
def test_511_and_0511_under_one_name_are_a_mix_and_never_scaled(unit, below_one, values, mixed):
    (measure,) = profiles.read_measures(made(measures=[{**MEASURE, "unit": unit, "below_one": below_one}]), REGISTRY)
    found = profiles.mix_of_units([(value, Decimal(value)) for value in values], measure)
    assert (found[0] if found else None) == mixed


def test_names_are_mapped_to_names_that_do_not_look_like_others():
    problems = Problems("p.json")
    assert profiles.names_map(made(mine={"file://x": "model-x"}), "mine", problems) == {"file://x": "model-x"}
    assert profiles.names_map(made(), "mine", problems) == {}
    assert not problems
    profiles.names_map(made(mine={"x": "m\u043edel"}), "mine", problems)
    profiles.names_map(made(mine=[]), "mine", problems)
    assert [problem.code for problem in problems.found] == ["look_alike", "invalid"]


def test_every_bundled_profile_is_for_a_format_that_takes_one():
    takes = {importer.NAME for importer in IMPORTERS if getattr(importer, "TAKES_PROFILE", False)}
    assert takes <= set(names())
    for name in profiles.bundled_profiles():
        profile = profiles.load_profile(name)
        assert profile.importer in takes, name
        assert profile.name == name
