"""On the pages of metrics, benchmarks and sources: who proposed and signed what stands there, and the way to another."""

from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from compliance.admin.activations import named
from compliance.admin.asking import links_section
from compliance.admin.requests import request_link
from compliance.admin.sighted import person_reference, sight
from compliance.models import Seat, SignOffRequest
from compliance.selectors.sight import visible_requests
from evaluations.admin.benchmarks import BenchmarkAdmin, BenchmarkVersionAdmin, MetricAdmin
from evaluations.admin.sources import SourceAdmin
from evaluations.kernel.display import Cell, Fields, Section, instant
from evaluations.models import Benchmark, BenchmarkVersion, Metric, Source

METRIC = "admin:compliance_signoffrequest_ask_metric"
BENCHMARK = "admin:compliance_signoffrequest_ask_benchmark"
SOURCE = "admin:compliance_signoffrequest_ask_source"
SHIPPED = "It came with the product: nobody signed it here."

MetricAdmin.leads_to.append(("Propose a metric", METRIC))
for _page in (BenchmarkAdmin, BenchmarkVersionAdmin):
    _page.leads_to.append(("Propose a benchmark", BENCHMARK))
SourceAdmin.leads_to.append(("Propose a source", SOURCE))


@MetricAdmin.add_section
def metric_signed(row: Metric, request: HttpRequest) -> Section:
    return _signed(row.sign_off_request, request)


@MetricAdmin.add_section
def propose_wording(row: Metric, request: HttpRequest) -> Section:
    address = f"{reverse(METRIC)}?{urlencode({'metric': row.key})}"
    return links_section("Another wording", [("Propose another wording", address)])


@BenchmarkVersionAdmin.add_section
def version_signed(row: BenchmarkVersion, request: HttpRequest) -> Section:
    return _signed(row.sign_off_request, request)


@BenchmarkAdmin.add_section
def propose_version(row: Benchmark, request: HttpRequest) -> Section:
    address = f"{reverse(BENCHMARK)}?{urlencode({'benchmark': row.key})}"
    return links_section("Another version", [("Propose a version", address)])


@SourceAdmin.add_section
def trust_signed(row: Source, request: HttpRequest) -> Section:
    assigned = row.trust_assignments.order_by("-id").first()
    if assigned is None:
        return Fields("Who signed its trust", [("Signatures", "Nobody has assigned trust yet.")])
    return _signed(assigned.sign_off_request, request, title="Who signed its trust")


@SourceAdmin.add_section
def propose_trust(row: Source, request: HttpRequest) -> Section:
    address = f"{reverse(SOURCE)}?{urlencode({'source': row.key})}"
    return links_section("Another trust", [("Propose another trust", address)])


def _signed(uid: UUID | None, request: HttpRequest, *, title: str = "Who signed it") -> Section:
    """Say who proposed what is registered and who signed it; the request itself leads to its page for whoever may see it."""
    asked = None if uid is None else SignOffRequest.objects.select_related("dossier").filter(uid=uid).first()
    if asked is None:
        return Fields(title, [("Signatures", SHIPPED)])
    signers = list(Seat.objects.filter(dossier=asked.dossier_id).order_by("id").values_list("person_id", flat=True))
    seen = visible_requests(sight(request)).filter(pk=asked.pk).exists()
    shown: list[tuple[str, Cell]] = [
        ("Proposed by", person_reference(asked.requester_id)),
        ("Because", asked.reason),
        ("Signed by", named(signers, "nobody")),
        ("Signed", instant(asked.closed_at)),
        ("Request", request_link(asked) if seen else str(asked.uid)),
    ]
    return Fields(title, shown)
