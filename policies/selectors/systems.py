"""Reads about systems, and the domains that they bring into play."""

from collections.abc import Iterable
from typing import Any

from evaluations.kernel.canonical import digest
from evaluations.kernel.errors import NotFound
from policies.language.compiled import CompiledPolicy
from policies.models import System
from policies.vocabulary import ANY_DOMAIN

SHOWN_KEYS = 20
FIELDS = (
    "title",
    "domain",
    "environment",
    "reversible",
    "owner",
    "people_affected",
    "writes_per_day",
    "holds_personal_data",
    "money_at_stake_usd",
)
"""What is stated about a system when it is registered, and can be changed later."""


def domain_for(compiled: CompiledPolicy, system: System) -> str:
    """Return the domain in which a policy is judged for a system: the system's, or the one domain `any`."""
    return system.domain if compiled.uses_domain else ANY_DOMAIN


def judged_domains(compiled: CompiledPolicy, systems: Iterable[System]) -> list[str]:
    """Return the domains a policy is judged for: those of the systems, else the one domain `any`."""
    return sorted({domain_for(compiled, system) for system in systems}) or [ANY_DOMAIN]


def get_system(key: str) -> System:
    """Return the system with this key. Raises `NotFound` that lists the known keys."""
    system = System.objects.filter(key=key).first()
    if system is None:
        known = ", ".join(System.objects.values_list("key", flat=True)[:SHOWN_KEYS]) or "none is registered yet"
        raise NotFound(f"no system `{key}`; known: {known}")
    return system


def system_state(system: System) -> dict[str, Any]:
    """Return what is stated about a system, the open incident included, as a canonical value."""
    return {"key": system.key, "open_incident": system.open_incident, **{field: getattr(system, field) for field in FIELDS}}


def system_digest(system: System) -> str:
    """Return the digest of `system_state`: what a caller saw, so that a change in between is noticed."""
    return digest(system_state(system))
