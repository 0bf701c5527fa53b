"""Systems: every write."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction

from evaluations.importers.fields import MAX_COUNT, is_clean_line
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.names import check_key, key_problem
from evaluations.kernel.numbers import NotADecimal, parse_decimal
from evaluations.kernel.services import service
from evaluations.vocabulary import Domain
from policies.models import System
from policies.selectors.systems import FIELDS, system_digest
from policies.signals import system_changed
from policies.vocabulary import Environment

MAX_TITLE = 200
MAX_REASON = 500
JUDGED_FIELDS = frozenset({"domain", "environment", "reversible"})
"""What policies read of a system: a change of these is announced."""


class SystemChanged(DomainError):
    """The system is no longer as the caller saw it."""

    code = "system_changed"
    kind = ErrorKind.CONFLICT


@service(refused="system.refused")
def register_system(
    *,
    actor: Actor,
    key: str,
    title: str,
    domain: str,
    environment: str = Environment.PRODUCTION,
    reversible: bool = False,
    owner: str = "",
    people_affected: int | None = None,
    writes_per_day: int | None = None,
    holds_personal_data: bool | None = None,
    money_at_stake_usd: Decimal | None = None,
    request_id: str = "",
) -> System:
    """Register a production system; a known key returns what is there. Raises `InputRefused`.

    What stays None is not known, and counts as the worst in the blast radius.
    """
    return apply_register_system(
        actor=actor,
        key=key,
        title=title,
        domain=domain,
        environment=environment,
        reversible=reversible,
        owner=owner,
        people_affected=people_affected,
        writes_per_day=writes_per_day,
        holds_personal_data=holds_personal_data,
        money_at_stake_usd=money_at_stake_usd,
        request_id=request_id,
    )


@service(refused="system.refused")
def update_system(
    *,
    actor: Actor,
    system: System,
    changes: Mapping[str, Any],
    reason: str,
    expected_digest: str = "",
    request_id: str = "",
) -> System:
    """Change what is stated about a system, by the names in `FIELDS`; what already stands is no change, and no entry.

    With `expected_digest` the system must still be as `system_digest` gave it. Raises `InputRefused`, `SystemChanged`.
    """
    return apply_update_system(
        actor=actor,
        system=system,
        changes=changes,
        reason=reason,
        expected_digest=expected_digest,
        request_id=request_id,
    )


@service(refused="incident.refused")
def set_open_incident(
    *, actor: Actor, system: System, is_open: bool, reason: str, link: str = "", request_id: str = ""
) -> System:
    """State that a system has an open incident, or that it has none any more; stating what stands changes nothing."""
    return apply_set_open_incident(actor=actor, system=system, is_open=is_open, reason=reason, link=link, request_id=request_id)


def apply_register_system(
    *,
    actor: Actor,
    key: str,
    title: str,
    domain: str,
    environment: str = Environment.PRODUCTION,
    reversible: bool = False,
    owner: str = "",
    people_affected: int | None = None,
    writes_per_day: int | None = None,
    holds_personal_data: bool | None = None,
    money_at_stake_usd: Decimal | None = None,
    request_id: str = "",
) -> System:
    """Register a system inside an open service transaction."""
    check_key(key, field="key")
    stated = {
        "title": title,
        "domain": domain,
        "environment": environment,
        "reversible": reversible,
        "owner": owner,
        "people_affected": people_affected,
        "writes_per_day": writes_per_day,
        "holds_personal_data": holds_personal_data,
        "money_at_stake_usd": money_at_stake_usd,
    }
    problems = _problems(stated)
    if problems:
        raise InputRefused(problems)
    system, made = System.objects.get_or_create(key=key, defaults=stated)
    if made:
        audit.record(
            audit.Event(
                action="system.registered",
                actor=actor,
                target=("system", key),
                new=stated,
                request_id=request_id,
            )
        )
    return system


def apply_update_system(
    *,
    actor: Actor,
    system: System,
    changes: Mapping[str, Any],
    reason: str,
    expected_digest: str = "",
    request_id: str = "",
) -> System:
    """Change a system inside an open service transaction."""
    problems = [
        Problem("it cannot be changed", field=field, code="unknown_member", hint=f"one of {', '.join(FIELDS)}")
        for field in changes
        if field not in FIELDS
    ]
    problems += _reason_problems(reason) + _problems(changes)
    if problems:
        raise InputRefused(problems)
    # The row lock makes what is compared here what is changed below.
    held = System.objects.select_for_update().get(pk=system.pk)
    if expected_digest and system_digest(held) != expected_digest:
        raise SystemChanged(f"`{held.key}` was changed in between: look at it again")
    old = {field: getattr(held, field) for field in FIELDS if field in changes and getattr(held, field) != changes[field]}
    if not old:
        return held
    new = {field: changes[field] for field in old}
    System.claim(held.pk, expected=old, moved_to=new)
    audit.record(
        audit.Event(
            action="system.changed",
            actor=actor,
            target=("system", held.key),
            old=old,
            new={**new, "reason": reason.strip()},
            request_id=request_id,
        )
    )
    if JUDGED_FIELDS & old.keys():
        transaction.on_commit(lambda: _announce(held.pk), robust=True)
    return held.reload()


def apply_set_open_incident(
    *, actor: Actor, system: System, is_open: bool, reason: str, link: str = "", request_id: str = ""
) -> System:
    """Move a system's open-incident switch inside an open service transaction."""
    problems = _reason_problems(reason)
    if link and (not link.startswith(("https://", "http://")) or not is_clean_line(link, limit=MAX_REASON)):
        problems.append(Problem("it is no address", field="link", hint="write an http or https address, or leave it out"))
    if problems:
        raise InputRefused(problems)
    moved = System.claim(system.pk, expected={"open_incident": not is_open}, moved_to={"open_incident": is_open})
    if moved:
        audit.record(
            audit.Event(
                action="incident.opened" if is_open else "incident.closed",
                actor=actor,
                target=("system", system.key),
                old={"open_incident": not is_open},
                new={"open_incident": is_open, "reason": reason.strip(), "link": link},
                request_id=request_id,
            )
        )
    return system.reload()


def _announce(system_id: int) -> None:
    system_changed.send_robust(sender=System, system_id=system_id)


def _problems(stated: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with statements about a system; those that are not there are not looked at."""
    problems = [
        Problem(f"`{stated[field]}` is not known", field=field, hint=f"one of {', '.join(known)}")
        for field, known in (("domain", Domain.values), ("environment", Environment.values))
        if field in stated and stated[field] not in known
    ]
    if "title" in stated and not (isinstance(stated["title"], str) and is_clean_line(stated["title"], limit=MAX_TITLE)):
        problems.append(
            Problem("a title is one line of text", field="title", hint=f"write 1 to {MAX_TITLE} printable characters")
        )
    if stated.get("owner") and (problem := key_problem(stated["owner"], field="owner")):
        problems.append(problem)
    if "reversible" in stated and not isinstance(stated["reversible"], bool):
        problems.append(Problem("it is neither true nor false", field="reversible"))
    if stated.get("holds_personal_data") not in (None, True, False):
        problems.append(Problem("it is neither true nor false", field="holds_personal_data", hint="leave it out where not known"))
    for field in ("people_affected", "writes_per_day"):
        count = stated.get(field)
        if count is not None and (type(count) is not int or not 0 <= count <= MAX_COUNT):
            hint = f"write a whole number from 0 to {MAX_COUNT}, or leave it out where not known"
            problems.append(Problem("it is no count", field=field, hint=hint))
    if (money := stated.get("money_at_stake_usd")) is not None:
        problems += _money_problems(money)
    return problems


def _money_problems(money: Any) -> list[Problem]:
    try:
        if type(money) is Decimal and parse_decimal(money, field="money_at_stake_usd") >= 0:
            return []
    except NotADecimal as error:
        return [Problem(str(error), field="money_at_stake_usd")]
    return [Problem("it is no amount", field="money_at_stake_usd", hint="write US dollars, such as 2500.00, at least 0")]


def _reason_problems(reason: str) -> list[Problem]:
    if 0 < len(reason.strip()) <= MAX_REASON:
        return []
    return [Problem("a reason is needed", field="reason", hint=f"say why, in 1 to {MAX_REASON} characters")]
