"""What the policies in force come to at each place. It never changes under the ids that name them, and is kept under those."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from compliance.deciding.facts import Value
from compliance.deciding.judge import Policies
from policies.language.compiled import CompiledPolicy
from policies.models import PolicyVersion, System
from policies.selectors.applicable import CONFORMANCE, InForce, read_in_force
from policies.selectors.bindings import join_bindings, params_digest_of
from policies.selectors.systems import domain_for

PLACES_KEPT = 4_096


class Place(NamedTuple):
    """What the policies in force come to at one system, for one action."""

    rows: list[Value]
    policies: Policies


class PlacesInForce:
    """The versions in force under one set of ids, and what they come to at each system that was asked about."""

    def __init__(self, in_force: InForce) -> None:
        self._in_force = in_force
        # No door lets such a text in. However it came into force, nobody can say what it covers: it denies everything.
        self.refused: Sequence[Value] = [
            {"policy": version.policy.name, "version": version.number, "digest": version.digest, "refused": list(codes)}
            for version, codes in in_force.unreadable
        ]
        self._places: dict[tuple[str, int, str], Place] = {}

    def at(self, action: str, system: int, domain: str) -> Place:
        """Return the versions that name the action, with their parameters at the system."""
        found = self._places.get((action, system, domain))
        if found is None:
            if len(self._places) >= PLACES_KEPT:
                self._places.clear()
            found = self._places[action, system, domain] = self._make(action, System(pk=system, domain=domain))
        return found

    def _make(self, action: str, place: System) -> Place:
        rows: list[Value] = list(self.refused)
        policies: dict[str, CompiledPolicy] = {}
        for version, compiled in zip(self._in_force.versions, self._in_force.compiled, strict=True):
            if compiled.profile == CONFORMANCE or action not in compiled.actions:
                continue
            tightened = join_bindings(compiled, self._in_force.bindings.get(version.policy_id, ()), system=place)
            rows.append(
                {
                    "policy": version.policy.name,
                    "version": version.number,
                    "digest": version.digest,
                    "profile": compiled.profile,
                    "params_digest": params_digest_of(compiled, tightened),
                    "domain": domain_for(compiled, place),
                }
            )
            policies[version.digest] = compiled
        return Place(rows, policies)


def places_in_force(active: str | None, bound: str | None, metrics: int) -> PlacesInForce:
    """Return the versions in force. The ids of all that decides it are the key, and no door changes the rows under them."""
    held = _kept(active, bound, metrics)
    if held.refused:
        # Somebody has changed one past every door, and may put it back: it is read again, until it can be.
        _kept.cache_clear()
    return held


@lru_cache(maxsize=8)
def _kept(active: str | None, bound: str | None, metrics: int) -> PlacesInForce:
    del bound, metrics
    ids = [int(pk) for pk in (active or "").split(",") if pk]
    versions = PolicyVersion.objects.filter(pk__in=ids).select_related("policy").order_by("policy__name")
    return PlacesInForce(read_in_force(list(versions)))


NOWHERE = Place([], {})
"""What comes to a system that is not registered."""
