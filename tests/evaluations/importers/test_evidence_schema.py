"""The published JSON Schema and the reader agree on examples, both ways."""

import json

import jsonschema
import pytest

from evaluations.importers import writegate_json
from evaluations.importers.bundles import DATA, read_bundle
from tests.evaluations.importers.helpers import document, evidence, observation, pairs_of, problems_of

SCHEMA = json.loads((DATA / "evidence.schema.json").read_text())
CHECK = jsonschema.Draft202012Validator(SCHEMA)

GOOD = [
    document(),
    document(source=...),
    document(
        document={"title": "T", "url": "https://example.org", "publisher": "P", "licence": "L", "published_at": "2026-01-01"}
    ),
    document(evidence(observation(value=80))),
    document(evidence(observation(value="79.999999"))),
    document(evidence(observation(value=..., k=8, n=10))),
    document(evidence(observation(value=..., k="8.5", n="10", repeats=2, errored=1, unscored=0))),
    document(evidence(observation(slice="hr", as_written="80.0%"))),
    document(
        evidence(
            observation(
                judge={"models": ["j"], "rule": "r", "is_subject": True, "agreement": "97.4", "agreement_n": 5, "kappa": 0.4}
            )
        )
    ),
    document(evidence(answered_by=["a", "b"], about="agent", harness={"name": "H", "version": "1"}, note="n", supersedes="a-1")),
    document(evidence(run={"status": "partial"}, published_at="2026-11-01T00:00:00+01:00")),
]

BAD = [
    [],
    {},
    document(format="writegate-evidence/2"),
    document(provenance="gossip"),
    document(surprise=1),
    {**document(), "evidence": []},
    document(document={"url": "ftp://x"}),
    document(document={"author": "x"}),
    document(evidence(subject="")),
    document(evidence(subject=5)),
    document(evidence(subject=...)),
    {**document(), "evidence": [{**evidence(), "observations": []}]},
    document(evidence(run={"status": "done"})),
    document(evidence(run={"ended_at": "yesterday"})),
    document(evidence(run={"ended_at": "2026-11-01T00:00:00"})),
    document(evidence(harness={"version": "1"})),
    document(evidence(about="robot")),
    document(evidence(answered_by="a")),
    document(evidence(observation(value="80%"))),
    document(evidence(observation(value="8e1"))),
    document(evidence(observation(value="79.9999999"))),
    document(evidence(observation(value=True))),
    document(evidence(observation(value=[80]))),
    document(evidence(observation(value={"v": 80}))),
    document(evidence(observation(value=...))),
    document(evidence(observation(value=..., k=8))),
    document(evidence(observation(errored=1))),
    document(evidence(observation(n=0))),
    document(evidence(observation(n=1.5))),
    document(evidence(observation(unit="fraction"))),
    document(evidence(observation(unit=...))),
    document(evidence(observation(metric=...))),
    document(evidence(observation(slice="HR"))),
    document(evidence(observation(judge={"mood": "good"}))),
    document(evidence(observation(surprise=1))),
]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("example", GOOD, ids=range(len(GOOD)))
def test_what_the_schema_takes_the_reader_takes(example):
    CHECK.validate(example)
    assert pairs_of(writegate_json, example, source=None if "source" in example else "lab")


@pytest.mark.parametrize("example", BAD, ids=range(len(BAD)))
def test_what_the_schema_refuses_the_reader_refuses(example):
    assert not CHECK.is_valid(example)
    assert problems_of(writegate_json, example)


def test_every_field_of_the_reader_is_in_the_schema_and_none_besides():
    parts = SCHEMA["$defs"]
    assert set(SCHEMA["properties"]) == {*writegate_json.HEADER_FIELDS, "evidence"}
    assert set(parts["document"]["properties"]) == set(writegate_json.DOCUMENT_FIELDS)
    assert set(parts["evidence"]["properties"]) == set(writegate_json.EVIDENCE_FIELDS)
    assert set(parts["observation"]["properties"]) == set(writegate_json.OBSERVATION_FIELDS)
    assert set(parts["judge"]["properties"]) == set(writegate_json.JUDGE_FIELDS)


def test_the_bundled_evidence_follows_the_schema():
    files = [path for bundle in DATA.glob("*/bundle.json") for path in read_bundle(bundle.parent).evidence]
    assert len(files) == 3
    for path in files:
        CHECK.validate(json.loads(path.read_text()))
