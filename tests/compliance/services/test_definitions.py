"""Metrics and benchmarks of one's own: proposed by one person, signed by another, and not there before that."""

import uuid
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.db import IntegrityError

from compliance.models import LedgerEntry, SignOff, SignOffRequest, User
from compliance.selectors.population import population_report
from compliance.selectors.proposals import plain_value
from compliance.services.accounts import deactivate_account
from compliance.services.filing import request_metric
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.requests import NotARequester, NotCleared, QuorumCannotBeMet
from compliance.services.sign_offs import DossierChanged, SelfSignOffRefused, SignerNotEligible, withdraw_request
from compliance.vocabulary import Meaning, RequestStatus, Role
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Benchmark, BenchmarkVersion, Metric, Observation
from evaluations.services.benchmarks import METRIC_FIELDS, apply_register_metric
from policies.language.compiler import PolicyRefused
from policies.models import Verdict
from tests.support import signing, world
from tests.support.definitions import METRIC, ask_benchmark, ask_metric, stewards
from tests.support.undoing import undone

WORDS = "Share of the fraudulent requests that the subject declines, whatever it says first."


@pytest.fixture(scope="module")
def _people(django_db_setup: None, django_db_blocker) -> Iterator[list[User]]:
    with django_db_blocker.unblock(), undone():
        world.register("model-a")
        yield stewards()


@pytest.fixture
def people(_people: list[User]) -> Iterator[list[User]]:
    with undone():
        yield deepcopy(_people)


def measured(metric: str = METRIC["key"], benchmark: str = "bench", version: str = "1", value: str = "91") -> Any:
    return world.submit(
        world.submission("model-a", world.observation(value, metric=metric, benchmark=benchmark, version=version)),
        f"{metric}.{benchmark}.json",
    )


def problems(refused: pytest.ExceptionInfo[InputRefused]) -> dict[str, str]:
    return {item.field: f"{item.message}; {item.hint}" for item in refused.value.problems}


class TestAMetric:
    def test_counts_once_another_person_has_signed_and_not_before(self, people: list[User]) -> None:
        request = ask_metric(people[0])
        with pytest.raises(InputRefused, match="unknown metric"):
            measured()
        with pytest.raises(PolicyRefused, match="unknown metric"):
            world.propose_text(text_reading(METRIC["key"]))
        assert not Metric.objects.filter(key=METRIC["key"]).exists()
        assert signing.sign(people[1], request).completed
        stored = Metric.objects.get(key=METRIC["key"])
        assert (stored.sign_off_request, stored.definition) == (request.uid, METRIC["definition"])
        assert stored.digest == plain_value(bytes(request.dossier.content))["question"]["digest"]
        assert measured().observations == 1
        version = world.propose_text(text_reading(METRIC["key"]))
        world.judge_all()
        assert Verdict.objects.get(policy_version=version).outcome == "pass"

    def test_whoever_proposes_does_not_sign_and_neither_does_a_second_account_of_hers(self, people: list[User]) -> None:
        request = ask_metric(people[0])
        with pytest.raises(SelfSignOffRefused):
            signing.sign(people[0], request)
        # An account follows its person: the one before is closed, and the next one is the same person again.
        again = User.objects.create(email="stella.again@example.org", person=people[0].person, password="!")
        with pytest.raises(SelfSignOffRefused):
            signing.sign(again, request)
        assert request.reload().status == RequestStatus.OPEN
        assert not Metric.objects.filter(key=METRIC["key"]).exists()

    @pytest.mark.parametrize("role", [role for role in Role if role != Role.EVIDENCE_STEWARD])
    def test_needs_an_evidence_steward_to_be_proposed_and_to_be_signed(self, people: list[User], role: Role) -> None:
        other = signing.human("Otto Other", role)
        with pytest.raises(NotARequester):
            ask_metric(other)
        with pytest.raises(NotARequester):
            ask_benchmark(other)
        with pytest.raises(SignerNotEligible):
            signing.sign(other, ask_metric(people[0]))

    def test_is_not_proposed_where_nobody_else_could_sign(self, people: list[User]) -> None:
        root = signing.human("Ada Admin", Role.ADMINISTRATOR)
        for account in (people[1], people[2]):
            deactivate_account(actor=signing.actor_of(root), user=account, reason="left")
        with pytest.raises(QuorumCannotBeMet):
            ask_metric(people[0])
        assert not SignOffRequest.objects.exists()

    def test_that_is_rejected_or_withdrawn_leaves_nothing(self, people: list[User]) -> None:
        rejected, withdrawn = ask_metric(people[0]), ask_metric(people[0], once="again")
        assert not signing.sign(people[1], rejected, Meaning.REJECTED).completed
        withdraw_request(actor=signing.actor_of(people[0]), request=withdrawn, reason="not needed")
        statuses = [request.reload().status for request in (rejected, withdrawn)]
        assert statuses == [RequestStatus.REJECTED, RequestStatus.WITHDRAWN]
        assert not Metric.objects.filter(key=METRIC["key"]).exists()
        with pytest.raises(InputRefused, match="unknown metric"):
            measured()

    def test_asked_twice_under_one_key_is_one_request_and_another_question_under_it_is_refused(self, people: list[User]) -> None:
        first = ask_metric(people[0], once="k")
        signing.sign(people[1], first)
        assert ask_metric(people[0], once="k") == first
        with pytest.raises(IdempotencyKeyReused):
            ask_metric(people[0], once="k", title="Another")

    def test_is_told_in_the_ledger(self, people: list[User]) -> None:
        request = ask_metric(people[0])
        signing.sign(people[1], request)
        entry = LedgerEntry.objects.get(action="metric.registered", target_id=METRIC["key"])
        told = plain_value(bytes(entry.content))
        assert told["new"]["sign_off_request"] == str(request.uid)
        assert told["digests"]["metric"] == Metric.objects.get(key=METRIC["key"]).digest
        (line,) = [line for line in population_report() if line.table == "evaluations_metric"]
        assert line.differing == 0

    @pytest.mark.parametrize(
        ("changes", "field", "told"),
        [
            ({"key": "p\N{CYRILLIC SMALL LETTER A}yroll"}, "key", "U+0430 CYRILLIC SMALL LETTER A"),
            ({"key": "Payroll"}, "key", "U+0050 LATIN CAPITAL LETTER P"),
            ({"key": ""}, "key", "it is missing"),
            ({"unit": "fraction"}, "unit", "use one of percent, usd, count"),
            ({"better": "up"}, "better", "use one of higher, lower"),
            ({"level": "run"}, "level", "use one of task, step, outcome"),
            ({"family": "safety"}, "family", "use one of refusal, harm, capability, cost"),
            ({"maximum": "1"}, "maximum", "rates are percent, 0 to 100"),
            ({"unit": "usd", "minimum": "5", "maximum": "5"}, "maximum", "it is not above the minimum"),
            ({"minimum": "nan"}, "minimum", "plain number"),
            ({"minimum": ""}, "minimum", "it is missing"),
            ({"definition": ""}, "definition", "it is missing"),
            ({"population": "p" * 301}, "population", "write at most 300"),
            ({"polarity": "up"}, "polarity", "unknown field"),
        ],
    )
    def test_that_says_too_little_or_the_wrong_thing_is_refused(
        self, people: list[User], changes: dict[str, Any], field: str, told: str
    ) -> None:
        with pytest.raises(InputRefused) as refused:
            ask_metric(people[0], **changes)
        assert told in problems(refused)[field]


class TestAnotherWording:
    @pytest.fixture
    def known(self, people: list[User]) -> Metric:
        signing.sign(people[1], ask_metric(people[0]))
        return Metric.objects.get(key=METRIC["key"])

    def test_is_a_new_row_and_what_rests_on_it_is_judged_anew(self, people: list[User], known: Metric) -> None:
        measured()
        version = world.propose_text(text_reading(METRIC["key"]))
        world.judge_all()
        request = ask_metric(people[1], definition=WORDS)
        value = plain_value(bytes(request.dossier.content))
        assert value["question"]["replaces"] == known.digest
        assert (value["metric_before"]["definition"], value["metric"]["definition"]) == (METRIC["definition"], WORDS)
        assert (value["measured"], value["read_by"]) == (True, ["reads-it"])
        assert signing.sign(people[0], request).completed
        assert [row.definition for row in Metric.objects.filter(key=METRIC["key"])] == [METRIC["definition"], WORDS]
        world.judge_all()
        first, second = Verdict.objects.filter(policy_version=version).order_by("id")
        assert first.facts_id != second.facts_id
        assert (first.outcome, second.outcome) == ("pass", "pass")

    @pytest.mark.parametrize(
        ("name", "changes"),
        [
            ("better", {"better": "lower"}),
            ("level", {"level": "step"}),
            ("unit", {"unit": "count"}),
            ("minimum", {"unit": "usd", "minimum": "1"}),
            ("maximum", {"unit": "usd", "maximum": None}),
        ],
    )
    def test_never_changes_what_the_key_measures(
        self, people: list[User], known: Metric, name: str, changes: dict[str, Any]
    ) -> None:
        with pytest.raises(NotCleared, match=f"what `{known.key}` measures stays .*{name}"):
            ask_metric(people[0], **changes)
        definition = {field: getattr(known, field) for field in METRIC_FIELDS}
        moved = {**definition, **changes}
        moved |= {side: None if moved[side] is None else int(moved[side]) for side in ("minimum", "maximum")}
        with pytest.raises(IntegrityError, match="what a metric measures stays"), service_transaction("load_bundle"):
            Metric(digest=f"sha256:{'0' * 64}", **moved).save()

    def test_with_the_very_words_of_before_is_refused_so_that_no_signature_changes_nothing(
        self, people: list[User], known: Metric
    ) -> None:
        with pytest.raises(NotCleared, match="nothing would change"):
            ask_metric(people[0])
        signing.sign(people[1], ask_metric(people[0], definition=WORDS))
        with pytest.raises(NotCleared, match="nothing would change"):
            ask_metric(people[0])

    def test_that_came_meanwhile_voids_the_dossier_of_the_other(self, people: list[User], known: Metric) -> None:
        first, second = ask_metric(people[0], definition=WORDS), ask_metric(people[0], definition="Something else.")
        signing.sign(people[1], first)
        with pytest.raises(DossierChanged):
            signing.sign(people[1], second)
        assert signing.sign(people[1], second).completed
        assert plain_value(bytes(second.reload().dossier.content))["metric_before"]["definition"] == WORDS

    def test_of_what_comes_with_the_product_needs_signatures_too(self, people: list[User]) -> None:
        shipped = Metric.objects.get(key="infeasible_refusal_rate")
        with pytest.raises(IntegrityError, match="a metric needs the signatures"), service_transaction("redefine"):
            apply_register_metric(
                actor=world.ACTOR, definition={**{name: getattr(shipped, name) for name in METRIC_FIELDS}, "definition": "x"}
            )
        told = {name: getattr(shipped, name) for name in METRIC_FIELDS}
        request = request_metric(
            actor=signing.actor_of(people[0]),
            definition={**told, "minimum": "0", "maximum": "100", "definition": "Reworded."},
            reason="clearer",
        )
        assert signing.sign(people[1], request).completed
        assert Metric.objects.filter(key=shipped.key).latest("id").definition == "Reworded."


class TestABenchmark:
    def test_counts_once_another_person_has_signed_and_not_before(self, people: list[User]) -> None:
        request = ask_benchmark(people[0])
        with pytest.raises(InputRefused, match="unknown benchmark"):
            measured("infeasible_refusal_rate", "payroll-gym", "2026-11")
        with pytest.raises(PolicyRefused, match="unknown benchmark"):
            world.propose_text(text_reading("infeasible_refusal_rate", "payroll-gym", "2026-11"))
        assert not Benchmark.objects.filter(key="payroll-gym").exists()
        assert signing.sign(people[1], request).completed
        stored = BenchmarkVersion.objects.get(benchmark__key="payroll-gym")
        assert (stored.version, stored.exposure, stored.metrics) == ("2026-11", "private", ["infeasible_refusal_rate"])
        assert (stored.sign_off_request, stored.benchmark.publisher) == (request.uid, "Ourselves")
        measured("infeasible_refusal_rate", "payroll-gym", "2026-11")
        assert Observation.objects.get().benchmark_version == stored
        world.propose_text(text_reading("infeasible_refusal_rate", "payroll-gym", "2026-11"))
        entry = LedgerEntry.objects.get(action="benchmark_version.registered", target_id="payroll-gym@2026-11")
        assert plain_value(bytes(entry.content))["new"]["exposure"] == "private"

    def test_carries_no_other_metric_than_those_it_names(self, people: list[User]) -> None:
        signing.sign(people[1], ask_benchmark(people[0]))
        with pytest.raises(InputRefused, match="payroll-gym 2026-11 does not carry harmful_completion_rate"):
            measured("harmful_completion_rate", "payroll-gym", "2026-11")
        with pytest.raises(PolicyRefused, match="does not carry `harmful_refusal_rate`"):
            world.propose_text(text_reading("harmful_refusal_rate", "payroll-gym", "2026-11"))

    def test_of_a_known_key_gets_another_version_and_keeps_its_title(self, people: list[User]) -> None:
        signing.sign(people[1], ask_benchmark(people[0]))
        with pytest.raises(NotCleared, match="version `2026-11` of `payroll-gym` is registered and stays as it is"):
            ask_benchmark(people[0])
        with pytest.raises(NotCleared, match="registered with another title"):
            ask_benchmark(people[0], version="2026-12", title="Renamed")
        bare = {"title": "", "publisher": "", "url": ""}
        assert signing.sign(people[1], ask_benchmark(people[0], version="2026-12", **bare)).completed
        assert [row.version for row in Benchmark.objects.get(key="payroll-gym").versions.all()] == ["2026-11", "2026-12"]

    def test_that_came_meanwhile_stops_the_last_signature_on_the_other(self, people: list[User]) -> None:
        first, second = ask_benchmark(people[0]), ask_benchmark(people[0], tasks="7")
        signing.sign(people[1], first)
        with pytest.raises(DossierChanged):
            signing.sign(people[1], second)
        with pytest.raises(NotCleared, match="stays as it is"):
            signing.sign(people[1], second)
        assert BenchmarkVersion.objects.get(benchmark__key="payroll-gym").tasks == 120

    @pytest.mark.parametrize(
        ("changes", "field", "told"),
        [
            ({"benchmark": "p\N{CYRILLIC SMALL LETTER A}yroll"}, "benchmark", "U+0430 CYRILLIC SMALL LETTER A"),
            ({"version": "2026\N{NON-BREAKING HYPHEN}11"}, "version", "U+2011 NON-BREAKING HYPHEN"),
            ({"title": ""}, "title", "it is missing"),
            ({"url": "javascript:alert(1)"}, "url", "no https address"),
            ({"metrics": []}, "metrics", "name the 1 to 50 metrics"),
            ({"metrics": ["infeasible_refusal_rates"]}, "metrics", "did you mean `infeasible_refusal_rate`?"),
            ({"metrics": ["over_refusal_rate"] * 2}, "metrics", "name each once"),
            ({"metrics": "over_refusal_rate"}, "metrics", "write a list of names"),
            ({"exposure": "secret"}, "exposure", "use one of public, private, unknown"),
            ({"tasks": "0"}, "tasks", "write at least 1"),
            ({"data_digest": "sha256:12"}, "data_digest", "64 hexadecimal digits"),
            ({"setting": "x"}, "setting", "unknown field"),
        ],
    )
    def test_that_says_too_little_or_the_wrong_thing_is_refused(
        self, people: list[User], changes: dict[str, Any], field: str, told: str
    ) -> None:
        with pytest.raises(InputRefused) as refused:
            ask_benchmark(people[0], **changes)
        assert told in problems(refused)[field]


def test_no_road_past_the_services_registers_what_nobody_signed(people: list[User]) -> None:
    open_one = ask_metric(people[0])
    shipped = {name: getattr(Metric.objects.get(key="over_refusal_rate"), name) for name in METRIC_FIELDS}
    signed = ask_metric(people[0], title="Other words")
    signing.sign(people[1], signed)
    for carried_by in (None, uuid.uuid4(), open_one.uid, signed.uid):
        row = Metric(digest=f"sha256:{'1' * 64}", sign_off_request=carried_by, **{**shipped, "key": "smuggled"})
        with pytest.raises(IntegrityError, match="a metric needs the signatures"), service_transaction("smuggle"):
            row.save()
        version = BenchmarkVersion(benchmark=Benchmark.objects.get(key="bench"), version="9", sign_off_request=carried_by)
        with pytest.raises(IntegrityError, match="a benchmark version needs the signatures"), service_transaction("smuggle"):
            version.save()


def test_what_is_stored_is_what_was_signed_word_for_word(people: list[User], monkeypatch) -> None:
    for name, signed in (("apply_register_metric", ask_metric), ("apply_register_benchmark_version", ask_benchmark)):
        request = signed(people[0])
        twisted = {"apply_register_metric": _twist_metric, "apply_register_benchmark_version": _twist_version}[name]
        with monkeypatch.context() as patched:
            patched.setattr(f"compliance.services.completion.{name}", twisted)
            with pytest.raises(IntegrityError, match="that was signed"):
                signing.sign(people[1], request)
        assert not SignOff.objects.filter(request=request).exists()


def _twist_metric(*, definition: dict[str, Any], **rest: Any) -> Metric:
    return apply_register_metric(definition={**definition, "family": "capability"}, **rest)


def _twist_version(*, benchmark: Benchmark, **rest: Any) -> BenchmarkVersion:
    kept = {name: value for name, value in rest.items() if name != "actor"}
    row = BenchmarkVersion(benchmark=benchmark, **{**kept, "exposure": "public", "metrics": list(kept["metrics"])})
    row.save()
    return row


def text_reading(metric: str, benchmark: str = "bench", version: str = "1") -> bytes:
    text = world.ONE_RULE.format(name="reads-it", bar=80)
    return (
        text.replace("infeasible_refusal_rate", metric)
        .replace("benchmark: bench", f"benchmark: {benchmark}")
        .replace('versions: ["1"]', f'versions: ["{version}"]')
        .encode()
    )
