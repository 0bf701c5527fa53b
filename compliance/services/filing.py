"""Filing a request, one function a kind: each reads what its kind asks for, and hands it to the one road that all take."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from compliance.models import Grant, SignOffRequest
from compliance.selectors.proposals import (
    NOTHING_MORE,
    AccessProposal,
    AskedWaiver,
    BenchmarkProposal,
    BindingProposal,
    MetricProposal,
    RulingProposal,
    SourceProposal,
)
from compliance.selectors.running import running_version
from compliance.services.idempotency import apply_claim_request, apply_keep_request
from compliance.services.requests import MAX_TEXT, Asked, apply_file_request
from compliance.vocabulary import GrantKind, GrantStatus, RequestKind
from evaluations.kernel.actor import Actor
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service
from evaluations.models import Evidence, SubjectVersion
from evaluations.services.benchmarks import metric_digest
from evaluations.services.definitions import read_benchmark_version, read_metric, read_source
from evaluations.vocabulary import RulingKind
from policies.models import Policy, PolicyVersion, System
from policies.services.bindings import check_binding

MAX_SYSTEMS = 50
MAX_ACTIONS = 20
MAX_WAIVERS = 50


class GrantHasEnded(DomainError):
    """The grant is not in a state in which this can be asked for it."""

    code = "grant_not_live"
    kind = ErrorKind.CONFLICT


class OlderVersion(DomainError):
    """Another version of the subject runs now: access is asked for that one."""

    code = "subject_changed"
    kind = ErrorKind.CONFLICT


@service(refused="request.refused")
def request_grant(
    *,
    actor: Actor,
    subject_version: SubjectVersion,
    systems: Sequence[System],
    actions: Sequence[str],
    ends_at: datetime,
    reason: str,
    starts_at: datetime | None = None,
    waivers: Sequence[AskedWaiver] = (),
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask for a grant: this subject version, these actions, exactly these systems, until an end. Errors are those of filing."""
    proposal = AccessProposal(tuple(actions), starts_at, ends_at, tuple(waivers))
    asked = Asked(RequestKind.GRANT, proposal.to_bytes(), tuple(systems), subject_version=subject_version)
    filing = _Filing(actor, asked, reason, idempotency_key, request_id)
    if filing.known is not None:
        return filing.known
    refuse_older(subject_version)
    _check_access(proposal, systems, filing.at)
    return filing.file()


@service(refused="request.refused")
def request_renewal(
    *,
    actor: Actor,
    grant: Grant,
    ends_at: datetime,
    reason: str,
    waivers: Sequence[AskedWaiver] = (),
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask for a successor of a grant, on a fresh dossier that shows the difference; it takes over without a gap once it is signed.

    A grant that was suspended, or has run out, is renewed like one that is active. Raises `GrantHasEnded` for a revoked one.
    """
    proposal = AccessProposal(tuple(grant.actions), None, ends_at, tuple(waivers))
    filing = _Filing(actor, _about(RequestKind.RENEWAL, grant, proposal), reason, idempotency_key, request_id)
    if filing.known is not None:
        return filing.known
    if grant.kind != GrantKind.STANDING or grant.status == GrantStatus.REVOKED:
        raise GrantHasEnded("a grant that was revoked, or opened as break-glass, is not renewed: ask for a new one")
    refuse_older(grant.subject_version)
    _check_access(proposal, filing.asked.systems, filing.at)
    return filing.file()


@service(refused="request.refused")
def request_reinstatement(
    *, actor: Actor, grant: Grant, reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a suspended grant comes back, on a fresh dossier, until the end it always had."""
    proposal = AccessProposal(tuple(grant.actions), None, grant.ends_at)
    filing = _Filing(actor, _about(RequestKind.REINSTATEMENT, grant, proposal), reason, idempotency_key, request_id)
    if filing.known is not None:
        return filing.known
    if grant.kind != GrantKind.STANDING or grant.status != GrantStatus.SUSPENDED:
        raise GrantHasEnded("only a suspended grant comes back")
    refuse_older(grant.subject_version)
    _check_access(proposal, filing.asked.systems, filing.at)
    return filing.file()


@service(refused="request.refused")
def request_recertification(
    *, actor: Actor, grant: Grant, reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a grant is certified anew, on a fresh dossier; a missed date has taken it out of use until that is signed."""
    proposal = AccessProposal(tuple(grant.actions), None, grant.ends_at)
    filing = _Filing(actor, _about(RequestKind.RECERTIFICATION, grant, proposal), reason, idempotency_key, request_id)
    if filing.known is not None:
        return filing.known
    if grant.kind != GrantKind.STANDING or grant.status != GrantStatus.ACTIVE:
        raise GrantHasEnded("only an active grant is certified anew; a suspended one asks to come back")
    refuse_older(grant.subject_version)
    _check_access(proposal, filing.asked.systems, filing.at)
    return filing.file()


@service(refused="request.refused")
def request_waiver(
    *,
    actor: Actor,
    grant: Grant,
    waivers: Sequence[AskedWaiver],
    ends_at: datetime,
    reason: str,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask to accept failing soft rules for a grant's subject on its systems, until an end no later than the grant's."""
    proposal = AccessProposal(tuple(grant.actions), None, ends_at, tuple(waivers))
    filing = _Filing(actor, _about(RequestKind.WAIVER, grant, proposal), reason, idempotency_key, request_id)
    if filing.known is not None:
        return filing.known
    if grant.kind != GrantKind.STANDING or grant.status not in (GrantStatus.ACTIVE, GrantStatus.SUSPENDED):
        raise GrantHasEnded("only for a standing grant that has not ended are rules waived")
    refuse_older(grant.subject_version)
    if not waivers:
        raise InputRefused([Problem("name the rules to waive", field="waivers")])
    if ends_at > grant.ends_at:
        raise InputRefused([Problem("a waiver ends no later than its grant", field="ends_at")])
    _check_access(proposal, filing.asked.systems, filing.at)
    return filing.file()


@service(refused="request.refused")
def request_activation(
    *, actor: Actor, version: PolicyVersion, reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a policy version comes into force."""
    asked = Asked(RequestKind.ACTIVATION, NOTHING_MORE, policy=version.policy, policy_version=version)
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


@service(refused="request.refused")
def request_binding(
    *,
    actor: Actor,
    policy: Policy,
    params: Mapping[str, Decimal],
    reason: str,
    system: System | None = None,
    domain: str = "",
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask that a policy's parameters are tightened for a system or a domain. Raises `LooserParameter` too."""
    numbers = check_binding(policy=policy, params=params, system=system, domain=domain)
    proposal = BindingProposal(system.key if system else "", domain, numbers)
    asked = Asked(RequestKind.BINDING, proposal.to_bytes(), systems=[system] if system else [], policy=policy)
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


@service(refused="request.refused")
def request_ruling(
    *,
    actor: Actor,
    evidence: Evidence,
    kind: str,
    reason: str,
    link: str = "",
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Ask for a ruling that one person may not give alone: a dispute upheld or dismissed, or a retraction."""
    signed = [word for word in RulingKind.values if word != RulingKind.DISPUTED]
    if kind not in signed:
        raise InputRefused(
            [Problem(f"`{kind[:40]}` is no ruling that is signed", field="kind", hint=f"one of {', '.join(signed)}")]
        )
    if len(link) > 1_000:
        raise InputRefused([Problem("a link has at most 1000 characters", field="link")])
    asked = Asked(RequestKind.RULING, RulingProposal(kind, link).to_bytes(), evidence=evidence)
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


@service(refused="request.refused")
def request_metric(
    *, actor: Actor, definition: Mapping[str, Any], reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a metric is registered, or a known one worded anew. `definition` is what `read_metric` reads; it counts once signed."""
    entry = read_metric(definition)
    words = {**entry.definition._asdict(), "title": entry.title, "population": entry.population, "definition": entry.text}
    proposal = MetricProposal(**words, digest=metric_digest(words))
    asked = Asked(RequestKind.METRIC, proposal.to_bytes())
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


@service(refused="request.refused")
def request_benchmark(
    *, actor: Actor, version: Mapping[str, Any], reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a benchmark's version is registered. `version` is what `read_benchmark_version` reads; it counts once signed."""
    entry = read_benchmark_version(version)
    told = {**entry._asdict(), **entry.versions[0]._asdict(), "benchmark": entry.key}
    proposal = BenchmarkProposal(**{name: told[name] for name in BenchmarkProposal._fields})
    asked = Asked(RequestKind.BENCHMARK, proposal.to_bytes())
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


@service(refused="request.refused")
def request_source(
    *, actor: Actor, source: Mapping[str, Any], reason: str, idempotency_key: str | None = None, request_id: str = ""
) -> SignOffRequest:
    """Ask that a source is trusted as far as a tier says, and registered if it is new. `source` is what `read_source` reads."""
    entry = read_source(source, reason=reason)
    told = entry._asdict()
    proposal = SourceProposal(**{name: told[name] for name in SourceProposal._fields})
    asked = Asked(RequestKind.SOURCE, proposal.to_bytes())
    return _Filing(actor, asked, reason, idempotency_key, request_id).known_or_filed()


class _Filing:
    """One call that files something. `known` is the request that the same question made before, under the same idempotency key.

    Looked for before anything is judged: a retry gets what the first call got, however the world has moved since.
    """

    def __init__(self, actor: Actor, asked: Asked, reason: str, key: str | None, request_id: str) -> None:
        self.actor, self.asked, self.reason, self.key, self.request_id = actor, asked, reason, key, request_id
        self.at = now()
        self._what = [str(asked.kind), asked.proposal.decode(), reason, *_names(asked)]
        uid = apply_claim_request(actor=actor, key=key, what=self._what)
        self.known = None if uid is None else SignOffRequest.objects.get(uid=uid)

    def file(self) -> SignOffRequest:
        request = apply_file_request(
            actor=self.actor, asked=self.asked, reason=self.reason, at=self.at, request_id=self.request_id
        )
        apply_keep_request(actor=self.actor, key=self.key, what=self._what, uid=request.uid)
        return request

    def known_or_filed(self) -> SignOffRequest:
        return self.file() if self.known is None else self.known


def _names(asked: Asked) -> list[str]:
    objects = (asked.subject_version, asked.policy, asked.policy_version, asked.evidence, asked.grant, *asked.systems)
    return ["" if one is None else f"{type(one).__name__} {one.pk}" for one in objects]


def _about(kind: RequestKind, grant: Grant, proposal: AccessProposal) -> Asked:
    systems = System.objects.filter(grant_systems__grant=grant).order_by("key")
    return Asked(kind, proposal.to_bytes(), tuple(systems), subject_version=grant.subject_version, grant=grant)


def _check_access(proposal: AccessProposal, systems: Sequence[System], at: datetime) -> None:
    problems = [*access_problems(systems, proposal.actions), *_waiver_problems(proposal.waivers)]
    if proposal.starts_at is not None and proposal.starts_at < at:
        problems.append(Problem("the start lies in the past", field="starts_at", hint="leave it out to begin once it is signed"))
    if proposal.ends_at <= (proposal.starts_at or at):
        problems.append(Problem("the end comes before the beginning", field="ends_at"))
    if problems:
        raise InputRefused(problems)


def _waiver_problems(waivers: Sequence[AskedWaiver]) -> list[Problem]:
    problems = []
    if len(waivers) > MAX_WAIVERS or len({item[:3] for item in waivers}) != len(waivers):
        problems.append(Problem(f"name at most {MAX_WAIVERS} rules, each once for a system", field="waivers"))
    if not all(item.reason.strip() and len(item.reason) <= MAX_TEXT for item in waivers):
        hint = f"in 1 to {MAX_TEXT} characters"
        problems.append(Problem("say of each rule why its failing can be accepted", field="waivers", hint=hint))
    return problems


def access_problems(systems: Sequence[System], actions: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the systems and actions that access is asked for."""
    problems = []
    if not systems or len(systems) > MAX_SYSTEMS or len({system.pk for system in systems}) != len(systems):
        problems.append(
            Problem(f"name 1 to {MAX_SYSTEMS} different systems", field="systems", hint="an empty list grants nothing")
        )
    if not actions or len(actions) > MAX_ACTIONS or len(set(actions)) != len(actions) or not all(map(_is_action, actions)):
        problems.append(Problem("name the actions, such as `write`, each once", field="actions"))
    return problems


def refuse_older(version: SubjectVersion) -> None:
    """Raise `OlderVersion` where another version of the subject runs now."""
    running = running_version(version.subject)
    if running is not None and running.pk != version.pk:
        raise OlderVersion(f"version {running.number} of `{version.subject.key}` runs now: ask for that one")


def _is_action(word: str) -> bool:
    return word.isascii() and word.replace("_", "").isalnum() and word == word.lower() and len(word) <= 40
