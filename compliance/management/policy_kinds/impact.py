"""`manage.py policy impact`: whom would a policy newly permit or refuse, now and over the past?"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from compliance.management.policy_kinds.texts import FOUND, compiled
from compliance.selectors.impact import NEAR, SHOWN, Impact, ImpactRow, Texts, measure_impact
from evaluations.kernel.canonical import canonical_bytes, timestamp
from evaluations.kernel.clock import now
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
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--most", type=_count, default=SHOWN, metavar="N", help=f"rows of each list (default: {SHOWN})")
    parser.add_argument(
        "--fail-on-new-access", action="store_true", help="exit code 1 unless it is sure that nobody is newly permitted"
    )


def run(out: Any, options: dict[str, Any]) -> int:
    at = now()
    after = _named(options["policy"], field="A")
    before = _against(options["against"], after)
    texts = Texts(after.policy, None if before is None else before.policy)
    impact = measure_impact(texts, at=at, shown=options["most"], progress=_progress())
    if options["format"] == "json":
        value = {
            "policy": after.as_value(),
            "against": None if before is None else before.as_value(),
            "at": at,
            "now": impact.as_value(),
        }
        out.write(json.dumps(json.loads(canonical_bytes(value)), indent=2, ensure_ascii=False))
    else:
        out.write("\n".join(_told(after, before, impact, at)))
    return FOUND if options["fail_on_new_access"] and not impact.no_new_access else 0


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


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def told(done: int, whole: int) -> None:
        sys.stderr.write(f"\r{done:,} of {whole:,} subject versions" + ("\n" if done >= whole else ""))
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


def _table(rows: Sequence[ImpactRow]) -> list[str]:
    shown = [(f"{row.subject} v{row.subject_version}", _place(row), _words(row), _distance(row)) for row in rows]
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
