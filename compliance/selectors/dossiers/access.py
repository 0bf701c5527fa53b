"""The dossier of write access: may this subject do this to these systems until then? For grants and all that keeps one alive."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from compliance.models import Grant, SignOffRequest, Waiver
from compliance.selectors.authors import authors_of, behind_evidence
from compliance.selectors.dossiers.base import Built, Obstacle, close_dossier, excluded_people, read_requester
from compliance.selectors.dossiers.stops import stops_over, with_stops
from compliance.selectors.proposals import AccessProposal, AskedWaiver, shown_instant
from compliance.selectors.waivers import asks_for_a_floor, covering_waiver, live_waivers
from compliance.vocabulary import GrantStatus, RequestKind
from evaluations.models import Evidence, SubjectVersion, SubjectVersionMember
from policies.language.compiled import Rule
from policies.language.quorum import unite
from policies.models import FactsDocument, Standing, System, Verdict
from policies.selectors.applicable import (
    Applied,
    InForce,
    StandingKey,
    applicable_policies,
    ask_facts,
    read_in_force,
    standings_for,
)
from policies.selectors.blast_radius import blast_radius, joined
from policies.selectors.policies import Unreadable
from policies.vocabulary import Outcome, Result

LIVE = (GrantStatus.ACTIVE, GrantStatus.SUSPENDED)
_ASKED_OF: Mapping[str, tuple[GrantStatus, ...]] = {
    RequestKind.RENEWAL: (*LIVE, GrantStatus.EXPIRED),
    RequestKind.REINSTATEMENT: (GrantStatus.SUSPENDED,),
    RequestKind.RECERTIFICATION: (GrantStatus.ACTIVE,),
    RequestKind.WAIVER: LIVE,
}
"""How a grant stands of which this is asked: not only when it is filed, but up to the last signature."""
SHOWN_EVIDENCE = 50
"""So many of the deciding pieces are listed; all of them stand under the facts digest of each verdict."""


class Judged(NamedTuple):
    """A policy that applies at a system, with what it says about the subject version now: nothing, where nothing was judged."""

    applied: Applied
    standing: Standing | None
    core: Mapping[str, Any] | None
    waived: Mapping[str, Waiver]
    asked: Mapping[str, AskedWaiver]

    @property
    def verdict(self) -> Verdict | None:
        return self.standing.verdict if self.standing else None


def build_access_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a request for access, or of one that keeps a grant alive."""
    proposal = AccessProposal.read(bytes(request.proposal))
    version, stops = with_stops(SubjectVersion.objects.select_related("subject"), request)
    systems = tuple(System.objects.filter(sign_off_requests__request=request).order_by("key"))
    requester, gone = read_requester(request, at=at)
    in_force = read_in_force()
    judged = judge_access(
        version, systems, proposal.actions, requester=requester, asked=proposal.waivers, in_force=in_force, at=at
    )
    quorum = unite([item.applied.compiled.sign_offs for item in judged if item.applied.compiled.sign_offs is not None])
    uids = {uid for item in judged if item.core for rule in item.core["rules"] for uid in deciding_of(rule)}
    submitters, settlers = behind_evidence(uids, version)
    authors = authors_of({item.applied.version for item in judged})
    excluded = excluded_people(request, quorum, submitters=submitters, settlers=settlers, authors=authors)
    documents = [item.standing.verdict.facts_id for item in judged if item.standing]
    facts = dict(FactsDocument.objects.filter(pk__in=documents).values_list("pk", "digest"))
    previous = request.grant
    body = {
        "question": {
            **subject_value(version),
            "actions": list(proposal.actions),
            "systems": [system_value(system) for system in systems],
            "starts_at": shown_instant(proposal.starts_at),
            "ends_at": shown_instant(proposal.ends_at),
        },
        "policies": [_policy_value(item, facts) for item in judged],
        "terms": terms_value(judged),
        "evidence": _evidence_values(uids),
        "evidence_count": len(uids),
        "blast_radius": joined(blast_radius(system, proposal.actions) for system in systems).as_value(),
        "unknown": _unknown(judged),
        "waivers": [_asked_value(item, item.core, waiver) for item in judged if item.core for waiver in item.asked.values()],
        "previous": None
        if previous is None or previous.dossier is None
        else {"grant": str(previous.uid), "dossier": previous.dossier.digest},
        # Taking access away voids what was signed before it: nobody's yes is to a grant that she did not know as suspended, or stopped.
        "suspended": previous.cause if previous is not None and previous.status == GrantStatus.SUSPENDED else None,
        "stops": stops_over(stops, version, systems, in_force),
    }
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded,
        asks=[ask_facts(version.subject, proposal.actions[0], system, requester, at) for system in systems],
        systems=systems,
        obstacles=[
            *gone,
            *obstacles_of(judged, systems, proposal.actions, version, unreadable=in_force.unreadable, at=at),
            *_obstacles_of_waivers(proposal, judged),
            *_obstacles_of_time(proposal, judged, at),
            *_obstacles_of_grant(request, previous),
        ],
        risk_accepted=any(item.asked for item in judged),
    )


def judge_access(
    version: SubjectVersion,
    systems: Sequence[System],
    actions: Sequence[str],
    *,
    requester: Mapping[str, Any] | None,
    asked: Sequence[AskedWaiver] = (),
    in_force: InForce | None = None,
    at: datetime,
) -> list[Judged]:
    """Return every policy that applies to an access, with its standing verdict and the waivers that cover or would cover it."""
    applied = applicable_policies(
        subject=version.subject, actions=actions, systems=systems, requester=requester, at=at, in_force=in_force
    )
    standings = standings_for(applied, [version.pk])
    held = live_waivers([version.pk], at=at)
    return [judge_applied(item, version.pk, standings=standings, waivers=held, asked=asked) for item in applied]


def judge_applied(
    item: Applied,
    subject_version_id: int,
    *,
    standings: Mapping[StandingKey, Standing],
    waivers: Sequence[Waiver],
    asked: Sequence[AskedWaiver] = (),
) -> Judged:
    """Return one policy that applies with what stands under it, out of standings and live waivers that were read before."""
    standing = standings.get((item.version.pk, item.params_digest, item.domain, subject_version_id))
    if standing is None:
        return Judged(item, None, None, {}, {})
    core = json.loads(bytes(standing.verdict.core))
    waived: dict[str, Waiver] = {}
    wanted: dict[str, AskedWaiver] = {}
    for rule_id in core["waivable"]:
        covering = covering_waiver(waivers, item, subject_version_id, rule_of(item, rule_id), rule_core(core, rule_id))
        if covering is not None:
            waived[rule_id] = covering
    for waiver in asked:
        here = (waiver.policy, waiver.system) == (item.version.policy.name, item.system.key)
        if here and waiver.rule in core["waivable"] and rule_of(item, waiver.rule).can_be_waived:
            wanted[waiver.rule] = waiver
    return Judged(item, standing, core, waived, wanted)


def obstacles_of(
    judged: Sequence[Judged],
    systems: Sequence[System],
    actions: Sequence[str],
    version: SubjectVersion,
    *,
    unreadable: Sequence[Unreadable],
    at: datetime,
) -> list[Obstacle]:
    """Return why the access cannot be approved now; empty where every applicable policy is satisfied.

    `unreadable` are the versions in force whose texts cannot be read: any of them may cover it.
    """
    found = [
        Obstacle("policy_unreadable", f"the stored text of `{held}`, which is in force, cannot be read, nor what it covers")
        for held, _ in unreadable
    ]
    for system in systems:
        for action in actions:
            covering = [item for item in judged if item.applied.system.pk == system.pk and action in item.applied.actions]
            if all(item.applied.supplement for item in covering):
                found.append(Obstacle("no_policy", f"no policy in force covers `{action}` on `{system.key}`"))
    for item in judged:
        found.extend(_obstacles_of_policy(item, version, at))
    return found


def _obstacles_of_policy(item: Judged, version: SubjectVersion, at: datetime) -> Iterable[Obstacle]:
    name, system = item.applied.version.policy.name, item.applied.system.key
    if item.applied.condition != "true":
        yield Obstacle(
            "condition_error", f"`{name}` cannot tell whether it applies to `{system}`: {item.applied.missing} is not known"
        )
    if item.standing is None or item.core is None:
        yield Obstacle("no_verdict", f"`{name}` has not judged this version for `{system}` yet")
        return
    if version.subject.changed_at > item.standing.checked_at:
        yield Obstacle("verdict_overdue", f"`{name}` is judging news about this subject: look again in a moment")
    elif item.standing.due_at is not None and item.standing.due_at <= at:
        yield Obstacle(
            "verdict_overdue", f"what `{name}` said of this subject is out of date and is judged anew: look again shortly"
        )
    for rule in item.core["blocking"]:
        yield Obstacle("blocked", f"`{name}` on `{system}`: rule `{rule}` is not passed")
    for rule in item.core["waivable"]:
        if rule not in item.waived and rule not in item.asked:
            yield Obstacle("not_waived", f"`{name}` on `{system}`: soft rule `{rule}` fails and nobody asks to waive it")


def _obstacles_of_waivers(proposal: AccessProposal, judged: Sequence[Judged]) -> Iterable[Obstacle]:
    wanted = {id(asked) for item in judged for asked in item.asked.values()}
    for waiver in proposal.waivers:
        if id(waiver) not in wanted:
            where = f"`{waiver.policy}` on `{waiver.system}`"
            yield Obstacle(
                "not_waivable", f"{where}: `{waiver.rule}` is no soft rule of one comparison that fails now: leave it out"
            )


def _obstacles_of_grant(request: SignOffRequest, grant: Grant | None) -> Iterable[Obstacle]:
    if grant is not None and grant.status not in _ASKED_OF[request.kind]:
        yield Obstacle("grant_not_live", f"the grant is {grant.get_status_display()}: this cannot be asked for it any more")
    if request.kind == RequestKind.RENEWAL and Grant.objects.filter(renews=request.grant_id, status__in=LIVE).exists():
        yield Obstacle("renewed", "the grant has been renewed already: renew its successor")


def _obstacles_of_time(proposal: AccessProposal, judged: Sequence[Judged], at: datetime) -> Iterable[Obstacle]:
    starts = max(proposal.starts_at or at, at)
    if proposal.ends_at <= starts:
        yield Obstacle("ends_too_soon", "it would end before it begins: ask for a later end")
    limit = terms_value(judged)["max_days"]
    if limit is not None and proposal.ends_at - starts > timedelta(days=limit):
        yield Obstacle("too_long", f"the policies in force allow at most {limit} days: ask for an earlier end")


def subject_value(version: SubjectVersion) -> dict[str, Any]:
    """Return a subject version, and what answers behind it, as dossiers hold it."""
    members = SubjectVersionMember.objects.filter(version=version).select_related("member__subject").order_by("member__digest")
    return {
        "subject": version.subject.key,
        "kind": str(version.subject.kind),
        "subject_version": version.number,
        "subject_version_digest": version.digest,
        "reaches": [
            {"subject": link.member.subject.key, "subject_version": link.member.number, "digest": link.member.digest}
            for link in members
        ],
    }


def system_value(system: System) -> dict[str, Any]:
    """Return a system as dossiers hold it: without the incident switch, which is asked at the moment of use."""
    return {
        "key": system.key,
        "title": system.title,
        "domain": str(system.domain),
        "environment": str(system.environment),
        "reversible": system.reversible,
        "owner": system.owner,
    }


def terms_value(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the strictest terms of all applicable policies."""
    terms = [item.applied.compiled.grant for item in judged if item.applied.compiled.grant is not None]
    if not terms:
        return {"max_days": None, "recertify_every_days": None}
    return {
        "max_days": min(term.max_days for term in terms),
        "recertify_every_days": min(term.recertify_every_days for term in terms),
    }


def rule_of(applied: Applied, rule_id: str) -> Rule:
    """Return a rule of an applied policy by its id."""
    return next(rule for rule in applied.compiled.rules if rule.id == rule_id)


def rule_core(core: Mapping[str, Any], rule_id: str) -> Mapping[str, Any]:
    """Return what a judgement core says about one rule."""
    return next(rule for rule in core["rules"] if rule["id"] == rule_id)


def deciding_of(rule: Mapping[str, Any]) -> set[str]:
    """Return the evidence that a rule of a judgement core rests on: that of every part, for a part that passes carries the rule too."""
    return {*rule["deciding"], *(uid for part in rule["children"] for uid in deciding_of(part))}


def _policy_value(item: Judged, facts: Mapping[int, str]) -> dict[str, Any]:
    applied, verdict = item.applied, item.verdict
    return {
        "policy": applied.version.policy.name,
        "version": applied.version.number,
        "digest": applied.version.digest,
        "system": applied.system.key,
        "domain": applied.domain,
        "params_digest": applied.params_digest,
        "tightened": dict(applied.tightened),
        "condition": applied.condition,
        "verdict": None
        if verdict is None
        else {"uid": str(verdict.uid), "core_digest": verdict.core_digest, "facts_digest": facts[verdict.facts_id]},
        "outcome": str(verdict.outcome) if verdict else str(Outcome.FAIL),
        "result": str(verdict.result) if verdict else str(Result.MISSING),
        "rules": [_rule_value(rule) for rule in item.core["rules"]] if item.core else [],
        "blocking": list(item.core["blocking"]) if item.core else [],
        "waivable": list(item.core["waivable"]) if item.core else [],
        "waived": {rule: str(waiver.uid) for rule, waiver in item.waived.items()},
    }


def _rule_value(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in rule.items() if name not in ("children", "deciding")}
    return {**kept, "deciding": rule["deciding"][:SHOWN_EVIDENCE], "deciding_count": len(rule["deciding"])}


def _asked_value(item: Judged, core: Mapping[str, Any], waiver: AskedWaiver) -> dict[str, Any]:
    rule = rule_core(core, waiver.rule)
    return {
        **waiver._asdict(),
        "rule_digest": rule_of(item.applied, waiver.rule).digest,
        "measured": rule["measured"],
        "floor": asks_for_a_floor(rule_of(item.applied, waiver.rule), rule["clause"]),
        "bar": rule["bar"],
        "subject_version_digest": core["subject_version_digest"],
    }


def _evidence_values(uids: set[str]) -> list[dict[str, Any]]:
    rows = Evidence.objects.filter(uid__in=uids).select_related("document", "source").order_by("uid")[:SHOWN_EVIDENCE]
    return [
        {
            "uid": str(row.uid),
            "digest": row.digest,
            "document": row.document.digest,
            "source": row.source.key,
            "subject_as_written": row.subject_as_written,
            "submitted_by": row.submitted_by,
        }
        for row in rows
    ]


def _unknown(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Return what no evidence speaks to: rules of any enforcement whose result is missing."""
    return [
        {
            "policy": item.applied.version.policy.name,
            "system": item.applied.system.key,
            "rule": rule["id"],
            "reason": rule["reason"],
        }
        for item in judged
        if item.core
        for rule in item.core["rules"]
        if rule["result"] == Result.MISSING
    ]
