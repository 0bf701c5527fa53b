import io

import pytest

from evaluations.importers import base, decoding, writegate_csv
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.helpers import REGISTRY, ROW, only, pairs_of, problems_of, table

NAME = "given.csv"


def read(content: object, **options):
    return pairs_of(writegate_csv, content, name=NAME, **options)


def refused(content: object, **options):
    return problems_of(writegate_csv, content, name=NAME, **options)


def test_every_column_arrives_in_its_draft():
    row = {
        **ROW,
        "published_at": "2026-11-03",
        "answered_by": "model-a-1001 | model-b",
        "about": "agent",
        "harness": "Harness 1.2",
        "note": "two\nlines",
        "supersedes": "abc-1",
        "slice": "hr",
        "value": "80",
        "k": "8",
        "n": "10",
        "repeats": "1",
        "errored": "1",
        "unscored": "0",
        "as_written": "80%",
        "judge_models": "judge-1|judge-2",
        "judge_rule": "majority",
        "judge_is_subject": "false",
        "judge_agreement": "97.40",
        "judge_agreement_n": "500",
        "judge_kappa": "0.410",
    }
    assert set(row) == set(writegate_csv.COLUMNS)
    ((draft, found),) = read(table(row))
    assert (draft.answered_as_written, draft.about, draft.harness) == (("model-a-1001", "model-b"), "agent", "Harness 1.2")
    assert (draft.note, draft.supersedes, draft.locator) == ("two\nlines", "abc-1", "")
    assert (found.slice, found.value, found.value_as_written, found.k, found.n) == ("hr", 80, "80%", 8, 10)
    assert (found.repeats, found.errored, found.unscored) == (1, 1, 0)
    assert found.judge == {
        "models": ["judge-1", "judge-2"],
        "rule": "majority",
        "is_subject": False,
        "agreement": "97.4",
        "agreement_n": 500,
        "kappa": "0.41",
    }
    assert found.locator == "row 2"


def test_columns_may_stand_in_any_order_and_blank_lines_are_skipped():
    columns = list(reversed(ROW))
    text = (
        table(ROW, columns=columns) + "\r\n" + ",".join(ROW[name] if name != "subject" else "B" for name in columns) + "\r\n\r\n"
    )
    assert [(draft.subject_as_written, found.locator) for draft, found in read(text)] == [("Model A", "row 2"), ("B", "row 4")]


def test_rows_of_one_evidence_come_with_the_same_draft_even_when_apart():
    rows = [{**ROW, "subject": subject, "slice": name} for name in ("hr", "email") for subject in ("A", "B")]
    found = read(table(*rows))
    assert found[0][0] is found[2][0]
    assert found[1][0] is found[3][0]


def test_a_draft_is_the_same_whether_it_was_cached_or_not(monkeypatch):
    rows = [
        {
            **ROW,
            "subject": f"S{index % 7}",
            "run_ended_at": f"2026-11-0{1 + index % 5}",
            "slice": f"s{index}",
            "value": str(index),
        }
        for index in range(60)
    ]
    cached = read(table(*rows))
    monkeypatch.setattr(writegate_csv, "_CACHED", 1)
    assert read(table(*rows)) == cached


def test_the_source_column_may_be_left_out_when_the_command_names_it():
    row = {key: value for key, value in ROW.items() if key != "source"}
    assert read(table(row), source="press")[0][0].source == "press"
    assert only(refused(table(row))).field == "source"
    assert "the command says" in only(refused(table(ROW), source="press")).message


HEADER = ",".join(ROW)
LINE = ",".join(ROW.values())


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "empty"),
        ("\n", "header_missing"),
        (HEADER, "empty"),
        (HEADER + "\n", "empty"),
        (LINE + "\n", "header_missing"),
        (HEADER + ",surprise\n" + LINE + ",1\n", "column_unknown"),
        (HEADER + ",value\n" + LINE + ",80\n", "column_repeated"),
        (HEADER.replace("metric,", "") + "\n", "column_missing"),
        (HEADER.replace(",value", ",k") + "\n", "column_missing"),
        (HEADER.replace(",", ";") + "\n" + LINE.replace(",", ";"), "separator"),
        (HEADER.replace(",", "\t") + "\n" + LINE.replace(",", "\t"), "separator"),
        (HEADER + "\n" + LINE[:-4] + "53,9\n", "cells"),
        (HEADER + "\n" + LINE[:-5] + "\n", "cells"),
        (HEADER + '\n"' + LINE, "malformed"),
        (HEADER + '\n"Model"A,' + LINE.split(",", 1)[1], "malformed"),
        (b"\xef\xbb\xbf" + HEADER.encode() + b"\n" + LINE.encode(), "byte_order_mark"),
        ((HEADER + "\n" + LINE).encode("utf-16"), "encoding"),
        ((HEADER + "\n" + LINE.replace("Model A", "Modèle")).encode("latin-1"), "encoding"),
        ((HEADER + "\n" + LINE.replace("Model A", "A\x00")).encode(), "encoding"),
        (HEADER + "\n" + LINE + "\n" + LINE + "\n", "duplicate"),
        (HEADER + "\n" + "," * (len(ROW) - 1) + "\n", "missing"),
        (HEADER + "\n" + LINE.replace("complete", "done") + "\n", "unknown_word"),
        (HEADER + "\n" + LINE.replace("Model A", "x" * 201) + "\n", "invalid"),
        (HEADER + "\n" + LINE.replace("Model A", "x" * 200_000) + "\n", "malformed"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "encoding"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_message_and_never_a_traceback(content, code):
    assert code in {problem.code for problem in refused(content)}


def test_a_duplicate_names_both_rows_whatever_the_values():
    rows = [{**ROW, "slice": f"s{index}"} for index in range(20)] + [{**ROW, "slice": "s3", "value": "1"}]
    problem = only(refused(table(*rows)))
    assert (problem.row, problem.code) == (22, "duplicate")
    assert "row 5" in problem.message


def test_another_run_of_the_same_subject_is_no_duplicate():
    assert len(read(table(ROW, {**ROW, "run_ended_at": "2026-11-02"}, {**ROW, "harness": "Other"}))) == 3


def test_an_instant_written_with_another_offset_is_the_same_run():
    assert only(refused(table(ROW, {**ROW, "run_ended_at": "2026-11-01T02:00:00+02:00"}))).code == "duplicate"


def test_all_problems_are_told_at_once_with_row_and_column():
    rows = [
        {**ROW, "value": "80%"},
        {**ROW, "slice": "hr", "metric": "x", "provenance": "gossip"},
        {**ROW, "slice": "email", "run_ended_at": "yesterday"},
        {**ROW, "subject": "B", "source": "nobody"},
    ]
    found = [(problem.row, problem.field) for problem in refused(table(*rows))]
    assert found == [(2, "value"), (3, "provenance"), (3, "metric"), (4, "run_ended_at"), (5, "source")]


def test_what_was_found_before_a_broken_byte_is_told_with_it():
    # The broken byte lies behind the first chunk, or nothing before it would have been looked at.
    many = [{**ROW, "slice": f"s{index}", "value": "80%" if index == 0 else "80"} for index in range(4000)]
    text = table(*many).encode() + LINE.replace("Model A", "Modèle").encode("latin-1")
    assert len(text) > decoding.CHUNK_BYTES
    first, second = refused(text)
    assert (first.row, first.field) == (2, "value")
    assert second.code == "encoding"
    assert second.line == 4002


def test_nothing_is_yielded_after_the_first_problem():
    rows = [{**ROW, "slice": "a"}, {**ROW, "slice": "b", "value": "x"}, {**ROW, "slice": "c"}]
    stream = io.BytesIO(table(*rows).encode())
    seen = []
    with pytest.raises(InputRefused):
        seen.extend(writegate_csv.read(stream, name=NAME, registry=REGISTRY, source=None))
    assert len(seen) <= 1


def test_a_line_without_end_is_refused_before_it_fills_the_memory():
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size=-1):
            self.given += size
            assert self.given < 16 * base.MAX_LINE_BYTES
            return b"x" * size

    with pytest.raises(InputRefused) as caught:
        list(writegate_csv.read(Endless(), name=NAME, registry=REGISTRY, source=None))
    assert caught.value.problems[0].code == "line_too_long"
