"""Which answers hold while nobody can be asked, and how long. Pure.

An offline bundle repeats an allow for minutes. What moves within them without an act that is on record cannot be repeated: policies
whose conditions or guardrails read anything but the subject, the action and the system (the time; who asked for the grant, whose roles
begin and end by themselves; what a request states) leave their subjects out, whatever they say at the moment.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from compliance.deciding.facts import Value
from compliance.deciding.judge import GRACE_SECONDS, ROUTE, Judgement, Policies
from evaluations.kernel.canonical import timestamp
from policies.language.compiled import CompiledPolicy

STANDS_STILL = ("subject.", "action.", "resource.")
"""The groups of variables that only change by acts on record."""


def holds_until(facts: Value, policies: Policies, found: Judgement, stamp: str) -> str:
    """Return the instant up to which an allow may be repeated without asking again; "" where it may not be.

    `stamp` is the instant of the judgement, as facts write instants.
    """
    if not found.allowed or not found.until:
        return ""
    # Where no policy was asked, as under break-glass, none of them can change its mind.
    if found.policies and not all(_stands_still(compiled) for compiled in policies.values()):
        return ""
    ends = [found.until, *(_settled(facts) if found.policies else ())]
    until = min(ends)
    return until if until > stamp else ""


def _stands_still(compiled: CompiledPolicy) -> bool:
    conditions = [guardrail.when for guardrail in compiled.forbid]
    if compiled.applies_when is not None:
        conditions.append(compiled.applies_when)
    return all(name.startswith(STANDS_STILL) for condition in conditions for name in condition.uses)


def _settled(facts: Value) -> Iterator[str]:
    """Yield when news that nobody has judged yet ends the standings that an answer rests on."""
    subject = facts["subject"]
    wanted = {(row["digest"], row["params_digest"], row["domain"]) for row in facts["policies"] if "refused" not in row}
    for one in subject["reaches"] if subject["kind"] == ROUTE and not subject["grants"] else [subject]:
        for held in one["standings"]:
            if (held["policy"], held["params_digest"], held["domain"]) in wanted and one["changed_at"] > held["checked_at"]:
                yield timestamp(datetime.fromisoformat(one["changed_at"]) + timedelta(seconds=GRACE_SECONDS))
