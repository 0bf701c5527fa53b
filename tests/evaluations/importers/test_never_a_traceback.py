"""Whatever the bytes are, an importer yields pairs or raises `InputRefused`; no other exception leaves it."""

import io
import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.importers import enterpriseops_gym, odcv_bench, registry, writegate_csv, writegate_json
from evaluations.kernel.errors import InputRefused
from tests.evaluations.importers.eog import as_bytes, failed, path, result, run, runner_file
from tests.evaluations.importers.helpers import REGISTRY, ROW, document, evidence, observation, table
from tests.evaluations.importers.test_odcv_bench import judges, zipped

JUDGED = observation(k=8, n=10, judge={"models": ["j"], "agreement": "97.4"})
SAMPLES: dict[str, tuple[bytes, Any]] = {
    "a.json": (json.dumps(document(evidence(JUDGED)), indent=1).encode(), writegate_json),
    "a.jsonl": (json.dumps({**document(), **evidence()}).encode(), writegate_json),
    "a.csv": (table(ROW, {**ROW, "slice": "hr"}).encode(), writegate_csv),
    path("a"): (as_bytes(result(run(1, (True, False)), failed(2))), enterpriseops_gym),
    "teams.json": (as_bytes(runner_file()), enterpriseops_gym),
    "scores_grok.csv": (judges()["scores_grok.csv"], odcv_bench),
    "judges.zip": (zipped(judges()), odcv_bench),
}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("80"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def read(importer: Any, name: str, data: bytes) -> None:
    with suppress(InputRefused):
        registry.pick(None, data[:65536], name)
    with suppress(InputRefused):
        registry.describe(importer, io.BytesIO(data), name=name)
    with suppress(InputRefused):
        options = {"subject": "X"} if name == "teams.json" else {}
        list(registry.read_files(importer, {name: io.BytesIO(data)}, registry=REGISTRY, source="lab", **options))


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_bytes_that_were_changed_cut_or_doubled(name, data):
    content, importer = SAMPLES[name]
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, min(len(content), start + 40)))
    put = data.draw(
        st.binary(max_size=4) | st.sampled_from([b'"', b",", b"{", b"}", b"\n", b"\r", b"\xff", content[start:stop] * 2])
    )
    read(importer, name, content[:start] + put + content[stop:])
    read(importer, name, content[:start])


@settings(deadline=None, max_examples=200)
@given(st.sampled_from([name for name in sorted(SAMPLES) if name.endswith(".json")]), st.data())
def test_json_with_junk_in_the_place_of_any_value(name, data):
    content, importer = SAMPLES[name]
    value = json.loads(content)
    at: Any = value
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 3)) == 0:
            break
        at = inner
    at[key] = data.draw(JUNK)
    read(importer, name, json.dumps(value).encode())


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(ROW)), st.text(max_size=12))
def test_a_csv_cell_with_any_text(column, text):
    read(writegate_csv, "a.csv", table({**ROW, column: text}).encode("utf-8", "surrogatepass"))
