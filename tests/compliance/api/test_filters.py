"""Filters find what they name, and a filter that cannot be read refuses instead of listing everything."""

from datetime import UTC, datetime
from typing import Any

import pytest

from compliance.selectors.evidence import find_evidence
from evaluations.kernel.clock import now
from evaluations.models import Evidence, Source, SubjectVersion
from evaluations.selectors.evidence import observations_about
from evaluations.services.subjects import assign_alias, register_subject_version
from tests.compliance.api.world import Api, World, evidence_body


def test_each_filter_of_evidence_keeps_what_it_names_and_drops_the_rest(world: World, api: Api) -> None:
    body = evidence_body("12", subject="Model Two", source="other-board", provenance="run_log")
    body["evidence"][0]["run"]["status"] = "partial"
    body["evidence"][0]["observations"][0] |= {"metric": "task_completion_rate", "version": "2026-08"}
    other = api.send(body).json()
    first, second = str(world.evidence.uid), other["evidence"][0]

    def found(**query: str) -> list[str]:
        return [each["uid"] for each in api.get("evidence", query).json()["results"]]

    assert found() == [second, first]
    for name, ours, theirs in (
        ("name", "Model One", "Model Two"),
        ("source", "board", "other-board"),
        ("metric", "infeasible_refusal_rate", "task_completion_rate"),
        ("provenance", "claim", "run_log"),
        ("run_status", "complete", "partial"),
        ("document", world.evidence.document.digest, other["document"]),
    ):
        assert found(**{name: ours}) == [first], name
        assert found(**{name: theirs}) == [second], name
    assert found(subject="labs/model-one") == [first]
    assert found(subject="model-two") == []
    assert found(benchmark="gym") == [second, first]
    assert found(benchmark="none") == []
    assert found(benchmark="gym", metric="cost_per_task_usd") == []


def test_benchmark_and_metric_must_hold_for_one_observation(world: World, api: Api) -> None:
    from evaluations.kernel.services import service_transaction
    from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version

    with service_transaction("load_bundle"):
        other = apply_register_benchmark(actor=world.actor, key="other-gym", title="Other")
        apply_register_benchmark_version(actor=world.actor, benchmark=other, version="1")
    body = evidence_body("1", "2")
    body["evidence"][0]["observations"][1] |= {"benchmark": "other-gym", "version": "1", "metric": "task_completion_rate"}
    made = api.send(body).json()["evidence"]
    both = api.get("evidence", {"benchmark": "other-gym", "metric": "infeasible_refusal_rate"})
    assert both.json()["results"] == []
    assert [each["uid"] for each in api.get("evidence", {"benchmark": "other-gym"}).json()["results"]] == made


def test_the_subject_filter_reads_names_as_judgements_do(world: World, api: Api) -> None:
    board = Source.objects.get(key="board")
    newer = register_subject_version(actor=world.actor, subject=world.version.subject, pin={"snapshot": "2026-09-01"})
    june = datetime(2026, 6, 1, tzinfo=UTC)
    for name, source, ended in (
        ("Model One", "board", "2026-05-01"),
        ("Model One", "other-board", "2026-07-02"),
        ("M1", "board", "2026-05-01"),
        ("M1", "board", "2026-07-01"),
        ("M1", "other-board", "2026-07-01"),
        ("Gone", "board", "2026-07-01"),
        ("M2", "board", "2026-07-01"),
        ("M3", "board", "2026-07-01"),
        ("M2", "other-board", "2026-07-01"),
    ):
        body = evidence_body("50", subject=name, source=source)
        body["evidence"][0]["run"]["ended_at"] = ended
        assert api.send(body).status_code == 201

    def assign(name: str, version: SubjectVersion | None, **options: Any) -> None:
        assign_alias(actor=world.actor, name_as_written=name, subject_version=version, **options)

    assign("M1", newer, source=board, effective_from=june)
    assign("M1", world.version)
    assign("M1", None)
    assign("Gone", world.version)
    assign("Gone", None)
    other = register_subject_version(actor=world.actor, subject=_other_subject(), pin={"snapshot": "x"})
    assign("Model One", other, source=Source.objects.get(key="other-board"))

    assign("M2", world.version, source=board)
    assign("M2", other, effective_from=june)
    assign("M3", world.version, effective_from=june)
    assign("M3", other)

    for subject, versions in (("labs/model-one", [world.version.pk, newer.pk]), ("model-two", [other.pk])):
        seen = observations_about(versions, metrics=["infeasible_refusal_rate"], benchmarks=["gym"], known_at=now())
        judged = {item.evidence for items in seen.values() for item in items}
        listed = {str(evidence.uid) for evidence in find_evidence(subject=subject)}
        assert judged == listed != set()
        assert len(listed) < Evidence.objects.count()


def _other_subject() -> Any:
    from evaluations.models import Subject

    return Subject.objects.get(key="model-two")


def test_filters_of_the_other_lists(world: World, api: Api) -> None:
    def keys(path: str, field: str, **query: str) -> list[str]:
        return [each[field] for each in api.get(path, query).json()["results"]]

    assert keys("subjects", "key", candidate="true") == ["labs/model-one"]
    assert keys("subjects", "key", candidate="false") == ["model-two"]
    assert keys("subjects", "key", kind="agent") == []
    assert keys("subjects", "key", provider="labs") == ["labs/model-one", "model-two"]
    assert keys("metrics", "key", metric="cost_per_task_usd", current="true") == ["cost_per_task_usd"]
    assert set(keys("metrics", "family", family="harm")) == {"harm"}
    assert keys("documents", "file_name", file_name="first.json") == ["first.json"]
    assert keys("documents", "file_name", media_type="text/csv") == []
    one = {"policy": "refusal-only", "version": "1", "subject": "labs/model-one", "domain": "any", "outcome": "fail"}
    assert len(keys("verdicts", "uid", **one)) == 1
    for name, other in (
        ("policy", "another"),
        ("version", "2"),
        ("subject", "model-two"),
        ("domain", "hr"),
        ("outcome", "pass"),
    ):
        assert keys("verdicts", "uid", **{**one, name: other}) == [], name


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("evidence", "provenence=claim", "provenence"),
        ("evidence", "provenance=hearsay", "provenance"),
        ("evidence", "provenance=", "provenance"),
        ("evidence", "provenance=%20", "provenance"),
        ("evidence", "provenance=claim&provenance=reported", "provenance"),
        ("evidence", "name=%00", "name"),
        ("evidence", "name=" + "x" * 301, "name"),
        ("evidence", "source=A+B", "source"),
        ("evidence", "document=sha256:12", "document"),
        ("evidence", "page_size=0", "page_size"),
        ("evidence", "page_size=201", "page_size"),
        ("evidence", "page_size=1e2", "page_size"),
        ("evidence", "page_size=%D9%A3", "page_size"),
        ("evidence", "cursor=x", "cursor"),
        ("evidence", "cursor=bjk5OTk5OTk5OTk5OTk5OTk5OTk5", "cursor"),
        ("evidence", "limit=5", "limit"),
        ("evidence", "%00=5", "�"),
        ("subjects", "candidate=maybe", "candidate"),
        ("subjects", "candidate=1", "candidate"),
        ("verdicts", "version=99999999999", "version"),
        ("verdicts", "version=-1", "version"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_400_and_named(api: Api, path: str, query: str, field: str) -> None:
    answer = api.client.get(f"/api/v1/{path}?{query}", headers=api.headers)
    assert answer.status_code == 400
    assert answer.json()["code"] == "parameters_refused"
    assert answer.json()["problems"][0]["field"] == field


def test_a_misspelt_parameter_is_told_its_right_name(api: Api) -> None:
    answer = api.get("evidence", {"provenence": "claim"})
    assert answer.json()["problems"][0]["hint"] == "did you mean `provenance`?"
