"""`manage.py gate`: which candidates does a policy clear, and why not the others?"""

import csv
import json
from datetime import timedelta
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from evaluations.kernel.clock import now, parse_instant
from evaluations.kernel.commands import ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.tables import safe_cell, text_table
from policies.language.explain import sentence
from policies.language.flip_sentences import flip_sentence
from policies.models import Policy
from policies.selectors.gate import Gate, GateRow, ask_gate
from policies.selectors.policies import get_policy, version_to_judge
from policies.selectors.systems import get_system
from policies.vocabulary import ANY_DOMAIN, Outcome, Result

DEFAULT_POLICY = "unattended-writes"
NOT_ALL_CLEARED = 3
CLOCK_TOLERANCE = timedelta(minutes=5)
CSV_HEADER = ("subject", "domain", "outcome", "result", "rule", "rule_result", "message", "evidence")


class Command(ExampleCommand):
    help = (
        "Judge every candidate by a policy and say why not the others. Reads only: nothing is stored. "
        "Without --policy, the policy `unattended-writes` is asked."
    )
    examples: ClassVar[str] = """\
  manage.py gate                                             who may hold unattended write access?
  manage.py gate --explain                                   and the nearest evidence that would flip each refusal
  manage.py gate --policy refusal-gate --format json         the same question of one policy, for a program
  manage.py gate --system workday-prod --require-cleared     exit 3 unless every candidate clears
  manage.py gate --policy demo-writes --as-of 2027-03-01     how will it stand when today's evidence has aged?
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--policy", default=DEFAULT_POLICY, metavar="NAME", help="the policy to judge by")
        parser.add_argument("--system", metavar="KEY", help="judge for the domain of this system")
        parser.add_argument("--as-of", metavar="TIME", help="the instant to judge at, which ages evidence (default: now)")
        parser.add_argument("--known-at", metavar="TIME", help="judge on what had been recorded by then (default: now)")
        parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
        parser.add_argument(
            "--explain",
            action="store_true",
            help="say under the table what would flip each refusal, and what that would likely cost (json always does)",
        )
        parser.add_argument("--require-cleared", action="store_true", help="exit 3 unless every candidate clears")

    def handle(self, *args: Any, **options: Any) -> None:
        moment = now()
        as_of = parse_instant(options["as_of"], field="--as-of") if options["as_of"] else moment
        known_at = parse_instant(options["known_at"], field="--known-at") if options["known_at"] else moment
        if known_at > moment + CLOCK_TOLERANCE:
            raise InputRefused([Problem("lies in the future", field="--known-at", hint="nobody knows yet what will be recorded")])
        if not Policy.objects.exists():
            raise InputRefused([Problem("no policy is loaded yet", hint="run `manage.py quickstart` first")])
        version = version_to_judge(get_policy(options["policy"]), known_at=known_at)
        system = get_system(options["system"]) if options["system"] else None
        gate = ask_gate(version, as_of=as_of, known_at=known_at, system=system)
        getattr(self, f"_print_{options['format']}")(gate)
        if options["explain"] and options["format"] == "table":
            self.stdout.write(render_flips(gate))
        if options["require_cleared"] and (not gate.total or gate.cleared < gate.total):
            raise SystemExit(NOT_ALL_CLEARED)

    def _print_table(self, gate: Gate) -> None:
        self.stdout.write(render_table(gate))

    def _print_json(self, gate: Gate) -> None:
        self.stdout.write(json.dumps(gate.as_value(), indent=2, ensure_ascii=False))

    def _print_csv(self, gate: Gate) -> None:
        writer = csv.writer(self.stdout)
        writer.writerow(CSV_HEADER)
        for candidate in gate.as_value()["candidates"]:
            start = [candidate["subject"], candidate["domain"], candidate["outcome"], candidate["result"]]
            for rule in candidate["rules"]:
                row = [*start, rule["id"], rule["result"], rule["message"], " ".join(rule["evidence"])]
                writer.writerow([safe_cell(cell) for cell in row])


def render_table(gate: Gate) -> str:
    """Return the answer as a table for people, with a heading that says what was judged and when, and a sum at the end."""
    heading = (
        f"{gate.policy_version.policy.name} v{gate.policy_version.number} ({gate.state}) — "
        f"as of {gate.as_of:%Y-%m-%d %H:%M} UTC, on what was known at {gate.known_at:%Y-%m-%d %H:%M} UTC"
    )
    if not gate.rows:
        return f"{heading}\n\nNo candidate is registered: mark a subject as a candidate, or run `manage.py quickstart`."
    table = text_table(
        ("CANDIDATE", "DOMAIN", "VERDICT", "WHY"),
        [(row.version.subject.key, row.domain, Result(row.result).label, _why(gate, row)) for row in gate.rows],
    )
    return f"{heading}\n\n{table}\n\n{gate.cleared} of {gate.total} cleared."


def render_flips(gate: Gate) -> str:
    """Return, for each refusal, the rules that refuse and what would flip each."""
    room = get_terminal_size((120, 24)).columns
    lines: list[str] = []
    for row in gate.rows:
        where = "" if row.domain == ANY_DOMAIN else f" in {row.domain}"
        told = gate.flips(row)
        if told:
            lines += ["", f"What would flip {row.version.subject.key}{where}:"]
        for flip in told:
            text = f"{flip.rule}: {flip_sentence(flip, gate.compiled)}"
            # A name or a figure is never broken in two: it may be copied.
            lines.append(
                fill(text, room, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
            )
    return "\n".join(lines)


def _why(gate: Gate, row: GateRow) -> str:
    if row.judgement is None:
        return row.no_verdict
    told = [rule for rule in row.judgement.rules if row.outcome == Outcome.PASS or rule.result != Result.PASS]
    return " ".join(sentence(rule, gate.compiled) for rule in told)
