"""`manage.py policy impact`: what would a version change, before anybody signs it?"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from compliance.management.policy_kinds.texts import FOUND, compiled
from compliance.selectors.impact import Impact, ImpactRow, NearRow, Progress, measure_impact
from compliance.selectors.impact_history import MOST_INSTANTS, Moment, read_span, replay_impact
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now, parse_instant
from evaluations.kernel.errors import InputRefused, NotFound, Problem
from policies.models import Policy, PolicyVersion
from policies.selectors.comparing import Side, side_of, side_of_text
from policies.selectors.policies import get_policy, known_names, version_in_force

HELP = (
    "Say whom a version would newly permit and refuse, over all subjects, systems and grants, and who stands near the edge. "
    "Exit codes: 0 it opens no new access, 1 it can, 2 it cannot be told."
)
EXAMPLES = """\
  manage.py policy impact refusal-gate                        the newest version against the one in force
  manage.py policy impact new.yaml --against refusal-gate@3   a text that nobody has proposed yet
  manage.py policy impact new.yaml --since 2026-09-01T00:00:00Z --format json

--since asks the same at the start of the span and at each instant since at which evidence, a ruling, a name, trust, a metric, a
subject's version, an activation or a binding was recorded, on what was known then; of more than --instants, so many of them spread
evenly. Systems are those of now, and grants are asked about now alone: neither keeps its past.
"""
SHOWN = 20
_NUMBERED = re.compile(r"(?P<name>.+)@(?P<number>[1-9][0-9]{0,8})\Z")
_FILE = re.compile(r"[/\\]|\.(ya?ml|json)\Z")


class _Named(NamedTuple):
    """What an argument names: a stored version, or a text; `label` is how it is called in the answer."""

    label: str
    version: PolicyVersion | None
    side: Side

    def at(self, moment: datetime) -> Side:
        if self.version is not None:
            return side_of(self.version, known_at=moment)
        return side_of_text(self.side.compiled, known_at=moment)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="A", help="name@number, name (the newest), or a file not yet proposed")
    parser.add_argument("--against", metavar="B", help="likewise (default: the version in force, at each instant)")
    parser.add_argument("--since", metavar="T", help="replay the past from this instant on, such as 2026-09-01T00:00:00Z")
    parser.add_argument("--instants", type=int, default=MOST_INSTANTS, metavar="N", help="of --since: at most so many (24)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def run(out: Any, options: dict[str, Any]) -> int:
    at = now()
    since = _since(options["since"], at)
    if options["instants"] < 1:
        raise InputRefused([Problem("at least one instant is needed", field="--instants")])
    after = _named(options["version"])
    before = _named(options["against"]) if options["against"] else _in_force(after.side.compiled.name, at)
    impact = measure_impact(after.side, None if before is None else before.side, at=at, progress=_told("now"))
    history = list(_history(after, before if options["against"] else None, since, at, options["instants"])) if since else []
    recorded = read_span(since=since, until=at, most=options["instants"]).recorded if since else 0
    if options["format"] == "json":
        out.write(json.dumps(_as_json(after, before, impact, history, recorded, at), indent=2))
    else:
        for line in _as_text(after, before, impact, history, recorded):
            out.write(line)
    opens = not impact.no_new_access or any(moment.impact.newly_permitted for moment in history)
    return FOUND if opens else 0


def _since(text: str | None, at: datetime) -> datetime | None:
    if text is None:
        return None
    since = parse_instant(text, field="--since")
    if since >= at:
        raise InputRefused([Problem(f"`{text}` is not in the past", field="--since", hint="name an earlier instant")])
    return since


def _named(text: str) -> _Named:
    if _FILE.search(text):
        side = side_of_text(compiled(text, known_names()))
        return _Named(text, None, side)
    numbered = _NUMBERED.match(text)
    policy = get_policy(numbered["name"] if numbered else text)
    versions = policy.versions.select_related("policy").order_by("-number")
    found = versions.filter(number=numbered["number"]).first() if numbered else versions.first()
    if found is None:
        known = ", ".join(str(version.number) for version in versions[:SHOWN]) or "none"
        raise NotFound(
            f"`{policy.name}` has no version {numbered['number'] if numbered else ''}; it has {known}".replace("  ", " ")
        )
    return _Named(f"{policy.name}@{found.number}", found, side_of(found))


def _in_force(name: str, at: datetime) -> _Named | None:
    policy = Policy.objects.filter(name=name).first()
    version = version_in_force(policy, known_at=at) if policy else None
    return None if version is None else _Named(f"{name}@{version.number}", version, side_of(version, known_at=at))


def _history(after: _Named, before: _Named | None, since: datetime, at: datetime, most: int) -> Iterator[Moment]:
    def before_at(moment: datetime) -> Side | None:
        held = before or _in_force(after.side.compiled.name, moment)
        return None if held is None else held.at(moment)

    span = read_span(since=since, until=at, most=most)
    yield from replay_impact(after.at, before_at, span, progress=lambda moment: _told(timestamp(moment)))


def _told(what: str) -> Progress:
    def tell(done: int, of: int) -> None:
        sys.stderr.write(f"{what}: {done:,} of {of:,} subjects\n")

    return tell


def _as_json(
    after: _Named, before: _Named | None, impact: Impact, history: list[Moment], recorded: int, at: datetime
) -> dict[str, Any]:
    return {
        "version": after.label,
        "digest": after.side.compiled.digest,
        "against": None if before is None else before.label,
        "at": timestamp(at),
        "subjects": impact.subjects,
        "systems": impact.systems,
        **_whole(impact),
        "grants_refused": list(impact.grants_refused),
        "grants_suspended": list(impact.grants_suspended),
        "impact_digest": impact.digest,
        "nearest": [row._asdict() for row in impact.nearest],
        "history": {
            "recorded_instants": recorded,
            "instants": [
                {"at": timestamp(moment.at), "subjects": moment.impact.subjects, **_whole(moment.impact)} for moment in history
            ],
        },
    }


def _whole(impact: Impact) -> dict[str, Any]:
    return {
        "no_new_access": impact.no_new_access,
        "newly_permitted": [row._asdict() for row in impact.newly_permitted],
        "newly_refused": [row._asdict() for row in impact.newly_refused],
        "unchanged": impact.unchanged,
        "unjudged": impact.unjudged,
        "narrower": impact.narrower,
    }


def _as_text(after: _Named, before: _Named | None, impact: Impact, history: list[Moment], recorded: int) -> Iterator[str]:
    against = "nothing in force" if before is None else before.label
    yield f"{after.label} against {against}: {impact.subjects:,} subjects, {impact.systems:,} systems"
    yield "it opens no new access" if impact.no_new_access else "it can open new access"
    if impact.narrower:
        yield "it covers fewer questions than before: what it leaves, it no longer refuses"
    for title, rows in (("newly permitted", impact.newly_permitted), ("newly refused", impact.newly_refused)):
        yield f"{title}: {len(rows):,}"
        yield from (f"  {_row(row)}" for row in rows[:SHOWN])
        if len(rows) > SHOWN:
            yield f"  and {len(rows) - SHOWN:,} more (--format json has them all)"
    yield f"unchanged: {impact.unchanged:,}"
    if impact.unjudged:
        yield f"cannot be judged: {impact.unjudged:,}"
    yield f"grants it would not carry: {len(impact.grants_refused):,}, of which it suspends {len(impact.grants_suspended):,}"
    yield from (f"  {uid}" for uid in impact.grants_refused[:SHOWN])
    yield "nearest to the edge:" if impact.nearest else "nobody stands near the edge"
    yield from (f"  {_near(row)}" for row in impact.nearest)
    if history:
        yield f"the past: {len(history):,} instants asked, of {recorded:,} at which something was recorded"
        for moment in history:
            permitted, refused = len(moment.impact.newly_permitted), len(moment.impact.newly_refused)
            yield f"  {timestamp(moment.at)}: {permitted:,} newly permitted, {refused:,} newly refused, {moment.impact.unchanged:,} unchanged"


def _row(row: ImpactRow) -> str:
    at = f" at {row.systems:,} system{'s' if row.systems > 1 else ''}" if row.systems else ""
    return f"{row.subject}@{row.subject_version} in {row.domain}{at}: {row.before} → {row.after}"


def _near(row: NearRow) -> str:
    return (
        f"{row.subject}@{row.subject_version} in {row.domain}: {row.outcome}, `{row.rule}` {row.measured} against {row.bar}"
        f" ({row.distance} away)"
    )
