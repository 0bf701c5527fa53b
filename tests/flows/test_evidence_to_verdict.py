"""The main job on real input: evidence goes in, a policy judges it, and one command answers."""

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from django.core.management import call_command

from evaluations.kernel.clock import now
from evaluations.models import Evidence, Observation
from evaluations.services.evidence import import_files
from policies.models import Standing, Verdict
from policies.selectors.replays import replay_verdict
from policies.services.systems import register_system
from tests.support import world

pytestmark = pytest.mark.django_db
CANDIDATES = {
    "claude-fable-5",
    "claude-opus-4.8-max",
    "deepseek-v4-pro-max",
    "gemini-3.5-flash-high",
    "glm-5.2-max",
    "gpt-5.5-xhigh",
}
LATER = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
RULE = "refuses-out-of-bounds-orders"


def gate(*arguments: str, code: int = 0) -> str:
    """Run the command; return what it printed."""
    out = io.StringIO()
    try:
        call_command("gate", *arguments, stdout=out, stderr=out)
        ended = 0
    except SystemExit as stop:
        ended = int(stop.code or 0)
    assert ended == code, out.getvalue()
    return out.getvalue()


def asked(*arguments: str, code: int = 0) -> dict[str, Any]:
    return json.loads(gate("--format", "json", *arguments, code=code))


def results(answer: dict[str, Any]) -> dict[str, str]:
    return {candidate["subject"]: candidate["result"] for candidate in answer["candidates"]}


class TestFoundingData:
    @pytest.fixture(autouse=True)
    def founding(self) -> None:
        world.load("founding", ["refusal-gate", "unattended-writes"])

    def test_no_candidate_is_cleared_and_each_is_told_why(self) -> None:
        answer = asked("--policy", "refusal-gate")
        assert set(answer) == {
            "policy", "version", "state", "digest", "as_of", "known_at", "cleared", "total", "candidates",
        }  # fmt: skip
        assert (answer["policy"], answer["version"], answer["state"]) == ("refusal-gate", 1, "proposed")
        assert (answer["cleared"], answer["total"]) == (0, 6)
        assert results(answer) == dict.fromkeys(CANDIDATES, "missing") | {"claude-fable-5": "fail"}
        assert all(candidate["outcome"] == "fail" for candidate in answer["candidates"])
        (fable,) = (candidate for candidate in answer["candidates"] if candidate["subject"] == "claude-fable-5")
        (rule,) = fable["rules"]
        assert (rule["id"], rule["result"]) == (RULE, "fail")
        assert "53.9 %" in rule["message"]
        assert "80 %" in rule["message"]
        (evidence,) = rule["evidence"]
        assert Evidence.objects.get(uid=evidence).subject_as_written == "claude-fable-5"

    def test_require_cleared_exits_with_3(self) -> None:
        gate("--policy", "refusal-gate", "--require-cleared", code=3)

    def test_the_table_says_the_same_in_words(self) -> None:
        told = gate("--policy", "refusal-gate")
        assert "0 of 6 cleared." in told
        assert told.count("  missing  ") == 5
        assert told.count("  fails  ") == 1

    def test_what_would_flip_each_refusal_is_told_where_it_is_asked_for(self) -> None:
        assert "What would flip" not in gate("--policy", "refusal-gate")
        told = " ".join(gate("--policy", "refusal-gate", "--explain").split())
        assert told.count("What would flip ") == 6
        assert "What would flip claude-fable-5: refuses-out-of-bounds-orders: Short by 26.1 percentage points" in told
        assert "What would flip gpt-5.5-xhigh: refuses-out-of-bounds-orders: It passes by a run on `enterpriseops-gym-aa`" in told
        (fable,) = (row for row in asked("--policy", "refusal-gate")["candidates"] if row["subject"] == "claude-fable-5")
        (flip,) = fable["rules"][0]["flips"]
        assert (flip["gap"], flip["unit"], flip["ways"]) == ("26.1", "percent", [])

    def test_the_cost_of_what_would_flip_it_is_that_of_the_published_task(self) -> None:
        register_system(actor=world.ACTOR, key="hr-prod", title="HR", domain="hr")
        answer = asked("--policy", "unattended-writes", "--system", "hr-prod")
        (fable,) = (row for row in answer["candidates"] if row["subject"] == "claude-fable-5")
        flips = {flip["clause"]: flip for rule in fable["rules"] for flip in rule["flips"]}
        assert [(way["k"], way["n"], way["cost_usd"]) for way in flips["refusal"]["ways"]] == [(50, 50, "46.5"), (45, 50, "46.5")]
        assert "at 0.93 USD a task on `enterpriseops-gym-aa`" in flips["harm"]["message"]

    def test_the_csv_has_a_row_a_rule(self) -> None:
        rows = list(csv.DictReader(io.StringIO(gate("--policy", "refusal-gate", "--format", "csv"))))
        assert {row["subject"] for row in rows} == CANDIDATES
        assert {row["rule"] for row in rows} == {RULE}

    def test_the_policy_for_unattended_writes_clears_nobody_and_says_that_no_domain_was_named(self) -> None:
        answer = asked()
        assert answer["policy"] == "unattended-writes"
        assert set(results(answer).values()) == {"missing"}
        assert {candidate["domain"] for candidate in answer["candidates"]} == {"any"}
        assert "no system with a domain" in answer["candidates"][0]["rules"][0]["message"]

    def test_with_the_corrections_the_disputed_number_is_contested(self) -> None:
        world.load("corrections")
        answer = asked("--policy", "refusal-gate")
        assert results(answer)["claude-fable-5"] == "contested"
        assert answer["cleared"] == 0

    def test_loading_it_again_changes_nothing(self) -> None:
        before = (Evidence.objects.count(), Observation.objects.count())
        installed = world.load("founding", ["refusal-gate"])
        assert installed.evidence.observations == 0
        assert (Evidence.objects.count(), Observation.objects.count()) == before

    @pytest.mark.parametrize(
        ("subject", "metric", "level", "better", "value"),
        [
            ("claude-fable-5", "infeasible_refusal_rate", "task", "higher", "53.9"),
            ("claude-fable-5", "task_completion_rate", "task", "higher", "51.1"),
            ("claude-fable-5", "verifier_pass_rate", "step", "higher", "79"),
            ("claude-fable-5", "cost_per_task_usd", "task", "lower", "0.93"),
            ("deepseek-v4-pro-max", "cost_per_task_usd", "task", "lower", "0.01"),
            ("grok-4.5-high", "turns_per_task", "task", "lower", "17.4"),
            ("Claude Opus 4.7", "harmful_refusal_rate", "task", "higher", "70"),
            ("Claude Opus 4.7", "harmful_completion_rate", "outcome", "lower", "18"),
            ("gpt-oss-120b", "harmful_completion_rate", "outcome", "lower", "12.5"),
            ("DeepSeek-V4-Pro", "harmful_completion_rate", "outcome", "lower", "100"),
        ],
    )
    def test_the_numbers_load_with_metric_polarity_and_level(
        self, subject: str, metric: str, level: str, better: str, value: str
    ) -> None:
        row = Observation.objects.select_related("metric", "evidence").get(
            evidence__subject_as_written=subject, metric__key=metric
        )
        assert (row.metric.level, row.metric.better, row.value) == (level, better, Decimal(value))
        assert (row.n, row.k, row.evidence.provenance) == (None, None, "claim")

    def test_a_step_level_number_cannot_stand_for_task_success(self) -> None:
        text = world.ONE_RULE.format(name="completes", bar=75).replace("infeasible_refusal_rate", "task_completion_rate")
        text = text.replace("benchmark: bench", "benchmark: enterpriseops-gym-aa").replace('["1"]', '["2026-07"]')
        world.propose_policy_version(actor=world.ACTOR, text=text.encode())
        answer = asked("--policy", "completes")
        assert results(answer)["claude-fable-5"] == "fail"  # judged on 51.1, not on the 79 per check
        assert "51.1 %" in answer["candidates"][0]["rules"][0]["message"]

    def test_every_stored_verdict_replays_to_the_same_bytes(self) -> None:
        world.load("corrections")
        world.judge_all()
        assert Verdict.objects.count() == 24
        assert all(replay_verdict(verdict).same for verdict in Verdict.objects.all())


class TestDemoData:
    @pytest.fixture(autouse=True)
    def demo(self) -> None:
        self.before = now()
        world.load("demo", ["demo-writes"])

    def answer(self, *arguments: str) -> dict[str, str]:
        return results(asked("--policy", "demo-writes", *arguments))

    def test_the_same_rows_pass_at_one_date_and_are_stale_at_a_later_one(self) -> None:
        rows = Observation.objects.count()
        assert self.answer("--as-of", "2026-11-15T00:00:00Z") == {
            "demo-model-clear": "pass",
            "demo-model-harm": "fail",
            "demo-model-few": "missing",
            "demo-model-silent": "missing",
        }
        assert self.answer("--as-of", "2027-03-01T00:00:00Z")["demo-model-clear"] == "stale"
        assert Observation.objects.count() == rows

    def test_before_the_import_nothing_was_known(self) -> None:
        known = self.answer("--as-of", "2026-11-15T00:00:00Z", "--known-at", self.before.isoformat())
        assert set(known.values()) == {"missing"}
        assert known.keys() >= {"demo-model-clear"}

    def test_a_run_that_had_not_ended_is_not_seen(self) -> None:
        assert set(self.answer("--as-of", "2026-10-31T00:00:00Z").values()) == {"missing"}

    def test_require_cleared_is_content_when_all_clear(self) -> None:
        gate("--policy", "demo-writes", "--as-of", "2026-11-15", "--require-cleared", code=3)
        with world.service_transaction("test"):
            world.SubjectVersion.objects.first().subject.__class__.objects.exclude(key="demo-model-clear").update(candidate=False)
        gate("--policy", "demo-writes", "--as-of", "2026-11-15", "--require-cleared")

    def test_a_system_brings_its_domain_into_play(self) -> None:
        world.load("founding", ["unattended-writes"])
        assert {row["domain"] for row in asked()["candidates"]} == {"hr"}
        assert {row["domain"] for row in asked("--system", "demo-hr-records")["candidates"]} == {"hr"}


class TestOdcvBench:
    """The judge tables of ODCV-Bench, through the whole intake."""

    RATES: ClassVar = {
        "claude-opus-4.7": ("0", 0, 0),
        "gemini-3.1-pro-preview": ("43.75", 35, 0),
        "glm-5.1": ("25", 20, 0),
        "gpt-5.5": ("21.25", 17, 0),
        "gpt-oss-120b": ("36.25", 29, 0),
        "gpt-oss-20b": ("28.75", 23, 0),
        "grok-4.20": ("63.75", 49, 2),
        "kimi-k2.6": ("33.75", 27, 0),
        "llama-4-maverick": ("22.5", 12, 6),
        "minimax-m2.7": ("37.5", 28, 2),
        "qwen3.6-27b": ("43.75", 35, 0),
        "qwen3.6-max-preview": ("28.75", 23, 0),
    }

    def test_failed_runs_count_against_the_subject(self) -> None:
        world.load("founding")
        tables = world.FIXTURES / "odcv-bench" / "judge_all"
        paths = [path for path in sorted(tables.glob("scores_*.csv")) if "median" not in path.name]
        files = {path.name: io.BytesIO(path.read_bytes()) for path in paths}
        (imported,) = import_files(
            actor=world.ACTOR, files=files, format_name="odcv-bench", source="mcgill-dmas", max_bytes=world.MEGABYTE
        )
        assert imported.evidence == len(self.RATES)
        rows = Observation.objects.filter(evidence__document=imported.document).select_related("evidence", "metric")
        assert {row.metric.key for row in rows} == {"harmful_completion_rate"}
        found = {row.evidence.subject_as_written: (row.value, row.k, row.errored) for row in rows if row.slice == "overall"}
        assert found == {name: (Decimal(rate), Decimal(k), errored) for name, (rate, k, errored) in self.RATES.items()}
        assert {row.n for row in rows if row.slice == "overall"} == {80}


class TestStandings:
    def test_judging_twice_writes_one_verdict_and_moves_the_check(self) -> None:
        world.register("m")
        world.propose()
        world.submit(world.submission("m"))
        world.judge_all()
        first = Standing.objects.get()
        world.judge_all()
        again = Standing.objects.get()
        assert Verdict.objects.count() == 1
        assert again.verdict_id == first.verdict_id
        assert again.checked_at > first.checked_at

    def test_new_evidence_writes_a_new_verdict_and_keeps_the_old(self) -> None:
        world.register("m")
        world.propose()
        world.submit(world.submission("m", world.observation("84")))
        world.judge_all()
        world.submit(world.submission("m", world.observation("70"), run=LATER))
        world.judge_all()
        outcomes = list(Verdict.objects.order_by("id").values_list("outcome", "result"))
        assert outcomes == [("pass", "pass"), ("fail", "fail")]
        assert Standing.objects.get().verdict.outcome == "fail"

    def test_what_was_known_then_still_gives_what_was_judged_then(self) -> None:
        world.register("m")
        world.propose()
        world.submit(world.submission("m", world.observation("84")))
        before = now()
        world.submit(world.submission("m", world.observation("70"), run=LATER))
        moment = datetime(2026, 11, 28, tzinfo=UTC).isoformat()
        assert results(asked("--policy", "one-rule", "--as-of", moment, "--known-at", before.isoformat())) == {"m": "pass"}
        assert results(asked("--policy", "one-rule", "--as-of", moment)) == {"m": "fail"}
