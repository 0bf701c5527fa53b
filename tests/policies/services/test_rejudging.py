"""Re-judging: judging only what a fact can have changed leaves the very same standings as judging everything."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.vocabulary import RequestKind
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Metric, Observation, Source, Subject, SubjectVersion
from evaluations.services.benchmarks import (
    METRIC_FIELDS,
    apply_register_benchmark,
    apply_register_benchmark_version,
    apply_register_metric,
)
from evaluations.services.evidence import apply_rule_on_evidence, dispute_evidence
from evaluations.services.sources import apply_register_source
from evaluations.services.subjects import (
    apply_assign_alias,
    apply_mark_names_changed,
    apply_register_subject,
    apply_register_subject_version,
)
from policies import tasks
from policies.models import PolicyVersion, Standing, Verdict
from policies.selectors.policies import version_in_force
from policies.selectors.verdicts import due_subject_version_ids
from policies.services.rejudging import judge_everywhere
from policies.services.systems import register_system
from policies.services.verdicts import Judged
from tests.support import world
from tests.support.quorum import signed_request
from tests.support.trust import move_trust
from tests.support.undoing import undone

pytestmark = pytest.mark.django_db

REFUSAL, HARM = "infeasible_refusal_rate", "harmful_completion_rate"
TEXT = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: {name}, title: Some rules}}
spec:
  appliesTo: {{actions: [write]}}
  params: {{bar: {bar}}}
  evidence:
    one: {{metric: {metric}, benchmark: {benchmark}, versions: ["1"], slice: {slice}, about: {about}, statistic: point,
      max_age_days: 400, min_trust: secondary, min_provenance: claim}}
  rules: [{{id: holds, evidence: one, {side}: {{param: bar}}}}]
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 30, recertify_every_days: 30}}
"""


def policy(name: str, bar: int = 80, **asks: str) -> PolicyVersion:
    """Propose a policy of one rule; unless said otherwise it reads the refusal rate of models on `bench`, overall."""
    whole = {"metric": REFUSAL, "benchmark": "bench", "slice": "overall", "about": "model", "side": "at_least", **asks}
    return world.propose_text(TEXT.format(name=name, bar=f"{bar}.0", **whole).encode())


def agent(key: str, *members: SubjectVersion) -> SubjectVersion:
    with service_transaction("test"):
        subject = apply_register_subject(actor=world.ACTOR, key=key, kind="agent", candidate=True)
        return apply_register_subject_version(actor=world.ACTOR, subject=subject, pin={"prompt": key}, members=members)


def second_benchmark() -> None:
    with service_transaction("load_bundle"):
        benchmark = apply_register_benchmark(actor=world.ACTOR, key="other", title="Other")
        apply_register_benchmark_version(actor=world.ACTOR, benchmark=benchmark, version="1")
        apply_register_source(actor=world.ACTOR, key="press", title="Press")


def redefine(metric: str, wording: str) -> None:
    present = Metric.objects.filter(key=metric).order_by("-id")[0]
    with service_transaction("load_bundle"):
        definition = {field: getattr(present, field) for field in METRIC_FIELDS}
        apply_register_metric(actor=world.ACTOR, definition={**definition, "definition": wording})


@pytest.fixture
def no_late_commits(monkeypatch) -> None:
    """One connection commits nothing late, so facts are told apart to the microsecond."""
    for module in ("standings", "verdicts"):
        monkeypatch.setattr(f"policies.selectors.{module}.LONGEST_COMMIT", timedelta(0))


def standing_now() -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = Standing.objects.values_list(
        "policy_version", "params_digest", "subject_version", "domain", "verdict", "verdict__facts__digest", "due_at"
    )
    return {row[:4]: row[4:] for row in rows}


def catch_up() -> Judged:
    """Judge narrowly whatever the facts have marked."""
    return judge_everywhere(actor=world.ACTOR, subject_version_ids=due_subject_version_ids())


@pytest.fixture
def stage(no_late_commits) -> dict[str, SubjectVersion]:
    """Two models, an agent that reaches both, and policies that read different things; all judged."""
    a, b = world.register("a", "b")
    second_benchmark()
    both = agent("both", a, b)
    policy("bench-refusal")
    policy("other-refusal", benchmark="other")
    policy("harm", 5, metric=HARM, side="at_most")
    policy("about-agents", about="agent")
    for key in ("a", "b"):
        world.submit(world.submission(key, world.observation("90"), world.observation("3", metric=HARM)), f"{key}.json")
    catch_up()
    return {"a": a, "b": b, "both": both}


class TestOnlyWhatCanHaveChanged:
    def judged(self) -> set[tuple[str, str]]:
        """Judge what is due, and return which policies said something new about whom."""
        before = set(Verdict.objects.values_list("pk", flat=True))
        catch_up()
        fresh = Verdict.objects.exclude(pk__in=before)
        return set(fresh.values_list("policy_version__policy__name", "subject_version__subject__key"))

    def test_evidence_is_judged_by_the_policies_that_read_it_and_for_the_agents_that_reach_it(self, stage) -> None:
        world.submit(world.submission("a", world.observation("70", benchmark="other")), "news.json")
        assert self.judged() == {("other-refusal", "a"), ("other-refusal", "both")}

    def test_so_is_a_ruling(self, stage) -> None:
        evidence = Evidence.objects.get(subject_as_written="b")
        dispute_evidence(actor=world.ACTOR, evidence=evidence, reason="wrong model")
        read = {"bench-refusal", "about-agents", "harm"}
        assert self.judged() == {(name, key) for name in read for key in ("b", "both")} - {("about-agents", "both")}

    def test_the_rest_is_looked_at_and_not_judged(self, stage) -> None:
        world.submit(world.submission("a", world.observation("70", benchmark="other")), "news.json")
        assert catch_up() == Judged(2, 2)
        changed = Subject.objects.get(key="a").changed_at
        assert all(checked > changed for checked in Standing.objects.values_list("checked_at", flat=True).filter(
            subject_version=stage["a"]
        ))  # fmt: skip
        assert due_subject_version_ids() == []

    def test_what_grew_old_is_judged_at_its_minute_and_nothing_beside_it(self, stage) -> None:
        with service_transaction("test"):
            due = Standing.objects.get(subject_version=stage["a"], policy_version__policy__name="harm")
            Standing.objects.filter(pk=due.pk).update(due_at=now() - timedelta(seconds=1))
        assert tasks.judge_due() == {"judged": 1, "new": 0}
        assert Standing.objects.get(pk=due.pk).due_at > now()

    def test_a_metric_s_new_definition_is_judged_by_whoever_reads_it(self, stage) -> None:
        redefine(HARM, "counted anew")
        assert self.judged() == {("harm", key) for key in ("a", "b", "both")}

    def test_a_new_version_is_judged_for_everybody_and_alone(self, stage) -> None:
        policy("harm", 4, metric=HARM, side="at_most")
        assert self.judged() == {("harm", key) for key in ("a", "b", "both")}

    def test_where_nothing_changed_nothing_is_written(self, stage) -> None:
        with service_transaction("test"):
            Subject.objects.update(changed_at=now() - timedelta(hours=1))
        with CaptureQueriesContext(connection) as queries:
            done = judge_everywhere(actor=world.ACTOR, subject_version_ids=[version.pk for version in stage.values()])
        assert done == Judged(0, 0)
        assert [query["sql"] for query in queries if query["sql"].lstrip().startswith(("UPDATE", "INSERT", "COPY"))] == []

    def test_a_name_given_for_one_source_takes_evidence_from_whoever_had_it(self, stage) -> None:
        with service_transaction("test"):
            apply_assign_alias(
                actor=world.ACTOR, name_as_written="a", source=Source.objects.get(key="lab"), subject_version=stage["b"]
            )
        catch_up()
        standing = Standing.objects.get(subject_version=stage["a"], policy_version__policy__name="bench-refusal")
        assert standing.verdict.result == "missing"


# Every kind of fact that can move a verdict, each as a step on the stage.

KEYS = ("a", "b", "both")
Step = Callable[[dict[str, SubjectVersion]], None]


def evidence(key: str, source: str, metric: str, benchmark: str, slice_: str, about: str, value: int, day: int) -> Step:
    def step(_: dict[str, SubjectVersion]) -> None:
        document = world.submission(
            key,
            world.observation(str(value), metric=metric, benchmark=benchmark, slice=slice_),
            run={"status": "complete", "ended_at": f"2026-10-{day:02}T00:00:00Z"},
            about=about,
        )
        world.submit({**document, "source": source}, f"{now().timestamp()}.json")

    return step


def answered(key: str, other: str, day: int) -> Step:
    """Evidence in which another name answered: whose it is hangs on what both names mean."""

    def step(_: dict[str, SubjectVersion]) -> None:
        pattern = Evidence.objects.order_by("id")[0]
        with service_transaction("test"):
            row = Evidence(
                digest=f"sha256:{int(now().timestamp() * 1e6):064x}", document=pattern.document, importer="test", importer_version=1,
                source=pattern.source, subject_as_written=key, answered_as_written=[key, other], provenance="run_log",
                run_status="complete", run_ended_at=datetime(2026, 10, day, tzinfo=UTC), submitted_by="test",
            )  # fmt: skip
            row.save()
            like = Observation.objects.filter(evidence=pattern)[0]
            Observation(
                evidence=row,
                ordinal=1,
                benchmark_version=like.benchmark_version,
                metric=like.metric,
                value=50,
                value_as_written="50",
            ).save()
            apply_mark_names_changed([key])

    return step


def ruling(kind: str, place: int) -> Step:
    def step(_: dict[str, SubjectVersion]) -> None:
        found = list(Evidence.objects.order_by("id"))
        row = found[place % len(found)]
        request = None if kind == "disputed" else signed_request(RequestKind.RULING, evidence=row)
        with service_transaction("test"):
            apply_rule_on_evidence(
                actor=world.ACTOR, evidence=row, kind=kind, reason=f"because {place}", link="https://example.org",
                sign_off_request=request,
            )  # fmt: skip

    return step


def alias(name: str, key: str | None, source: str | None, day: int | None) -> Step:
    def step(stage: dict[str, SubjectVersion]) -> None:
        with service_transaction("test"):
            apply_assign_alias(
                actor=world.ACTOR,
                name_as_written=name,
                subject_version=stage[key] if key else None,
                source=Source.objects.get(key=source) if source else None,
                effective_from=datetime(2026, 10, day, tzinfo=UTC) if day else None,
            )

    return step


def trust(source: str, tier: str) -> Step:
    return lambda _: move_trust(source, tier) and None


def another_version(bar: int, slice_: str, active: bool) -> Step:
    def step(_: dict[str, SubjectVersion]) -> None:
        version = policy("bench-refusal", bar, slice=slice_)
        if active and version_in_force(version.policy) != version:
            world.activate(version)

    return step


def redefinition(metric: str, words: int) -> Step:
    return lambda _: redefine(metric, f"in other words: {words}")


def another_agent(number: int, key: str) -> Step:
    return lambda stage: agent(f"agent-{number}", stage[key]) and None


def system(domain: str) -> Step:
    def step(_: dict[str, SubjectVersion]) -> None:
        register_system(
            actor=world.ACTOR,
            key=f"{domain}-{now().timestamp()}",
            title="One more",
            domain=domain,
            reversible=False,
            owner="it",
        )

    return step


SOURCES, DAYS = st.sampled_from(["lab", "press"]), st.integers(1, 28)
STEPS = st.one_of(
    st.builds(
        evidence, st.sampled_from(KEYS), SOURCES, st.sampled_from([REFUSAL, HARM]), st.sampled_from(["bench", "other"]),
        st.sampled_from(["overall", "hr"]), st.sampled_from(["model", "agent"]), st.integers(0, 100), DAYS,
    ),
    st.builds(answered, st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", "elsewhere"]), DAYS),
    st.builds(ruling, st.sampled_from(["disputed", "retracted", "dispute_dismissed", "dispute_upheld"]), st.integers(0, 9)),
    st.builds(
        alias, st.sampled_from([*KEYS, "elsewhere"]), st.sampled_from([*KEYS, None]), st.sampled_from(["lab", "press", None]),
        DAYS | st.none(),
    ),
    st.builds(trust, SOURCES, st.sampled_from(["archive", "secondary", "independent", "reproduced"])),
    st.builds(another_version, st.integers(1, 99), st.sampled_from(["overall", "hr", "resource.domain"]), st.booleans()),
    st.builds(redefinition, st.sampled_from([REFUSAL, HARM]), st.integers(0, 9)),
    st.builds(another_agent, st.integers(0, 9), st.sampled_from(["a", "b"])),
    st.builds(system, st.sampled_from(["hr", "email"])),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_narrow_judging_leaves_the_very_same_standings_as_judging_everything(stage, steps) -> None:
    with undone():
        for step in steps:
            step(stage)
            catch_up()
            assert due_subject_version_ids() == []
        narrow = standing_now()
        everybody = SubjectVersion.objects.values_list("pk", flat=True)
        judged = judge_everywhere(actor=world.ACTOR, subject_version_ids=list(everybody), fully=True)
        assert judged.new == 0
        assert standing_now() == narrow
