"""Which observations speak about whom: names, sources, dates, rulings and trust, as known at an instant."""

import json
from datetime import UTC, datetime

import pytest

from compliance.vocabulary import RequestKind
from evaluations.importers import writegate_json
from evaluations.kernel.canonical import digest
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Source, SubjectVersion
from evaluations.selectors.evidence import SeenObservation, is_self_judged, observations_about
from evaluations.services.agents import register_agent
from evaluations.services.evidence import apply_rule_on_evidence, dispute_evidence
from evaluations.services.sources import apply_register_source
from evaluations.services.subjects import assign_alias
from tests.support import world
from tests.support.quorum import signed_request
from tests.support.trust import move_trust

pytestmark = pytest.mark.django_db


def seen(version: SubjectVersion, known_at: datetime | None = None) -> list[SeenObservation]:
    found = observations_about(
        [version.pk], metrics=["infeasible_refusal_rate"], benchmarks=["bench"], known_at=known_at or now()
    )
    return found.get(version.pk, [])


def rule(evidence: Evidence, kind: str) -> None:
    carried_by = None if kind == "disputed" else signed_request(RequestKind.RULING, evidence=evidence)
    with service_transaction("test"):
        apply_rule_on_evidence(
            actor=world.ACTOR, evidence=evidence, kind=kind, reason=f"{kind} for a test", sign_off_request=carried_by
        )


def test_a_name_nobody_assigned_counts_for_nobody() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("M, as the source spells it"))
    assert seen(version) == []


def test_a_name_counts_from_its_assignment_on_and_not_before() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("M (high)"))
    before = now()
    assign_alias(actor=world.ACTOR, name_as_written="M (high)", subject_version=version)
    assert [item.subject_as_written for item in seen(version)] == ["M (high)"]
    assert seen(version, before) == []


def test_a_moved_name_takes_its_later_evidence_along_and_leaves_the_earlier() -> None:
    old, new = world.register("old", "new")
    moved_at = datetime(2026, 10, 1, tzinfo=UTC)
    assign_alias(actor=world.ACTOR, name_as_written="floating", subject_version=old)
    assign_alias(actor=world.ACTOR, name_as_written="floating", subject_version=new, effective_from=moved_at)
    for value, ended in (("70", "2026-09-01T00:00:00Z"), ("90", "2026-11-01T00:00:00Z")):
        world.submit(world.submission("floating", world.observation(value), run={"status": "complete", "ended_at": ended}))
    assert [str(item.value) for item in seen(old)] == ["70"]
    assert [str(item.value) for item in seen(new)] == ["90"]


def test_a_source_may_mean_another_by_the_same_name() -> None:
    mine, theirs = world.register("mine", "theirs")
    assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=mine)
    assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=theirs, source=Source.objects.get(key="lab"))
    world.submit(world.submission("x"))
    assert seen(mine) == []
    assert len(seen(theirs)) == 1


def test_a_withdrawn_name_means_nobody() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    assign_alias(actor=world.ACTOR, name_as_written="m", subject_version=None, reason="it was another model")
    assert seen(version) == []


@pytest.mark.parametrize(
    ("answered", "problem"), [(["m"], ""), (["other"], "identity_contested"), (["nobody knows"], "identity_contested")]
)
def test_the_model_that_answered_must_be_the_model_asked(answered: list[str], problem: str) -> None:
    version, _ = world.register("m", "other")
    world.submit(world.submission("m", answered_by=answered))
    assert [item.identity_problem for item in seen(version)] == [problem]


@pytest.mark.parametrize(
    ("about", "harness", "problem"),
    [
        ("agent", {"name": "react", "version": "2"}, ""),
        ("agent", {"name": "react", "version": "2.1"}, "identity_contested"),
        ("agent", {"name": "react"}, "identity_contested"),
        ("agent", {"name": "planner", "version": "2"}, "identity_contested"),
        ("agent", None, ""),
        # Under what a model was tested is no part of what it is.
        ("model", {"name": "planner", "version": "2"}, ""),
    ],
)
def test_what_an_agent_did_under_another_harness_is_not_about_it(about: str, harness: object, problem: str) -> None:
    world.register("m")
    pinned = {"prompt_digest": digest("prompt"), "tool_manifest_digest": digest("tools"), "models": ["m"]}
    made = register_agent(actor=world.ACTOR, key="hr-agent", harness={"name": "react", "version": "2"}, **pinned)
    assign_alias(actor=world.ACTOR, name_as_written="the agent", subject_version=made.version)
    world.submit(world.submission("the agent", about=about, harness=harness))
    assert [item.identity_problem for item in seen(made.version)] == [problem]


def test_the_trust_known_then_counts_then() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    before = now()
    move_trust("lab", "archive")
    assert seen(version)[0].trust == "archive"
    assert seen(version, before)[0].trust == "independent"


def test_a_source_nobody_judged_has_no_trust() -> None:
    (version,) = world.register("m")
    with service_transaction("test"):
        apply_register_source(actor=world.ACTOR, key="stranger", title="Stranger")
    world.submit({**world.submission("m"), "source": "stranger"})
    assert seen(version)[0].trust == ""


def test_the_newest_ruling_counts_but_a_retraction_is_for_good() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    evidence = Evidence.objects.get()
    before = now()
    for kind in ("disputed", "dispute_dismissed", "retracted", "dispute_dismissed"):
        rule(evidence, kind)
    assert seen(version)[0].ruling == "retracted"
    assert seen(version, before)[0].ruling == ""


def test_disputing_in_the_same_words_twice_is_one_ruling() -> None:
    world.register("m")
    world.submit(world.submission("m"))
    evidence = Evidence.objects.get()
    first = dispute_evidence(actor=world.ACTOR, evidence=evidence, reason="wrong model")
    assert dispute_evidence(actor=world.ACTOR, evidence=evidence, reason="wrong model").pk == first.pk
    assert evidence.rulings.count() == 1


def test_the_same_file_again_does_not_revive_what_was_retracted() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    rule(Evidence.objects.get(), "retracted")
    again = world.submit(world.submission("m"))
    assert (again.evidence, again.repeated) == (0, 1)
    assert [item.ruling for item in seen(version)] == ["retracted"]


CSV_ROW = (
    "subject,source,provenance,run_status,run_ended_at,metric,benchmark,version,unit,value\n"
    "m,lab,run_log,complete,2026-11-01T00:00:00Z,infeasible_refusal_rate,bench,1,percent,84\n"
)


def same_bytes() -> None:
    world.submit(world.submission("m"))


def another_document() -> None:
    world.submit(json.dumps(world.submission("m"), indent=2).encode(), "again.json")


def another_format() -> None:
    world.submit(CSV_ROW.encode(), "again.csv")


def a_newer_revision() -> None:
    """The same run, said to take the place of what was ruled on."""
    first = Evidence.objects.order_by("id")[0]
    world.submit(world.submission("m", supersedes=str(first.uid), note="second revision"), "revised.json")


def another_spelling() -> None:
    (version,) = SubjectVersion.objects.all()
    assign_alias(actor=world.ACTOR, name_as_written="M (max)", subject_version=version)
    world.submit(world.submission("M (max)"), "spelled.json")


ROADS = (same_bytes, another_document, another_format, a_newer_revision, another_spelling)


@pytest.mark.parametrize("kind", ["disputed", "dispute_upheld", "retracted"])
@pytest.mark.parametrize("road", ROADS)
def test_handing_in_a_run_again_revives_nothing_that_was_ruled_on(road, kind: str) -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    rule(Evidence.objects.get(), kind)
    before = now()
    road()
    assert {item.ruling for item in seen(version)} == {kind}
    assert [item.ruling for item in seen(version, before)] == [kind]


def test_an_importer_of_a_higher_version_reads_what_was_ruled_on_as_ruled_on(monkeypatch) -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    rule(Evidence.objects.get(), "retracted")
    monkeypatch.setattr(writegate_json, "VERSION", writegate_json.VERSION + 1)
    world.submit(world.submission("m"))
    assert [item.ruling for item in seen(version)] == ["retracted", "retracted"]


@pytest.mark.parametrize(
    "changed",
    [
        {"value": "83"},
        {"value": None, "k": 84, "n": 100},
        {"slice": "hr"},
        {"version": "2"},
    ],
)
def test_other_numbers_are_a_correction_and_stand_by_themselves(changed: dict[str, object]) -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    rule(Evidence.objects.get(), "retracted")
    world.submit(world.submission("m", world.observation(**changed)))
    assert [item.ruling for item in seen(version)] == ["retracted", ""]


def test_another_run_or_another_source_is_not_the_run_that_was_ruled_on() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    rule(Evidence.objects.get(), "retracted")
    with service_transaction("test"):
        apply_register_source(actor=world.ACTOR, key="other", title="Other")
    world.submit({**world.submission("m"), "source": "other"})
    world.submit(world.submission("m", run={"status": "complete", "ended_at": "2026-11-02T00:00:00Z"}))
    assert [item.ruling for item in seen(version)] == ["retracted", "", ""]


def test_a_dispute_that_was_dismissed_is_carried_no_further() -> None:
    (version,) = world.register("m")
    world.submit(world.submission("m"))
    evidence = Evidence.objects.get()
    rule(evidence, "disputed")
    another_document()
    assert [item.ruling for item in seen(version)] == ["disputed", "disputed"]
    rule(evidence, "dispute_dismissed")
    assert [item.ruling for item in seen(version)] == ["dispute_dismissed", ""]


@pytest.mark.parametrize(
    ("judge", "marked"),
    [
        (None, False),
        ({"rule": "tests"}, False),
        ({"models": ["another"]}, False),
        ({"models": ["another"], "is_subject": True}, True),
        ({"models": ["another", "m-2026"], "is_subject": False}, True),
        ({"models": ["m"]}, True),
    ],
)
def test_a_subject_that_judged_itself_is_marked(judge, marked: bool) -> None:
    assert is_self_judged(judge, {"m", "m-2026"}) is marked
