"""The loading dock: however much is sent at once, the same rows, in the order of the document."""

import io
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from evaluations.kernel.errors import InputRefused
from evaluations.models import Evidence, Observation
from evaluations.services import loading
from evaluations.services.evidence import import_files
from evaluations.services.loading import EvidenceLoader
from tests.support import world
from tests.support.undoing import undone

pytestmark = pytest.mark.django_db
HEADER = "subject,source,provenance,metric,benchmark,version,slice,value,unit,run_status,run_ended_at,answered_by,note\n"
SLICES = ("overall", "hr", "email")


@pytest.fixture(autouse=True)
def registered() -> None:
    world.register("m")


def table(subjects: int) -> bytes:
    """Rows that go from subject to subject and back: three slices of each, none beside another of its own."""
    rows = [
        f"m-{subject},lab,run_log,infeasible_refusal_rate,bench,1,{slice_},{50 + subject},percent,complete,"
        f'2026-11-0{1 + subject % 9}T00:00:00Z,"{"m-x | m-y" if subject % 2 else ""}","say ""{subject}"" \\ and \u00e9"\n'
        for slice_ in SLICES
        for subject in range(subjects)
    ]
    return (HEADER + "".join(rows)).encode()


def loaded(content: bytes) -> list[dict[str, Any]]:
    import_files(actor=world.ACTOR, files={"some.csv": io.BytesIO(content)}, max_bytes=2**20)
    rows = Observation.objects.order_by("evidence_id", "ordinal").values(
        "evidence__uid", "evidence__subject_as_written", "evidence__answered_as_written", "evidence__note",
        "evidence__run_ended_at", "evidence__published_at", "ordinal", "slice", "value", "locator",
    )  # fmt: skip
    return list(rows)


def test_however_much_is_sent_at_once_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    content = table(7)
    with undone():
        expected = loaded(content)
    assert [row["evidence__subject_as_written"] for row in expected] == [f"m-{subject}" for subject in range(7) for _ in SLICES]
    assert expected[3]["evidence__note"] == 'say "1" \\ and é'
    assert expected[3]["evidence__answered_as_written"] == ["m-x", "m-y"]
    assert [row["ordinal"] for row in expected] == [1, 2, 3] * 7
    for batch, evidence_batch in ((1, 1), (4, 100), (100, 2), (5, 3)):
        monkeypatch.setattr(loading, "BATCH", batch)
        monkeypatch.setattr(loading, "EVIDENCE_BATCH", evidence_batch)
        with undone():
            assert loaded(content) == expected


def test_many_pieces_of_evidence_take_as_many_statements_as_few() -> None:
    def statements(subjects: int) -> int:
        with (
            undone(),
            CaptureQueriesContext(
                connection,
            ) as queries,
        ):
            loaded(table(subjects))
            assert Evidence.objects.count() == subjects
        return len(queries)

    assert statements(20) == statements(2)


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_what_is_refused_while_the_database_takes_the_rows_before_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(loading, "BATCH", batch)
    with pytest.raises(InputRefused) as refused:
        loaded(table(7) + b"m-8,lab,run_log,nothing,bench,1,overall,50,percent,complete,2026-11-01T00:00:00Z,,\n")
    assert [problem.code for problem in refused.value.problems] == ["unknown_metric"]
    assert not Evidence.objects.exists()
    assert len(loaded(table(2))) == 6, "the connection is free again"


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_rows_that_the_database_refuses_are_told_as_its_refusal_and_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(loading, "BATCH", batch)
    row = EvidenceLoader._row
    monkeypatch.setattr(
        EvidenceLoader, "_row", lambda self, slot, seen: (*row(self, slot, seen)[:5], None, *row(self, slot, seen)[6:])
    )
    with pytest.raises(IntegrityError):
        loaded(table(7))
    monkeypatch.undo()
    assert not Evidence.objects.exists()
    assert len(loaded(table(2))) == 6, "the connection is free again"
