"""Proposing, signing and reading metrics and benchmarks of one's own in the console."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.models import SignOffRequest, User
from compliance.services.signing_in import record_reauthentication
from compliance.vocabulary import RequestStatus, Role
from evaluations.models import Benchmark, BenchmarkVersion, Metric
from tests.support import signing, world
from tests.support.definitions import BENCHMARK, METRIC, ask_metric, stewards

pytestmark = pytest.mark.django_db
METRICS, BENCHMARKS = (reverse(f"admin:evaluations_{name}_changelist") for name in ("metric", "benchmark"))
ASK_METRIC, ASK_BENCHMARK = (reverse(f"admin:compliance_signoffrequest_ask_{name}") for name in ("metric", "benchmark"))
METRIC_FORM = {"metric": METRIC["key"], **{name: text for name, text in METRIC.items() if name != "key"}, "reason": "ours"}


@pytest.fixture
def people() -> list[User]:
    world.register("model-a")
    return stewards()


def signed_in(account: User) -> Client:
    client = Client()
    client.force_login(account)
    key = client.session.session_key or ""
    record_reauthentication(actor=signing.actor_of(account), user=account, session_key=key, method="totp")
    return client


def text_of(answer) -> str:
    html = answer.content.decode()
    return " ".join(strip_tags(html[html.index("<main") : html.index("</main>")].replace("<", " <")).split())


def signs(account: User, request: SignOffRequest):
    address = reverse("admin:compliance_signoffrequest_sign", args=[request.pk])
    word = {"meaning": "approved", "reason": "clear", "digest": request.dossier.digest}
    return signed_in(account).post(address, word, follow=True)


def test_a_metric_is_proposed_by_the_form_signed_on_its_page_and_told_with_its_signers(people: list[User]) -> None:
    client = signed_in(people[0])
    assert ASK_METRIC in client.get(METRICS).content.decode()
    filed = client.post(ASK_METRIC, {**METRIC_FORM, "key": "once"}, follow=True)
    request = SignOffRequest.objects.get()
    told = text_of(filed)
    for part in ("Shall the metric payroll_refusal_rate be registered?", METRIC["definition"], "A new key", "higher is better"):
        assert part in told
    assert client.post(ASK_METRIC, {**METRIC_FORM, "key": "once"}).status_code == 302
    assert SignOffRequest.objects.count() == 1
    assert METRIC["key"] in client.get(reverse("admin:compliance_signoffrequest_changelist")).content.decode()
    signs(people[1], request)
    assert request.reload().status == RequestStatus.COMPLETED
    row = Metric.objects.get(key=METRIC["key"])
    page = text_of(signed_in(people[2]).get(reverse("admin:evaluations_metric_change", args=[row.pk])))
    for part in ("Proposed by Stella One", "Signed by Stella Two", "Because ours", row.digest[7:19]):
        assert part in page
    shipped = Metric.objects.get(key="over_refusal_rate")
    page = text_of(client.get(reverse("admin:evaluations_metric_change", args=[shipped.pk])))
    assert "It came with the product: nobody signed it here." in page


def test_another_wording_is_filled_in_and_shown_beside_the_one_before(people: list[User]) -> None:
    client = signed_in(people[0])
    html = client.get(ASK_METRIC, {"metric": "over_refusal_rate"}).content.decode()
    assert "Propose another wording of over_refusal_rate" in html
    known = Metric.objects.get(key="over_refusal_rate")
    assert 'value="over_refusal_rate"' in html
    form = {name: getattr(known, name) for name in METRIC if name != "key"}
    form |= {"metric": known.key, "definition": "In other words.", "reason": "clearer", "key": "k"}
    page = text_of(client.post(ASK_METRIC, form, follow=True))
    assert "be defined anew?" in page
    assert "until now: Share of" in page
    assert "Nothing was measured under this key yet." in page


def test_a_benchmark_is_proposed_by_the_form_and_shown_with_what_it_carries(people: list[User]) -> None:
    client = signed_in(people[0])
    assert ASK_BENCHMARK in client.get(BENCHMARKS).content.decode()
    client.post(ASK_BENCHMARK, {**BENCHMARK, "reason": "ours", "key": "once"})
    request = SignOffRequest.objects.get()
    page = text_of(signed_in(people[1]).get(reverse("admin:compliance_signoffrequest_change", args=[request.pk])))
    for part in ("Shall payroll-gym 2026-11 be registered as a benchmark?", "It is new", "private", "infeasible_refusal_rate"):
        assert part in page
    signs(people[1], request)
    row = BenchmarkVersion.objects.get(benchmark__key="payroll-gym")
    page = text_of(client.get(reverse("admin:evaluations_benchmarkversion_change", args=[row.pk])))
    for part in ("Exposure private", "Metrics infeasible_refusal_rate", "Signed by Stella Two"):
        assert part in page
    benchmark = Benchmark.objects.get(key="payroll-gym")
    html = client.get(reverse("admin:evaluations_benchmark_change", args=[benchmark.pk])).content.decode()
    assert f"{ASK_BENCHMARK}?benchmark=payroll-gym" in html
    assert "Propose a version of Payroll Gym" in client.get(ASK_BENCHMARK, {"benchmark": "payroll-gym"}).content.decode()


def test_what_is_refused_is_said_beside_its_field_and_nothing_is_filed(people: list[User]) -> None:
    client = signed_in(people[0])
    answer = client.post(ASK_METRIC, {**METRIC_FORM, "metric": "Payroll", "maximum": "1", "key": "once"})
    assert answer.status_code == 422
    assert "U+0050 LATIN CAPITAL LETTER P" in answer.context["form"].errors["metric"][0]
    answer = client.post(ASK_METRIC, {**METRIC_FORM, "metric": "over_refusal_rate", "key": "once"})
    assert "measures stays (better)" in text_of(answer)
    answer = client.post(ASK_BENCHMARK, {**BENCHMARK, "data_digest": "x", "reason": "ours", "key": "once"})
    assert "is no digest" in answer.context["form"].errors["data_digest"][0]
    assert not SignOffRequest.objects.exists()


def test_whoever_is_no_steward_is_told_so(people: list[User]) -> None:
    answer = signed_in(signing.human("Otto Other", Role.POLICY_AUTHOR)).post(ASK_METRIC, {**METRIC_FORM, "key": "once"})
    assert (answer.status_code, "needs the role evidence_steward" in text_of(answer)) == (422, True)


def test_whoever_may_not_see_the_request_sees_who_signed_and_no_way_to_it(people: list[User]) -> None:
    request = ask_metric(people[0])
    signing.sign(people[1], request)
    row = Metric.objects.get(key=METRIC["key"])
    other = signed_in(signing.human("Otto Other", Role.POLICY_AUTHOR))
    html = other.get(reverse("admin:evaluations_metric_change", args=[row.pk])).content.decode()
    assert "Stella Two" in html
    assert f"/signoffrequest/{request.pk}/" not in html
