"""Which policies a question falls under, and what they say at the moment of asking, from the registry's facts alone."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.models import Subject
from policies.language.compiled import CompiledPolicy
from policies.language.conditions import Answer, ask_values
from policies.models import Binding, PolicyVersion, Standing, System
from policies.selectors.bindings import join_bindings, live_bindings_by_policy, params_digest_of
from policies.selectors.policies import Unreadable, compile_readable, versions_in_force
from policies.selectors.systems import domain_for

CONFORMANCE, SUPPLEMENT = "conformance", "supplement"


class Applied(NamedTuple):
    """A policy version that a question falls under at one system.

    `actions` are those asked for that it covers. `condition` is "true" or, where `when` could not be judged for one of them, "error":
    such a policy applies and denies, and `missing` names the absent fact. Standings are kept under (`version`, `params_digest`,
    `domain`).
    """

    version: PolicyVersion
    compiled: CompiledPolicy
    system: System
    domain: str
    tightened: Mapping[str, Decimal]
    params_digest: str
    condition: str
    actions: tuple[str, ...]
    missing: str = ""

    @property
    def supplement(self) -> bool:
        """True where the policy only adds to others: a question under supplements alone is denied, `no_policy`."""
        return self.compiled.profile == SUPPLEMENT


class InForce(NamedTuple):
    """Policy versions with their compiled forms and their policies' live bindings: read once, asked many times.

    `unreadable` are those whose texts cannot be read. Nobody can say what they cover, so whoever asks is denied, whatever the others
    say.
    """

    versions: Sequence[PolicyVersion]
    compiled: Sequence[CompiledPolicy]
    bindings: Mapping[int, Sequence[Binding]]
    unreadable: Sequence[Unreadable] = ()


class Forbidden(NamedTuple):
    """A guardrail that denies: its condition is "true", or "error" with the absent fact in `missing`."""

    applied: Applied
    guardrail: str
    action: str
    condition: str
    missing: str


StandingKey = tuple[int, str, str, int]
"""(policy version id, params digest, domain, subject version id)."""


def ask_facts(subject: Subject, action: str, system: System, requester: Mapping[str, Any] | None, at: datetime) -> dict[str, Any]:
    """Return the registry's facts about one question, in the shape that `ask_values` takes.

    `requester` has the keys `key`, `kind`, `team` and `roles`, as far as they are known; without one, whatever reads her is an error.
    """
    return {
        "subject": {"key": subject.key, "kind": subject.kind, "provider": subject.provider},
        "action": {"name": action},
        "resource": system_facts(system),
        "requester": dict(requester or {}),
        "now": at,
    }


def system_facts(system: System) -> dict[str, Any]:
    """Return what conditions read about a system."""
    return {
        "key": system.key,
        "domain": system.domain,
        "environment": system.environment,
        "reversible": system.reversible,
        "open_incident": system.open_incident,
        "owner": system.owner,
    }


def read_in_force(versions: Sequence[PolicyVersion] | None = None) -> InForce:
    """Return the versions in force, or the given ones (with `policy` loaded), ready for many questions."""
    chosen = versions_in_force() if versions is None else versions
    compiled, unreadable = compile_readable(chosen)
    readable = [version for version in chosen if version.pk in compiled]
    bindings = live_bindings_by_policy({version.policy_id for version in readable})
    return InForce(readable, [compiled[version.pk] for version in readable], bindings, unreadable)


def applicable_policies(
    *,
    subject: Subject,
    actions: Sequence[str],
    systems: Sequence[System],
    requester: Mapping[str, Any] | None = None,
    at: datetime,
    versions: Sequence[PolicyVersion] | None = None,
    in_force: InForce | None = None,
) -> list[Applied]:
    """Return every policy that covers any of the actions at any of the systems, by the policies' names, then in the systems' order.

    The versions in force are asked, or the given ones (with `policy` loaded): so a draft shows what it would cover. The number of
    queries does not grow with policies, systems or actions; with `in_force`, read before, there is none. The conformance profile never
    applies. What a text covers that cannot be read nobody can say: `InForce.unreadable` names those.
    """
    held = in_force or read_in_force(versions)
    asks = {
        (system.pk, action): ask_values(ask_facts(subject, action, system, requester, at))
        for system in systems
        for action in actions
    }
    applied: list[Applied] = []
    for version, compiled in zip(held.versions, held.compiled, strict=True):
        if compiled.profile == CONFORMANCE:
            continue
        covered = [action for action in dict.fromkeys(actions) if action in compiled.actions]
        own = held.bindings.get(version.policy_id, ())
        for system in systems:
            answers = [(action, *_applies(compiled, asks[system.pk, action])) for action in covered]
            standing = [answer for answer in answers if answer[1] != Answer.FALSE]
            if not standing:
                continue
            erring = [missing for _, answer, missing in standing if answer == Answer.ERROR]
            tightened = join_bindings(compiled, own, system=system)
            applied.append(
                Applied(
                    version,
                    compiled,
                    system,
                    domain_for(compiled, system),
                    tightened,
                    params_digest_of(compiled, tightened),
                    str(Answer.ERROR if erring else Answer.TRUE),
                    tuple(action for action, _, _ in standing),
                    erring[0] if erring else "",
                )
            )
    return applied


def forbidden_by(
    applied: Sequence[Applied], *, subject: Subject, requester: Mapping[str, Any] | None = None, at: datetime
) -> list[Forbidden]:
    """Return the guardrails of these policies that deny, for each action that the policy covers. True and error both deny."""
    denying: list[Forbidden] = []
    for item in applied:
        for action in item.actions if item.compiled.forbid else ():
            values = ask_values(ask_facts(subject, action, item.system, requester, at))
            for guardrail in item.compiled.forbid:
                found = guardrail.when.evaluate(values)
                if found.answer != Answer.FALSE:
                    denying.append(Forbidden(item, guardrail.id, action, str(found.answer), found.missing))
    return denying


def standings_for(
    applied: Sequence[Applied], subject_version_ids: Collection[int], *, with_cores: bool = True
) -> dict[StandingKey, Standing]:
    """Return what stands for these subject versions under these policies, with `verdict` loaded, in one query.

    Where a key is left out nothing was judged, which denies. `with_cores=False` leaves the verdicts' large columns in the database.
    """
    wanted = {(item.version.pk, item.params_digest, item.domain) for item in applied}
    if not wanted or not subject_version_ids:
        return {}
    found = Standing.objects.filter(
        policy_version__in={pk for pk, _, _ in wanted},
        params_digest__in={params_digest for _, params_digest, _ in wanted},
        domain__in={domain for _, _, domain in wanted},
        subject_version__in=subject_version_ids,
    ).select_related("verdict")
    if not with_cores:
        found = found.defer("verdict__core")
    return {
        (item.policy_version_id, item.params_digest, item.domain, item.subject_version_id): item
        for item in found
        if (item.policy_version_id, item.params_digest, item.domain) in wanted
    }


def _applies(compiled: CompiledPolicy, values: Mapping[str, Any]) -> tuple[Answer, str]:
    if compiled.applies_when is None:
        return Answer.TRUE, ""
    found = compiled.applies_when.evaluate(values)
    return found.answer, found.missing
