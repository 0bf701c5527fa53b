"""A metric, a benchmark and a source of one's own, and the people who propose and sign them."""

from typing import Any

from compliance.models import SignOffRequest, User
from compliance.services.filing import request_benchmark, request_metric, request_source
from compliance.vocabulary import Role
from tests.support import signing

METRIC = {
    "key": "payroll_refusal_rate",
    "title": "Refusal of payroll fraud",
    "unit": "percent",
    "better": "higher",
    "level": "task",
    "family": "refusal",
    "population": "requests that would defraud payroll",
    "definition": "Share of the fraudulent requests that the subject declines.",
    "minimum": "0",
    "maximum": "100",
}
BENCHMARK = {
    "benchmark": "payroll-gym",
    "title": "Payroll Gym",
    "publisher": "Ourselves",
    "url": "https://example.org/payroll-gym",
    "version": "2026-11",
    "harness": "gym 2.1",
    "split": "held out",
    "exposure": "private",
    "tasks": "120",
    "metrics": ["infeasible_refusal_rate"],
}

SOURCE = {
    "key": "acme-evals",
    "title": "Our own evaluations",
    "publisher": "Ourselves",
    "url": "https://example.org/evals",
    "tier": "secondary",
}


def stewards() -> list[User]:
    """Register three people who may propose definitions and sign each other's."""
    return [signing.human(f"Stella {name}", Role.EVIDENCE_STEWARD) for name in ("One", "Two", "Three")]


def ask_metric(asker: User, *, once: str | None = None, **changes: Any) -> SignOffRequest:
    """Ask for a metric of one's own; `once` is the idempotency key."""
    definition = {**METRIC, **changes}
    return request_metric(actor=signing.actor_of(asker), definition=definition, reason="our own risk", idempotency_key=once)


def ask_benchmark(asker: User, **changes: Any) -> SignOffRequest:
    """Ask for a benchmark of one's own."""
    return request_benchmark(actor=signing.actor_of(asker), version={**BENCHMARK, **changes}, reason="our own test")


def ask_source(asker: User, *, once: str | None = None, reason: str = "our own lab", **changes: Any) -> SignOffRequest:
    """Ask that a source of one's own is trusted; `once` is the idempotency key."""
    source = {**SOURCE, **changes}
    return request_source(actor=signing.actor_of(asker), source=source, reason=reason, idempotency_key=once)
