"""`manage.py policy impact`: whom would a policy newly permit or refuse, now and over the past?"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from compliance.management.policy_kinds.texts import FOUND, compiled
from compliance.selectors.impact import NEAR, SHOWN, Impact, ImpactRow, Progress, Texts, measure_impact
from compliance.selectors.past import Past, PastRow, past_decisions, past_verdicts
from evaluations.kernel.canonical import canonical_bytes, timestamp
from evaluations.kernel.clock import now, parse_instant
from evaluations.kernel.errors import InputRefused, NotFound, Problem
from evaluations.kernel.numbers import plain
from policies.language.compiled import CompiledPolicy
from policies.models import Policy, PolicyVersion
from policies.selectors.policies import compile_version, get_policy, known_names, version_in_force
from policies.vocabulary import ANY_DOMAIN, Change, Said

HELP = (
    "Say whom a policy would newly permit or refuse if it came into force. "
    "Exit codes: 0 told, 1 it opens access (--fail-on-new-access), 2 a text or a name was refused."
)
EXAMPLES = """\
  manage.py policy impact unattended-writes                      its newest version against the one in force
  manage.py policy impact unattended-writes@3 --against unattended-writes@1
  manage.py policy impact policies/unattended-writes.yaml        a text that nobody has proposed yet
  manage.py policy impact policies/unattended-writes.yaml --fail-on-new-access      for a pull request
  manage.py policy impact unattended-writes --since 2026-09-01   and which verdicts and decisions would have gone otherwise?
  manage.py policy impact unattended-writes --format json > impact.json
"""
NONE = "nothing"


class _Named(NamedTuple):
    """A policy as it was named, and its text."""

    name: str
    policy: CompiledPolicy
    version: PolicyVersion | None

    def as_value(self) -> dict[str, Any]:
        number = None if self.version is None else self.version.number
        return {"name": self.name, "policy": self.policy.name, "version": number, "digest": self.policy.digest}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("policy", metavar="A", help="NAME (its newest version), NAME@NUMBER, or a policy text in a FILE")
    parser.add_argument("--against", metavar="B", help=f"likewise, or `{NONE}` (default: the version in force)")
    parser.add_argument("--since", metavar="TIME", help="also judge again what was recorded from this instant on")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--most", type=_count, default=SHOWN, metavar="N", help=f"rows of each list (default: {SHOWN})")
    parser.add_argument(
        "--fail-on-new-access", action="store_true", help="exit code 1 unless it is sure that nobody is newly permitted"
    )


def run(out: Any, options: dict[str, Any]) -> int:
    at = now()
    since = parse_instant(options["since"], field="--since") if options["since"] else None
    after = _named(options["policy"], field="A")
    before = _against(options["against"], after)
    texts, most = Texts(after.policy, None if before is None else before.policy), options["most"]
    impact = measure_impact(texts, at=at, shown=most, progress=_progress("subject versions"))
    past: dict[str, Past] = {}
    if since is not None:
        past["verdicts"] = past_verdicts(after.policy, since=since, shown=most, progress=_progress("verdicts"))
        past["decisions"] = past_decisions(after.policy, since=since, shown=most, progress=_progress("decisions"))
    if options["format"] == "json":
        value = {
            "policy": after.as_value(),
            "against": None if before is None else before.as_value(),
            "at": at,
            "now": impact.as_value(),
            "past": None if since is None else {"since": since, **{kind: found.as_value() for kind, found in past.items()}},
        }
        out.write(json.dumps(json.loads(canonical_bytes(value)), indent=2, ensure_ascii=False))
    else:
        lines = _told(after, before, impact, at)
        for kind, found in past.items():
            lines += _told_of_the_past(kind, found, options["since"])
        out.write("\n".join(lines))
    opened = not impact.no_new_access or any(found.counts[Change.NEWLY_PERMITTED] for found in past.values())
    return FOUND if options["fail_on_new_access"] and opened else 0


# --- what is compared


def _named(given: str, *, field: str) -> _Named:
    if Path(given).is_file():
        return _Named(given, compiled(given, known_names()), None)
    name, _, number = given.rpartition("@")
    if not (name and number.isdigit()):
        name, number = given, ""
    try:
        policy = get_policy(name)
    except NotFound as refusal:
        raise InputRefused([Problem(f"{refusal}, and no file is called `{given}`", field=field)]) from None
    versions = PolicyVersion.objects.filter(policy=policy).select_related("policy").order_by("-number")
    version = versions.filter(number=int(number)).first() if number else versions.first()
    if version is None:
        raise InputRefused([Problem(f"policy `{name}` has no version `{number}`", field=field)])
    return _Named(f"{name}@{version.number}", compile_version(version), version)


def _against(given: str | None, after: _Named) -> _Named | None:
    if given == NONE:
        return None
    if given is not None:
        return _named(given, field="--against")
    policy = Policy.objects.filter(name=after.policy.name).first()
    version = None if policy is None else version_in_force(policy)
    return None if version is None else _Named(f"{after.policy.name}@{version.number}", compile_version(version), version)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 1_000_000:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number up to 1,000,000")
    return int(text)


# --- what is told


def _progress(what: str) -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def told(done: int, whole: int) -> None:
        sys.stderr.write(f"\r{done:,} of {whole:,} {what}" + ("\n" if done >= whole else ""))
        sys.stderr.flush()

    return told


def _told(after: _Named, before: _Named | None, impact: Impact, at: datetime) -> list[str]:
    against = f"{before.name}" if before is not None else "nothing: no version is in force"
    lines = [f"{after.name} against {against} — as of {timestamp(at)[:16].replace('T', ' ')} UTC", ""]
    lines += [
        f"newly permitted  {impact.counts[Change.NEWLY_PERMITTED]:>10,}",
        f"newly refused    {impact.counts[Change.NEWLY_REFUSED]:>10,}",
        f"unchanged        {impact.counts[Change.UNCHANGED]:>10,}",
        f"near the edge    {impact.near:>10,}   at most {NEAR} points from turning",
        "",
        "no new access: yes" if impact.no_new_access else f"no new access: NO — {'; '.join(impact.why)}",
    ]
    for title, rows, whole in (
        ("newly permitted", impact.newly_permitted, impact.counts[Change.NEWLY_PERMITTED]),
        ("newly refused", impact.newly_refused, impact.counts[Change.NEWLY_REFUSED]),
        ("nearest to the edge", impact.nearest, len(impact.nearest)),
    ):
        if rows:
            lines += ["", title, *_table(rows), *([f"  and {whole - len(rows):,} more"] if whole > len(rows) else [])]
    for title, grants, whole in (
        ("live grants that it would no longer carry", impact.grants_refused, impact.grants_refused_count),
        ("live grants that it would carry again", impact.grants_permitted, impact.grants_permitted_count),
    ):
        if whole:
            lines += ["", f"{title}: {whole:,}", *(f"  {uid}" for uid in grants)]
    return lines


def _told_of_the_past(kind: str, past: Past, since: str) -> list[str]:
    permitted, refused = past.counts[Change.NEWLY_PERMITTED], past.counts[Change.NEWLY_REFUSED]
    untold = f", {past.untold:,} of which the record does not tell" if past.untold else ""
    lines = ["", f"{kind} since {since}: {permitted:,} would have been permitted, {refused:,} refused{untold}"]
    for title, rows, whole in (("permitted", past.newly_permitted, permitted), ("refused", past.newly_refused, refused)):
        if rows:
            lines += [f"would have been {title}", *_columns([_past(row) for row in rows])]
            lines += [f"  and {whole - len(rows):,} more"] if whole > len(rows) else []
    return lines


def _past(row: PastRow) -> tuple[str, ...]:
    return row.uid, row.subject, row.place, f"{timestamp(row.at)[:16].replace('T', ' ')} UTC"


def _table(rows: Sequence[ImpactRow]) -> list[str]:
    return _columns([(f"{row.subject} v{row.subject_version}", _place(row), _words(row), _distance(row)) for row in rows])


def _columns(shown: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in shown]


def _place(row: ImpactRow) -> str:
    systems = f"({row.systems})" if row.systems else ""
    return systems if row.domain == ANY_DOMAIN else f"{row.domain} {systems}".rstrip()


def _words(row: ImpactRow) -> str:
    after = str(Said(row.after).label)
    return after if row.before == row.after else f"{Said(row.before).label} → {after}"


def _distance(row: ImpactRow) -> str:
    return "" if row.distance is None else f"{plain(row.distance)} points from turning"
