"""Samples of the lm-evaluation-harness: one row a document and filter, counted by metric and filter."""

import json
from decimal import Decimal
from typing import BinaryIO, NamedTuple

from evaluations.importers.base import refuse
from evaluations.importers.decoding import text_lines
from evaluations.importers.fields import NumberText, shown
from evaluations.importers.numbers import exact_text

_MAX_ROW = 32 * 1024 * 1024
_OLD_METRICS = ["acc", "acc_norm", "exact_match"]
_DECODER = json.JSONDecoder(parse_float=NumberText, parse_int=NumberText, parse_constant=NumberText)


class Rows(NamedTuple):
    """What one samples file holds of each (metric, filter): documents, the sum of scores, whether all are 0 or 1, and unscored."""

    name: str
    documents: dict[str, int]
    sums: dict[tuple[str, str], Decimal]
    whole: dict[tuple[str, str], bool]
    unscored: dict[tuple[str, str], int]


def read_rows(stream: BinaryIO, name: str) -> Rows:
    """Count one samples file. Raises `InputRefused` naming the line."""
    rows = Rows(name, {}, {}, {}, {})
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(text_lines(stream, name=name, max_line=_MAX_ROW), 1):
        if not line.strip():
            continue
        try:
            row = _DECODER.decode(line)
            key = str(row["doc_id"]), str(row.get("filter", "none"))
            metrics = row.get("metrics")
            names = metrics if isinstance(metrics, list) else _OLD_METRICS
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise refuse(
                "this is no sample with `doc_id`", file=name, line=number, code="malformed", hint="fetch it again"
            ) from None
        if key in seen:
            raise refuse(
                f"document {shown(key[0])} stands twice under the filter {shown(key[1])}",
                file=name,
                line=number,
                code="duplicate",
                hint="give the samples of one run",
            )
        seen.add(key)
        rows.documents[key[1]] = rows.documents.get(key[1], 0) + 1
        for metric in names:
            if not isinstance(metric, str) or metric not in row:
                continue
            held = metric, key[1]
            value = row[metric]
            worth = (
                exact_text(str(value)) if isinstance(value, NumberText) else Decimal(value) if isinstance(value, bool) else None
            )
            if worth is None:
                rows.unscored[held] = rows.unscored.get(held, 0) + 1
                worth = Decimal(0)
            rows.sums[held] = rows.sums.get(held, Decimal(0)) + worth
            rows.whole[held] = rows.whole.get(held, True) and worth in (0, 1)
    return rows
