"""What bindings tighten at a system, and what another one would change there."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Q

from evaluations.kernel.canonical import digest
from policies.language.compiled import CompiledPolicy
from policies.models import Binding, Policy, PolicyVersion, System
from policies.selectors.bindings import live_bindings_by_policy, numbers_of, stricter_numbers
from policies.selectors.policies import compile_readable, versions_in_force


class Tightened(NamedTuple):
    """One parameter that a live binding states for a system or its domain.

    `version` is the one in force, None where there is none that can be read; `own` is its number, `here` the one that counts at the
    system, both None where that version has no such parameter.
    """

    policy: Policy
    version: PolicyVersion | None
    name: str
    stated: Decimal
    own: Decimal | None
    here: Decimal | None
    binding: Binding


class ParamChange(NamedTuple):
    """What a binding would change of one parameter. `bound` and `asked` are what is stated for the place until now and then, None
    where that is the policy's own number; `here` and `then` are what counts at the system.
    """

    name: str
    own: Decimal
    bound: Decimal | None
    asked: Decimal | None
    here: Decimal
    then: Decimal


class Place(NamedTuple):
    """A policy version in force beside what bindings state of it at a system: for the system itself, and for its domain."""

    version: PolicyVersion
    compiled: CompiledPolicy
    system: System
    bindings: Sequence[Binding]

    def stated(self, domain: str) -> Mapping[str, Decimal]:
        """Return what is stated for the domain, or for the system where `domain` is empty."""
        return next((numbers_of(binding) for binding in self.bindings if binding.domain == domain), {})

    def changes(self, domain: str, numbers: Mapping[str, Decimal]) -> list[ParamChange]:
        """Return what stating these numbers, and no others, would change, by parameter; one that stays as it is is left out."""
        before, others = self.stated(domain), [numbers_of(binding) for binding in self.bindings if binding.domain != domain]
        here, then = (stricter_numbers(self.compiled, [*others, stated]) for stated in (before, numbers))
        return [
            ParamChange(
                name, own.value, before.get(name), numbers.get(name), here.get(name, own.value), then.get(name, own.value)
            )
            for name, own in self.compiled.params.items()
            if before.get(name) != numbers.get(name)
        ]

    def digest_with(self, domain: str, numbers: Mapping[str, Decimal]) -> str:
        """Return the digest of what is shown of such a change: another one where anything beneath it has moved."""
        stated = sorted(binding.pk for binding in self.bindings)
        return digest([self.version.digest, self.system.key, domain, dict(numbers), [str(pk) for pk in stated]])


def tightened_at(system: System) -> list[Tightened]:
    """Return what live bindings state for a system and for its domain, by policy and parameter."""
    place = ("policy_id", "system_id", "domain")
    stated = Binding.objects.filter(Q(system=system) | Q(domain=system.domain)).order_by(*place, "-id").distinct(*place)
    bindings = list(stated.select_related("policy", "system"))
    versions = {version.policy_id: version for version in versions_in_force({binding.policy_id for binding in bindings})}
    compiled = compile_readable(versions.values())[0] if versions else {}
    found = []
    for binding in bindings:
        version = versions.get(binding.policy_id)
        text = compiled.get(version.pk) if version is not None else None
        mine = [numbers_of(other) for other in bindings if other.policy_id == binding.policy_id]
        counts = stricter_numbers(text, mine) if text is not None else {}
        for name, number in numbers_of(binding).items():
            param = text.params.get(name) if text is not None else None
            own = param.value if param is not None else None
            here = counts.get(name, own) if own is not None else None
            found.append(Tightened(binding.policy, version if text else None, name, number, own, here, binding))
    return sorted(found, key=lambda item: (item.policy.name, item.name, item.binding.pk))


def places_to_tighten(system: System, *, policy_id: int | None = None) -> list[Place]:
    """Return each policy in force that can be read and has parameters (or the one given), by its name, as it stands at a system."""
    versions = versions_in_force(None if policy_id is None else [policy_id])
    compiled = compile_readable(versions)[0]
    bindings = live_bindings_by_policy([version.policy_id for version in versions])
    return [
        Place(version, compiled[version.pk], system, _of(system, bindings.get(version.policy_id, ())))
        for version in versions
        if version.pk in compiled and compiled[version.pk].params
    ]


def _of(system: System, bindings: Sequence[Binding]) -> list[Binding]:
    return [binding for binding in bindings if binding.system_id == system.pk or binding.domain == system.domain]
