"""What became of an import's rows: taken, held for want of a known name, refused with reason and place."""

import io

import pytest

from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.services.evidence import import_files
from evaluations.services.import_results import result_of, result_of_refusal
from evaluations.services.sources import apply_register_source
from evaluations.services.subjects import apply_assign_alias
from tests.support import world

pytestmark = pytest.mark.django_db
HEADER = "subject,source,provenance,metric,benchmark,version,value,unit,run_status,run_ended_at\n"
ROW = "{name},{source},run_log,infeasible_refusal_rate,bench,1,{value},percent,complete,2026-11-{day:02}T00:00:00Z\n"


def imported(*rows: str):
    text = HEADER + "".join(rows)
    return import_files(actor=world.ACTOR, files={"a.csv": io.BytesIO(text.encode())}, max_bytes=world.MEGABYTE)


def row(name: str, value: str = "84", source: str = "lab", *, day: int = 1) -> str:
    return ROW.format(name=name, value=value, source=source, day=day)


def test_rows_are_taken_and_those_about_an_unknown_name_are_held() -> None:
    world.register("m")
    result = result_of(imported(row("m"), row("stranger", "70"), row("stranger", "71", day=2)))
    assert (result.evidence, result.taken, result.held, result.held_count) == (3, 3, {"stranger": 2}, 2)
    assert result.refused == ()
    # The same bytes again: nothing is taken twice, and what is held is still held.
    again = result_of(imported(row("m"), row("stranger", "70"), row("stranger", "71", day=2)))
    assert (again.taken, again.repeated, again.held_count) == (0, 3, 2)


def test_a_name_that_means_somebody_in_another_source_is_held_here() -> None:
    (version,) = world.register("m")
    with service_transaction("test"):
        other = apply_register_source(actor=world.ACTOR, key="other", title="Other")
        apply_assign_alias(actor=world.ACTOR, name_as_written="M Max", subject_version=version, source=other)
    result = result_of(imported(row("M Max"), row("M Max", "70", "other")))
    assert (result.taken, result.held) == (2, {"M Max": 1})


def test_a_refusal_takes_nothing_and_says_where() -> None:
    world.register("m")
    with pytest.raises(InputRefused) as refused:
        imported(row("m"), row("m", "a lot"))
    result = result_of_refusal(refused.value)
    assert (result.taken, result.held_count) == (0, 0)
    assert {(problem.file, problem.row) for problem in result.refused} == {("a.csv", 3)}
    assert result.refused[0].field == "value"
