"""Blast radius: how much a wrong write to a system could do, as one number with its parts.

The score is the sum of eight parts, each a whole number from 0 to its most; together at most 100:

    reversibility 25 · environment 15 · domain 15 · people affected 15
    personal data 10 · money at stake 10 · writes a day 5 · actions 5

Levels: severe from 75 on, high from 50, medium from 25, low below. What the owner has not stated counts as the worst of its part, so
that saying nothing never makes a system look safer. HR and IT service management weigh most among the domains: the founding article
found models at their worst there. The same system and actions always give the same parts; nothing here reads clock or database.
"""

from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.kernel.numbers import plain
from evaluations.vocabulary import Domain
from policies.models import System
from policies.vocabulary import BlastLevel, Environment

FORMULA = 1
"""Number of the formula above; part of what signers sign."""
MOST = 100

_LEVELS = ((75, BlastLevel.SEVERE), (50, BlastLevel.HIGH), (25, BlastLevel.MEDIUM), (0, BlastLevel.LOW))
_ENVIRONMENTS = {Environment.PRODUCTION: 15, Environment.STAGING: 6, Environment.DEVELOPMENT: 2}
_DOMAINS = {
    Domain.HR: 15,
    Domain.IT_SERVICE_MANAGEMENT: 15,
    Domain.HYBRID: 12,
    Domain.CUSTOMER_SERVICE: 10,
    Domain.EMAIL: 10,
    Domain.DRIVE: 8,
    Domain.TEAMS: 6,
    Domain.CALENDAR: 5,
}
_PEOPLE = ((0, 0), (100, 4), (1_000, 8), (10_000, 12))
_MONEY = ((0, 0), (1_000, 2), (100_000, 5), (1_000_000, 8))
_WRITES = ((0, 0), (100, 1), (10_000, 3))
_ACTIONS = {"read": 0, "write": 3}
"""Actions known to do less than the worst; every other action counts as the worst."""

UNKNOWN = "not stated"
_UNKNOWN_WHY = "not stated by the owner, so the worst is taken"


class Part(NamedTuple):
    """One part of the score: `weight` of at most `most`, and why."""

    name: str
    value_text: str
    weight: int
    most: int
    why: str


class BlastRadius(NamedTuple):
    """How much a wrong write could do to one system by the given actions."""

    system: str
    actions: tuple[str, ...]
    level: str
    score: int
    parts: tuple[Part, ...]

    def as_value(self) -> dict[str, Any]:
        """Return the canonical value that a dossier embeds."""
        parts = [
            {"name": part.name, "value": part.value_text, "weight": part.weight, "most": part.most, "why": part.why}
            for part in self.parts
        ]
        return {
            "formula": FORMULA,
            "system": self.system,
            "actions": list(self.actions),
            "level": str(self.level),
            "score": self.score,
            "of": MOST,
            "parts": parts,
        }


def blast_radius(system: System, actions: Collection[str] = ("write",)) -> BlastRadius:
    """Return the blast radius of these actions on a system. No action at all counts as the worst one."""
    parts = (
        _reversibility(system),
        _of_word("environment", system.environment, Environment, _ENVIRONMENTS, "where its writes land"),
        _of_word("domain", system.domain, Domain, _DOMAINS, "how badly models do there, and what its records decide"),
        _of_amount("people affected", system.people_affected, _PEOPLE, 15, "{:,}".format, "people its records are about"),
        _personal_data(system),
        _of_amount(
            "money at stake", system.money_at_stake_usd, _MONEY, 10, lambda held: f"US$ {plain(held)}", "cost of one wrong write"
        ),
        _of_amount("writes a day", system.writes_per_day, _WRITES, 5, "{:,}".format, "writes a day it takes"),
        _actions(actions),
    )
    score = sum(part.weight for part in parts)
    level = next(level for least, level in _LEVELS if score >= least)
    return BlastRadius(system.key, tuple(sorted(set(actions))), level.value, score, parts)


def joined(radii: Iterable[BlastRadius]) -> BlastRadius:
    """Return the worst of several systems' blast radii; of equals the first by system key. Raises `ValueError` for none."""
    ordered = sorted(radii, key=lambda radius: (-radius.score, radius.system))
    if not ordered:
        raise ValueError("a blast radius needs at least one system")
    return ordered[0]


def _reversibility(system: System) -> Part:
    if system.reversible:
        return Part("reversibility", "writes can be taken back", 5, 25, "taking a write back costs time all the same")
    return Part("reversibility", "writes cannot be taken back", 25, 25, "a wrong write stays")


def _of_word(name: str, word: str, choices: Any, weights: dict[Any, int], why: str) -> Part:
    most = max(weights.values())
    known = word in choices.values
    return Part(name, str(choices(word).label) if known else word, weights.get(word, most), most, why)


def _personal_data(system: System) -> Part:
    if system.holds_personal_data is None:
        return Part("personal data", UNKNOWN, 10, 10, _UNKNOWN_WHY)
    if system.holds_personal_data:
        return Part("personal data", "yes", 10, 10, "records about people can harm them")
    return Part("personal data", "no", 0, 10, "its records are about nobody")


def _of_amount(
    name: str,
    held: int | Decimal | None,
    steps: tuple[tuple[int, int], ...],
    most: int,
    spelled: Callable[[Any], str],
    what: str,
) -> Part:
    """Weigh an amount by the first step that it does not exceed; above all of them it weighs the most."""
    if held is None:
        return Part(name, UNKNOWN, most, most, _UNKNOWN_WHY)
    for limit, weight in steps:
        if held <= limit:
            bound = f"at most {limit:,}" if limit else "none"
            return Part(name, spelled(held), weight, most, f"{what}: {bound}")
    return Part(name, spelled(held), most, most, f"{what}: more than {steps[-1][0]:,}")


def _actions(actions: Collection[str]) -> Part:
    named = sorted(set(actions))
    if not named:
        return Part("actions", "none named", 5, 5, "nothing is named, so the worst is taken")
    weight = max(_ACTIONS.get(action, 5) for action in named)
    why = "nothing is changed" if not weight else "records are changed" if weight < 5 else "more than writing records may be done"
    return Part("actions", ", ".join(named), weight, 5, why)
