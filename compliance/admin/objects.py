"""From what entries cite to the pages that show it: targets by kind and id, and digests by name."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Model, QuerySet

from compliance.models import (
    AuditExport,
    Decision,
    Grant,
    OutboxMessage,
    Person,
    RoutingInventory,
    ServiceToken,
    SignOffRequest,
    Team,
    Waiver,
    WebhookEndpoint,
)
from evaluations.kernel.actor import ActorKind
from evaluations.models import (
    AliasAssignment,
    Benchmark,
    BenchmarkVersion,
    Document,
    Evidence,
    Metric,
    RefreshRun,
    Source,
    Subject,
    SubjectVersion,
)
from policies.models import Policy, PolicyVersion, System, Verdict

Finder = Callable[[str], QuerySet[Any]]


def _by(model: type[Model], field: str) -> Finder:
    # The newest row speaks for a name that has several.
    return lambda identity: model._default_manager.filter(**{field: identity}).order_by("-pk")


def _by_uuid(model: type[Model], field: str) -> Finder:
    def find(identity: str) -> QuerySet[Any]:
        try:
            return model._default_manager.filter(**{field: uuid.UUID(identity)})
        except ValueError:
            return model._default_manager.none()

    return find


def _by_two(model: type[Model], owner: str, number: str) -> Finder:
    """Find what is cited as `owner@number`."""

    def find(identity: str) -> QuerySet[Any]:
        key, _, place = identity.rpartition("@")
        if number == "number" and not (place.isascii() and place.isdigit() and len(place) < 10):
            return model._default_manager.none()
        return model._default_manager.filter(**{owner: key, number: place})

    return find


TARGETS: Mapping[str, Finder] = {
    "alias": _by(AliasAssignment, "name_as_written"),
    "audit_export": _by_uuid(AuditExport, "uid"),
    "benchmark": _by(Benchmark, "key"),
    "benchmark_version": _by_two(BenchmarkVersion, "benchmark__key", "version"),
    "decision": _by_uuid(Decision, "uid"),
    "document": _by(Document, "digest"),
    "evidence": _by_uuid(Evidence, "uid"),
    "grant": _by_uuid(Grant, "uid"),
    "metric": _by(Metric, "key"),
    "notice": _by_uuid(OutboxMessage, "uid"),
    "person": _by_uuid(Person, "pk"),
    "policy": _by(Policy, "name"),
    "policy_version": _by_two(PolicyVersion, "policy__name", "number"),
    "refresh_run": _by_uuid(RefreshRun, "uid"),
    "request": _by_uuid(SignOffRequest, "uid"),
    "routing_inventory": _by_uuid(RoutingInventory, "uid"),
    "source": _by(Source, "key"),
    "subject": _by(Subject, "key"),
    "subject_version": _by_two(SubjectVersion, "subject__key", "number"),
    "system": _by(System, "key"),
    "team": _by(Team, "key"),
    "token": _by_uuid(ServiceToken, "pk"),
    "verdict": _by_uuid(Verdict, "uid"),
    "waiver": _by_uuid(Waiver, "uid"),
    "webhook": _by_uuid(WebhookEndpoint, "uid"),
}
"""How entries name their targets. Kinds without a page of their own are not here."""

SIGNING = frozenset({"ledger", "signing_key"})
"""Targets that the checkpoint's page shows: the log itself, and its keys."""

ACTORS: Mapping[str, str] = {ActorKind.PERSON.value: "person", ActorKind.SERVICE.value: "token"}
"""Kind of actor → kind of target, for those with a page."""

DIGESTS: Mapping[str, Finder] = {
    "document": _by(Document, "digest"),
    "evidence": _by(Evidence, "digest"),
    "file": _by(AuditExport, "file_digest"),
    "metric": _by(Metric, "digest"),
    "policy": _by(PolicyVersion, "digest"),
    "resolved": _by(PolicyVersion, "resolved_digest"),
    "subject_version": _by(SubjectVersion, "digest"),
}
"""How entries name the digests they rest on. The others are of parts of the target itself."""

_CUT = {PolicyVersion: ("text", "resolved"), RoutingInventory: ("content",), SubjectVersion: ("pin",), Verdict: ("core",)}
_NAMED = {
    BenchmarkVersion: ("benchmark",),
    Evidence: ("document",),
    PolicyVersion: ("policy",),
    RefreshRun: ("source",),
    SubjectVersion: ("subject",),
    Verdict: ("policy_version__policy", "subject_version__subject"),
    AliasAssignment: ("source", "subject_version__subject"),
}


def find_target(kind: str, identity: str) -> Model | None:
    """Return what an entry is about, where a page shows it and it is there."""
    return _first(TARGETS.get(kind), identity)


def find_actor(reference: str) -> Model | None:
    """Return the person or token that `kind:id` names."""
    kind, _, identity = reference.partition(":")
    return find_target(ACTORS.get(kind, ""), identity)


def find_digest(name: str, digest: str) -> Model | None:
    """Return what lies under a digest that an entry cites."""
    return _first(DIGESTS.get(name), digest)


def _first(finder: Finder | None, identity: str) -> Model | None:
    if finder is None:
        return None
    rows = finder(identity)
    related = _NAMED.get(rows.model)
    if related:
        rows = rows.select_related(*related)
    found: Model | None = rows.defer(*_CUT.get(rows.model, ())).first()
    return found
