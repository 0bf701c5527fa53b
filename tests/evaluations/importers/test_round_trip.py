"""What is written in one form of our format reads back the same, in every form."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.importers import writegate_csv, writegate_json
from tests.evaluations.importers.helpers import REGISTRY, pairs_of

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30).filter(str.isprintable)
# Names are plain ASCII: what looks like another name is refused.
PLAIN = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=30)
NAME = PLAIN.filter(lambda text: "|" not in text)
PERCENT = st.integers(0, 100_000_000).map(lambda millionths: Decimal(millionths).scaleb(-6))
OFFSETS = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
INSTANT = st.tuples(st.integers(0, 10**15), OFFSETS).map(
    lambda drawn: (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=drawn[0])).astimezone(drawn[1])
)


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"value": str(draw(PERCENT))}
    n = draw(st.integers(1, 5000))
    k = draw(st.integers(0, n))
    errored = draw(st.integers(0, n - k))
    return {"k": k, "n": n, "errored": errored, "unscored": 0}


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "subject": draw(PLAIN),
        "provenance": draw(st.sampled_from(["claim", "reported", "run_log", "recounted"])),
        "run_status": draw(st.sampled_from(["complete", "partial", "unknown"])),
        "run_ended_at": draw(INSTANT).isoformat(),
        "answered_by": draw(st.lists(NAME, max_size=3)),
        "harness": draw(PLAIN),
        "note": draw(TEXT),
        "metric": draw(st.sampled_from(["infeasible_refusal_rate", "harmful_completion_rate"])),
        "slice": draw(st.sampled_from(["overall", "hr", "email"])),
        "unit": "percent",
        "benchmark": "bench",
        "version": draw(st.sampled_from(["1", "2"])),
        **draw(numbers()),
    }


def as_document(items: list[dict[str, Any]]) -> dict[str, Any]:
    seen = ("metric", "slice", "unit", "benchmark", "version", "value", "k", "n", "errored", "unscored")
    return {
        "format": "writegate-evidence/1",
        "source": "lab",
        "provenance": "claim",
        "evidence": [
            {
                "subject": item["subject"],
                "provenance": item["provenance"],
                "run": {"status": item["run_status"], "ended_at": item["run_ended_at"]},
                "answered_by": item["answered_by"],
                "harness": {"name": item["harness"]},
                "note": item["note"],
                "observations": [{key: item[key] for key in seen if key in item}],
            }
            for item in items
        ],
    }


def as_lines(items: list[dict[str, Any]]) -> str:
    whole = as_document(items)
    header = {key: value for key, value in whole.items() if key != "evidence"}
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in (header, *whole["evidence"]))


def as_table(items: list[dict[str, Any]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [name for name in writegate_csv.COLUMNS if not name.startswith("judge")], restval="")
    writer.writeheader()
    for item in items:
        writer.writerow({**item, "source": "lab", "answered_by": "|".join(item["answered_by"])})
    return out.getvalue()


def without_places(pairs):
    return [(draft._replace(locator=""), seen._replace(locator="")) for draft, seen in pairs]


def run_of(item: dict[str, Any]) -> tuple[object, ...]:
    ended = datetime.fromisoformat(item["run_ended_at"]).astimezone(UTC)
    return item["subject"], item["harness"], ended, item["metric"], item["version"], item["slice"]


@settings(deadline=None, max_examples=60)
@given(st.lists(entries(), min_size=1, max_size=6, unique_by=run_of))
def test_the_three_forms_read_the_same(items):
    from_json = pairs_of(writegate_json, json.dumps(as_document(items)))
    from_lines = pairs_of(writegate_json, as_lines(items), name="a.jsonl")
    from_csv = pairs_of(writegate_csv, as_table(items), name="a.csv")
    assert without_places(from_json) == without_places(from_lines) == without_places(from_csv)
    for item, (draft, seen) in zip(items, from_json, strict=True):
        assert draft.subject_as_written == item["subject"]
        assert draft.run_ended_at == datetime.fromisoformat(item["run_ended_at"])
        assert draft.answered_as_written == tuple(item["answered_by"])
        if "value" in item:
            assert seen.value == Decimal(item["value"])
            assert seen.value_as_written == item["value"]
        else:
            assert (seen.k, seen.n, seen.errored) == (item["k"], item["n"], item["errored"])
            missing = item["errored"] if REGISTRY.metrics[item["metric"]].better == "lower" else 0
            assert abs(seen.value - Decimal(100 * (item["k"] + missing)) / item["n"]) <= Decimal("0.000001")
