"""One door to all dossiers: the builder of each kind of request."""

from datetime import datetime
from typing import Protocol

from compliance.models import SignOffRequest
from compliance.selectors.dossiers.access import build_access_dossier
from compliance.selectors.dossiers.base import Built
from compliance.selectors.dossiers.changes import build_activation_dossier, build_binding_dossier
from compliance.selectors.dossiers.definitions import build_benchmark_dossier, build_metric_dossier
from compliance.selectors.dossiers.judgements import build_review_dossier, build_ruling_dossier
from compliance.selectors.dossiers.sources import build_source_dossier
from compliance.vocabulary import RequestKind


class Builder(Protocol):
    def __call__(self, request: SignOffRequest, *, at: datetime) -> Built: ...


_BUILDERS: dict[str, Builder] = {
    RequestKind.GRANT: build_access_dossier,
    RequestKind.RENEWAL: build_access_dossier,
    RequestKind.REINSTATEMENT: build_access_dossier,
    RequestKind.RECERTIFICATION: build_access_dossier,
    RequestKind.WAIVER: build_access_dossier,
    RequestKind.ACTIVATION: build_activation_dossier,
    RequestKind.BINDING: build_binding_dossier,
    RequestKind.RULING: build_ruling_dossier,
    RequestKind.METRIC: build_metric_dossier,
    RequestKind.BENCHMARK: build_benchmark_dossier,
    RequestKind.SOURCE: build_source_dossier,
    RequestKind.BREAK_GLASS_REVIEW: build_review_dossier,
}


def build_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a request from what stands now. Reads alone; the same state gives the same bytes."""
    return _BUILDERS[request.kind](request, at=at)
