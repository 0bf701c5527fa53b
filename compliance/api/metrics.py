"""`GET /metrics`: how many answers, how fast and why not, and how long what works behind the gate has been silent (Prometheus text).

What is counted is counted by each process for itself. `manage.py serve` names a directory in PROMETHEUS_MULTIPROC_DIR, in which all
processes of one web server keep their counts, and any of them answers for all; elsewhere a process answers for itself alone.
"""

import os
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, cast

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from rest_framework.exceptions import AuthenticationFailed

from compliance.api.authentication import CHALLENGE, TokenAuthentication
from compliance.api.errors import problem_response
from compliance.api.requests import stamp
from compliance.deciding.codes import Code
from compliance.selectors.metrics import read_gauges
from compliance.services.recording import Decided
from compliance.vocabulary import Scope
from evaluations.kernel.clock import now

SHARED = "PROMETHEUS_MULTIPROC_DIR"
ALLOW, DENY, MIXED, NO_CODE = "allow", "deny", "mixed", "none"
BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

# When a series began is no one's question here, and would double the answer.
disable_created_metrics()  # type: ignore[no-untyped-call]
COUNTED = CollectorRegistry()
SECONDS = Histogram(
    "writegate_decision_seconds",
    "Seconds from a well-formed question to its recorded answer, by answer; a batch counts once, mixed where its answers differ.",
    ["answer"],
    buckets=BUCKETS,
    registry=COUNTED,
)
DECISIONS = Counter(
    "writegate_decisions", "Answers, by answer and by the first reason of a denial.", ["answer", "code"], registry=COUNTED
)
UNLOGGED = Counter(
    "writegate_unlogged_allows", "Allows that left without an entry in the log. Anything but 0 is a fault.", registry=COUNTED
)

# A look-up by labels costs more than counting: what the two usual answers need is looked up once.
_seconds = {word: SECONDS.labels(word) for word in (ALLOW, DENY, MIXED)}
_allows = DECISIONS.labels(ALLOW, NO_CODE)
_denials = {code: DECISIONS.labels(DENY, code.value) for code in Code}


def observe_decisions(decided: Sequence[Decided], seconds: float) -> None:
    """Count the answers to one request, and the seconds that it took. Costs a few microseconds."""
    if len(decided) == 1:
        _count(decided[0], 1)
        _seconds[ALLOW if decided[0].judgement.allowed else DENY].observe(seconds)
        return
    alike: Tally[tuple[bool, bool, Code | None]] = Tally()
    shown: dict[tuple[bool, bool, Code | None], Decided] = {}
    for one in decided:
        kind = (one.judgement.allowed, one.entry is None, one.judgement.reasons[0].code if one.judgement.reasons else None)
        alike[kind] += 1
        shown[kind] = one
    for kind, number in alike.items():
        _count(shown[kind], number)
    answers = {allowed for allowed, _, _ in alike}
    if answers:
        _seconds[MIXED if len(answers) > 1 else ALLOW if True in answers else DENY].observe(seconds)


def observe_unavailable(questions: int) -> None:
    """Count questions that were denied because there was no database to ask."""
    _denials[Code.CANNOT_JUDGE].inc(questions)


def _count(one: Decided, number: int) -> None:
    if not one.judgement.allowed:
        _denials[one.judgement.reasons[0].code].inc(number)
        return
    _allows.inc(number)
    if one.entry is None:
        UNLOGGED.inc(number)


class _Standing(Collector):
    """How things stand while they are asked for; without a database that alone is said."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            found = read_gauges(at=now())
        except Error:
            found = None
        yield _gauge("writegate_database_up", "1 where the database answers.", 0 if found is None else 1)
        if found is None:
            return
        beats = GaugeMetricFamily(
            "writegate_beat_age_seconds", "Seconds since a background service was heard of.", labels=["name"]
        )
        for name, age in sorted(found.beat_ages.items()):
            beats.add_metric([name], age)
        yield beats
        yield _gauge(
            "writegate_ledger_pending_entries", "Entries that wait for the sealer, counted to 10,001.", found.pending_entries
        )
        yield _gauge(
            "writegate_ledger_oldest_pending_seconds", "How long the oldest of them has waited.", found.oldest_pending_age
        )
        if found.checkpoint_age is not None:
            yield _gauge(
                "writegate_checkpoint_age_seconds", "Seconds since the sealer signed the log last.", found.checkpoint_age
            )
        outbox = GaugeMetricFamily("writegate_outbox_messages", "Notices, by status, counted to 10,001.", labels=["status"])
        for status, number in found.messages.items():
            outbox.add_metric([status], number)
        yield outbox
        yield _gauge(
            "writegate_verdict_mismatches",
            "Verdicts that did not match when they were judged once more, counted to 10,001. Anything but 0 is an incident.",
            found.mismatches,
        )
        yield _gauge(
            "writegate_policies_unreadable",
            "Texts of policies in force that could not be read, counted to 10,001. Anything but 0 is an incident.",
            found.unreadable,
        )


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=value)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer a scrape: to a token with the scope `read`, or to everybody where WRITEGATE_METRICS_OPEN says so."""
    refusal = None if settings.METRICS_OPEN else _refusal(request)
    if refusal is not None:
        return refusal
    shown = CollectorRegistry()
    if os.environ.get(SHARED):
        MultiProcessCollector(shown)  # type: ignore[no-untyped-call]
        body = generate_latest(shown)
    else:
        body = generate_latest(COUNTED)
    standing = CollectorRegistry()
    standing.register(_Standing())
    response = HttpResponse(body + generate_latest(standing), content_type=CONTENT_TYPE_PLAIN_0_0_4)
    stamp(request, response)
    return response


def _refusal(request: HttpRequest) -> HttpResponse | None:
    try:
        found = TokenAuthentication().authenticate(cast(Any, request))
    except AuthenticationFailed as error:
        return _challenge(request, str(error.detail))
    except Error:
        return problem_response(
            request, HTTPStatus.SERVICE_UNAVAILABLE, "database_unavailable", "the database does not answer; try again"
        )
    if found is None:
        return _challenge(request, "send a token with the scope `read`")
    if not found[1].holds(Scope.READ):
        return problem_response(request, HTTPStatus.FORBIDDEN, "scope_missing", f"the token lacks the scope `{Scope.READ}`")
    return None


def _challenge(request: HttpRequest, detail: str) -> HttpResponse:
    response = problem_response(request, HTTPStatus.UNAUTHORIZED, "not_authenticated", detail)
    response.headers["WWW-Authenticate"] = CHALLENGE
    return response
