"""Bundles whole: what is registered on every floor, in one transaction. Safe to run again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compliance.models import Team, User
from compliance.services.people import apply_create_person, apply_create_team
from evaluations.importers.bundles import Bundle
from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service
from evaluations.services.bundles import LoadedEvidence, apply_load_evidence_bundle, apply_register_metrics
from policies.models import PolicyVersion
from policies.services.policies import apply_propose_policy_version
from policies.services.systems import apply_register_system

DEMO_MAIL = "demo.invalid"
"""RFC 2606 keeps `.invalid` for addresses that must never work."""


class Installed(NamedTuple):
    """What was loaded."""

    metrics: int
    evidence: LoadedEvidence
    policy_versions: tuple[PolicyVersion, ...]


@service(refused="bundle.refused")
def load_bundle(
    *, actor: Actor, bundle: Bundle, policies: Sequence[Path], passwords: Mapping[str, str] | None = None
) -> Installed:
    """Load the metric registry, a bundle and policy texts: all of it, or nothing. Raises `InputRefused`.

    `passwords` are those of made-up people by their keys; without one, nobody signs in as that person until somebody sets one. An
    account that is there keeps what it has.
    """
    metrics = apply_register_metrics(actor=actor)
    evidence = apply_load_evidence_bundle(actor=actor, bundle=bundle)
    teams: dict[str, Team] = {
        entry.key: apply_create_team(actor=actor, key=entry.key, title=entry.title) for entry in bundle.teams
    }
    for person in bundle.people:
        address = f"{person.key}@{DEMO_MAIL}"
        if not User.objects.filter(email=address).exists():
            apply_create_person(
                actor=actor,
                name=person.name,
                email=address,
                password=(passwords or {}).get(person.key),
                team=teams[person.team] if person.team else None,
                roles=person.roles,
            )
    for system in bundle.systems:
        apply_register_system(
            actor=actor,
            key=system.key,
            title=system.title,
            domain=system.domain,
            environment=system.environment,
            reversible=system.reversible,
            owner=system.owner_team,
        )
    versions = tuple(apply_propose_policy_version(actor=actor, text=path.read_bytes(), filename=path.name) for path in policies)
    return Installed(metrics, evidence, versions)
