"""The dossiers of changes to policies: which version comes into force, and which parameters a binding tightens."""

from datetime import datetime
from typing import Any

from django.conf import settings

from compliance.models import SignOffRequest
from compliance.selectors.authors import authors_of
from compliance.selectors.dossiers.base import (
    Built,
    Obstacle,
    Requester,
    close_dossier,
    excluded_people,
    floor_quorum,
    read_requester,
)
from compliance.selectors.impact import read_impact
from compliance.selectors.proposals import BindingProposal
from policies.language.compiled import CompiledPolicy, Factor
from policies.language.meaning import MeaningChange
from policies.language.quorum import unite, with_more
from policies.models import Policy, PolicyVersion, System
from policies.selectors.applicable import CONFORMANCE
from policies.selectors.bindings import live_bindings, numbers_of
from policies.selectors.linting import Checked, check_version
from policies.selectors.policies import changes_between, compile_version, version_in_force, version_to_judge

FLOOR = "activation"


def build_activation_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of an activation: the version, what it replaces, how its meaning differs, lint, tests, and impact."""
    version = PolicyVersion.objects.select_related("policy").get(pk=request.policy_version_id)
    compiled = compile_version(version)
    before = version_in_force(version.policy)
    impact = read_impact(version, at=at)
    checked = check_version(version)
    quorums = [floor_quorum(FLOOR)]
    replaced = None if before is None else compile_version(before).sign_offs
    if replaced is not None:
        quorums.append(replaced)
    quorum = unite(quorums)
    if not impact.no_new_access:
        # Whoever opens access needs one more pair of eyes than whoever closes it.
        quorum = with_more(quorum, Factor("newly-permitted", "policy_approver", 1, None))
    obstacles = _obstacles(checked)
    if checked.untested:
        obstacles.append(Obstacle("no_tests", "the policy has no test of its own"))
    if before is not None and before.pk == version.pk:
        obstacles.append(Obstacle("version_already_in_force", "this version is in force already"))
    if _is_conformance(compiled) and not settings.CONFORMANCE:
        obstacles.append(Obstacle("conformance_profile", "a policy of the conformance profile is never in force here"))
    body = {
        "question": {
            "policy": version.policy.name,
            "version": version.number,
            "digest": version.digest,
            "resolved_digest": version.resolved_digest,
            "replaces": None if before is None else {"version": before.number, "digest": before.digest},
        },
        "tests": [{"name": told.report.name, "passed": told.report.passed} for told in checked.tests],
        "changes": None if before is None else [_change_value(change) for change in changes_between(before, version)],
        "lint": [finding._asdict() for finding in checked.findings],
        "impact": impact.as_value(),
    }
    requester = read_requester(request, at=at)
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(request, quorum, authors=authors_of({version})),
        asks=[_ask(request, requester, at)],
        obstacles=[*requester.obstacles, *obstacles],
    )


def build_binding_dossier(request: SignOffRequest, *, at: datetime) -> Built:
    """Build the dossier of a binding: which parameters it tightens, from what to what, and where."""
    proposal = BindingProposal.read(bytes(request.proposal))
    policy = Policy.objects.get(sign_off_requests=request)
    version = version_to_judge(policy)
    compiled = compile_version(version)
    system = System.objects.get(key=proposal.system) if proposal.system else None
    held = {(binding.system_id, binding.domain): binding for binding in live_bindings(policy)}
    before = held.get((system.pk if system else None, proposal.domain))
    quorum = unite([floor_quorum(FLOOR), *([compiled.sign_offs] if compiled.sign_offs else [])])
    body = {
        "question": {
            "policy": policy.name,
            "version": version.number,
            "digest": version.digest,
            "system": proposal.system or None,
            "domain": proposal.domain or None,
            "params": dict(proposal.params),
        },
        "policy_params": {name: param.value for name, param in sorted(compiled.params.items())},
        "replaces": None if before is None else {"binding": str(before.sign_off_request), "params": numbers_of(before)},
    }
    requester = read_requester(request, at=at)
    return close_dossier(
        request,
        body,
        quorum=quorum,
        excluded=excluded_people(request, quorum, authors=authors_of({version})),
        asks=[_ask(request, requester, at)],
        systems=[system] if system else [],
        obstacles=requester.obstacles,
    )


def _ask(request: SignOffRequest, requester: Requester, at: datetime) -> dict[str, Any]:
    return {"requester": requester.facts, "action": {"name": str(request.kind)}, "now": at}


def _change_value(change: MeaningChange) -> dict[str, str]:
    return {**change._asdict(), "sentence": change.sentence}


def _obstacles(checked: Checked) -> list[Obstacle]:
    """Return what keeps the exact bytes of a version from coming into force: each with its line, and what to write instead."""
    blocked = [
        Obstacle("activation_blocked", f"lint `{item.code}`, line {item.line}, column {item.column}: {item.message}; {item.hint}")
        for item in checked.blocking
    ]
    red = [
        Obstacle("tests_not_green", f"line {line}: the policy's own test `{report.name}` fails: {'; '.join(report.problems)}")
        for report, line in checked.red
    ]
    return [*blocked, *red]


def _is_conformance(compiled: CompiledPolicy) -> bool:
    """True for a policy that has neither rules nor tests, and clears nobody."""
    return compiled.profile == CONFORMANCE
