"""`manage.py policy`: look at policy texts, try them, and carry them to and fro."""

import argparse
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from compliance.management.policy_kinds import diff, impact, lint, pull, push, schema, test
from evaluations.kernel.commands import ExampleCommand

_KINDS: dict[str, Any] = {
    "lint": lint,
    "test": test,
    "diff": diff,
    "impact": impact,
    "pull": pull,
    "push": push,
    "schema": schema,
}


class Command(ExampleCommand):
    help = (
        "Policies as code: lint, test and compare policy texts, see what they would change, pull them into a folder for version "
        "control and push them from there, or print the JSON Schema for editors. Each kind has its own --help."
    )
    examples: ClassVar[str] = """\
  manage.py policy lint policies/*.yaml                       what would they let through that nobody meant?
  manage.py policy lint a.yaml --format sarif > lint.sarif    for a code scanning service
  manage.py policy test a.yaml --junit report.xml             run its tests, and report them to CI
  manage.py policy diff hr-writes hr-writes.yaml              what would the file change in meaning?
  manage.py policy impact a.yaml --fail-on-new-access         whom would it newly permit?
  manage.py policy pull policies/                             the texts in force, byte for byte
  manage.py policy push policies/ --dry-run                   what would be proposed?
  manage.py policy schema > policy.schema.json                for the editor that completes and checks
"""

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar=" | ".join(_KINDS), title="what to do")
        for name, kind in _KINDS.items():
            kind.add_arguments(
                kinds.add_parser(
                    name,
                    help=kind.HELP,
                    description=kind.HELP,
                    epilog=f"examples:\n{kind.EXAMPLES.rstrip()}",
                    formatter_class=argparse.RawDescriptionHelpFormatter,
                )
            )

    def handle(self, *args: Any, **options: Any) -> None:
        code = _KINDS[options["kind"]].run(self.stdout, options)
        if code:
            raise SystemExit(code)
