"""What a request does once its quorum is met: the seats are taken, and the one effect of its kind happens, in the same transaction."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from compliance.models import Dossier, QuorumFactor, Seat, SignOffRequest, Waiver
from compliance.selectors.dossiers.base import Built
from compliance.selectors.proposals import (
    AccessProposal,
    BenchmarkProposal,
    BindingProposal,
    MetricProposal,
    RulingProposal,
    SourceProposal,
)
from compliance.selectors.signers import QuorumState
from compliance.services.grants import apply_carry_on, apply_make_grant
from compliance.services.requests import RequestClosed, apply_close_request
from compliance.services.waivers import apply_waive
from compliance.vocabulary import GrantMove, RequestKind, RequestStatus
from evaluations.kernel.actor import Actor
from evaluations.services.benchmarks import (
    apply_register_benchmark,
    apply_register_benchmark_version,
    apply_register_metric,
)
from evaluations.services.evidence import apply_rule_on_evidence
from evaluations.services.sources import apply_assign_trust, apply_register_source
from policies.models import Policy, System
from policies.services.activations import apply_activate_policy_version
from policies.services.bindings import apply_bind


class Completed(NamedTuple):
    """A request whose quorum is met, with all that its effect reads."""

    actor: Actor
    request: SignOffRequest
    dossier: Dossier
    built: Built
    at: datetime
    request_id: str


def apply_complete(
    *,
    actor: Actor,
    request: SignOffRequest,
    dossier: Dossier,
    built: Built,
    state: QuorumState,
    at: datetime,
    request_id: str = "",
) -> None:
    """Seat the signatures, do what was asked, and close the request, inside the transaction of the last signature."""
    factors = {factor.factor: factor for factor in QuorumFactor.objects.filter(dossier=dossier)}
    for seat in state.assessment.seats:
        person = UUID(seat.person)
        Seat(
            dossier=dossier,
            factor=factors[seat.factor],
            number=seat.number,
            sign_off=state.last_words[person].sign_off,
            person_id=person,
        ).save()
    _EFFECTS[RequestKind(request.kind)](Completed(actor, request, dossier, built, at, request_id))
    seated = ", ".join(f"{seat.factor}: {seat.person}" for seat in state.assessment.seats)
    apply_close_request(
        actor=actor, request=request, status=RequestStatus.COMPLETED, because=f"signed ({seated})", at=at, request_id=request_id
    )


def _make_grant(done: Completed) -> None:
    grant = apply_make_grant(
        actor=done.actor, request=done.request, dossier=done.dossier, terms=done.built.value["terms"], at=done.at
    )
    _waive(done, ends_at=grant.ends_at)


def _reinstate(done: Completed) -> None:
    _carry_on(done, GrantMove.REINSTATED)


def _recertify(done: Completed) -> None:
    _carry_on(done, GrantMove.RECERTIFIED)


def _carry_on(done: Completed, move: GrantMove) -> None:
    terms = done.built.value["terms"]
    apply_carry_on(actor=done.actor, grant=_grant_of(done), move=move, dossier=done.dossier, terms=terms, at=done.at)


def _waive_alone(done: Completed) -> None:
    _waive(done, ends_at=AccessProposal.read(bytes(done.request.proposal)).ends_at)


def _waive(done: Completed, *, ends_at: datetime) -> list[Waiver]:
    return [
        apply_waive(actor=done.actor, request=done.request, dossier=done.dossier, asked=asked, ends_at=ends_at, at=done.at)
        for asked in done.built.value["waivers"]
    ]


def _activate(done: Completed) -> None:
    version = done.request.policy_version
    if version is None:
        raise RequestClosed("the request names no policy version")
    apply_activate_policy_version(
        actor=done.actor, version=version, sign_off_request=done.request.uid, request_id=done.request_id
    )


def _bind(done: Completed) -> None:
    proposal = BindingProposal.read(bytes(done.request.proposal))
    apply_bind(
        actor=done.actor,
        policy=Policy.objects.get(sign_off_requests=done.request),
        params=proposal.params,
        sign_off_request=done.request.uid,
        system=System.objects.get(key=proposal.system) if proposal.system else None,
        domain=proposal.domain,
        request_id=done.request_id,
    )


def _rule(done: Completed) -> None:
    proposal = RulingProposal.read(bytes(done.request.proposal))
    evidence = done.request.evidence
    if evidence is None:
        raise RequestClosed("the request names no evidence")
    apply_rule_on_evidence(
        actor=done.actor,
        evidence=evidence,
        kind=proposal.kind,
        reason=done.request.reason,
        link=proposal.link,
        sign_off_request=done.request.uid,
    )


def _define_metric(done: Completed) -> None:
    proposal = MetricProposal.read(bytes(done.request.proposal))
    apply_register_metric(actor=done.actor, definition=proposal._asdict(), sign_off_request=done.request.uid)


def _define_benchmark(done: Completed) -> None:
    told = BenchmarkProposal.read(bytes(done.request.proposal))._asdict()
    about = {name: told.pop(name) for name in ("title", "publisher", "url", "description")}
    benchmark = apply_register_benchmark(actor=done.actor, key=told.pop("benchmark"), **about)
    apply_register_benchmark_version(actor=done.actor, benchmark=benchmark, sign_off_request=done.request.uid, **told)


def _trust_source(done: Completed) -> None:
    told = SourceProposal.read(bytes(done.request.proposal))._asdict()
    tier = told.pop("tier")
    source = apply_register_source(actor=done.actor, **told)
    apply_assign_trust(actor=done.actor, source=source, tier=tier, reason=done.request.reason, sign_off_request=done.request.uid)


def _review(done: Completed) -> None:
    """A review changes nothing: that it took place, and what was said, is the effect."""


def _grant_of(done: Completed) -> Any:
    if done.request.grant is None:
        raise RequestClosed("the request names no grant")
    return done.request.grant


_EFFECTS: dict[RequestKind, Callable[[Completed], None]] = {
    RequestKind.GRANT: _make_grant,
    RequestKind.RENEWAL: _make_grant,
    RequestKind.REINSTATEMENT: _reinstate,
    RequestKind.RECERTIFICATION: _recertify,
    RequestKind.WAIVER: _waive_alone,
    RequestKind.ACTIVATION: _activate,
    RequestKind.BINDING: _bind,
    RequestKind.RULING: _rule,
    RequestKind.METRIC: _define_metric,
    RequestKind.BENCHMARK: _define_benchmark,
    RequestKind.SOURCE: _trust_source,
    RequestKind.BREAK_GLASS_REVIEW: _review,
}
