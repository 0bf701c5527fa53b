"""Reads about bindings: what a policy's parameters are where they have been tightened, and the keys under which that is judged."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from evaluations.kernel.canonical import digest
from policies.language.compiled import CompiledPolicy, Param
from policies.language.facts import NOTHING
from policies.models import Binding, Policy, PolicyVersion, System
from policies.selectors.policies import compile_version, compile_versions
from policies.selectors.systems import domain_for, judged_domains


class JudgedKey(NamedTuple):
    """A key under which standings are kept, short of the subject version. `tightened` is empty where no binding counts."""

    policy_version: PolicyVersion
    domain: str
    tightened: Mapping[str, Decimal]
    params_digest: str


def params_digest_of(compiled: CompiledPolicy, tightened: Mapping[str, Decimal] = NOTHING) -> str:
    """Return the digest of the effective parameters: where nothing is tightened, that of the policy's own."""
    return digest(dict(compiled.effective_params(tightened)))


def live_bindings(policy: Policy, *, known_at: datetime | None = None) -> list[Binding]:
    """Return the newest binding of each place of a policy, as known at an instant."""
    return live_bindings_by_policy([policy.pk], known_at=known_at).get(policy.pk, [])


def live_bindings_by_policy(policy_ids: Collection[int], *, known_at: datetime | None = None) -> dict[int, list[Binding]]:
    """Return the newest binding of each place, by policy, in one query; a policy without one is left out."""
    place = ("policy_id", "system_id", "domain")
    found = Binding.objects.filter(policy__in=policy_ids).order_by(*place, "-id").distinct(*place).select_related("system")
    if known_at is not None:
        found = found.filter(recorded_at__lte=known_at)
    live: dict[int, list[Binding]] = {}
    for binding in found:
        live.setdefault(binding.policy_id, []).append(binding)
    return live


def numbers_of(binding: Binding) -> dict[str, Decimal]:
    """Return the numbers that a binding states, by parameter."""
    return {name: Decimal(number) for name, number in json.loads(bytes(binding.params)).items()}


def join_bindings(compiled: CompiledPolicy, bindings: Iterable[Binding], *, system: System) -> Mapping[str, Decimal]:
    """Return what a policy's live bindings tighten for a system: its own and its domain's, the stricter of both.

    A binding outlives the version it was signed for. What that is in another version is read strictly: a parameter that is gone is
    passed over, a number looser than the version's own leaves the version's, and one beyond the metric's range stands at its end.
    """
    mine = (binding for binding in bindings if binding.system_id == system.pk or binding.domain == system.domain)
    return stricter_numbers(compiled, map(numbers_of, mine))


def stricter_numbers(compiled: CompiledPolicy, stated: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """Return the parameters that numbers stated for any text of a policy make stricter in this one: of several the strictest."""
    tightened: dict[str, Decimal] = {}
    for numbers in stated:
        for name, number in numbers.items():
            param = compiled.params.get(name)
            if param is None:
                continue
            stricter = max if param.floor else min
            joined = stricter(tightened.get(name, param.value), _in_range(param, number))
            if joined != param.value:
                tightened[name] = joined
    return tightened


def tightening_for(version: PolicyVersion, *, system: System, known_at: datetime | None = None) -> Mapping[str, Decimal]:
    """Return what the bindings known at an instant tighten in a policy version for a system."""
    return join_bindings(compile_version(version), live_bindings(version.policy, known_at=known_at), system=system)


def judged_keys(versions: Sequence[PolicyVersion]) -> list[JudgedKey]:
    """Return every key under which these versions are kept judged: each domain that has a system, as the policy is written and with
    each distinct tightening that a system of this domain has. A version without rules gives no verdict and has no key.
    """
    bindings = live_bindings_by_policy({version.policy_id for version in versions})
    systems = list(System.objects.all())
    keys: dict[tuple[int, str, str], JudgedKey] = {}
    for version, compiled in zip(versions, compile_versions(versions), strict=True):
        if not compiled.rules:
            continue
        places = [(domain, NOTHING) for domain in judged_domains(compiled, systems)]
        own = bindings.get(version.policy_id)
        if own:
            places += [(domain_for(compiled, system), join_bindings(compiled, own, system=system)) for system in systems]
        for domain, tightened in places:
            params_digest = params_digest_of(compiled, tightened)
            keys.setdefault((version.pk, domain, params_digest), JudgedKey(version, domain, tightened, params_digest))
    return list(keys.values())


def _in_range(param: Param, number: Decimal) -> Decimal:
    if param.floor:
        return number if param.maximum is None else min(number, param.maximum)
    return max(number, param.minimum)
