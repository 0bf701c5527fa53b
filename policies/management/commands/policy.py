"""`manage.py policy`: look at policy texts before they are proposed. Reads files and the registry; stores nothing."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import CommandParser

from evaluations.kernel.commands import REFUSED, ExampleCommand
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy, json_schema
from policies.language.document import MAX_BYTES
from policies.language.lint import Known, lint
from policies.language.lint_formats import FORMATS, Linted, Ran, blocks, junit, render_lint, render_tests
from policies.language.lint_known import read_known
from policies.language.names import Names
from policies.language.testing import run_tests
from policies.selectors.linting import known_to_lint
from policies.selectors.policies import known_names

FOUND = 1
INSTALLED = "installed"
MAX_KNOWN_BYTES = 4 * 1024 * 1024
_CODES = "exit codes: 0 nothing blocks, 1 something does (lint) or a test failed (test), 2 a file cannot be compiled"
_KNOWN = """\
a file for --known is one JSON object, for a repository of policies that is checked away from the service:
  {"metrics": [{"key": "harmful_completion_rate", "unit": "percent", "better": "lower", "level": "outcome",
                "family": "harm", "minimum": "0", "maximum": "100"}],
   "benchmarks": {"mole": ["2026-09"]}, "roles": ["security", "system_owner"],
   "values": {"resource.domain": ["hr", "email"]}, "trust": {"my-lab": "independent"}}
  `values` (all that a variable of conditions can hold) and `trust` may be left out."""


class Command(ExampleCommand):
    help = f"Lint policy texts, run the tests that travel with them, or print the JSON Schema for editors. {_CODES}."
    examples: ClassVar[str] = """\
  manage.py policy lint policies/*.yaml                       what would they let through that nobody meant?
  manage.py policy lint a.yaml --format sarif > lint.sarif    for a code scanning service
  manage.py policy test a.yaml --junit report.xml             run its tests, and report them to CI
  manage.py policy schema > policy.schema.json                for the editor that completes and checks
"""

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", required=True, metavar="lint | test | schema", title="what to do")
        linting = _kind(kinds, "lint", "Say what each policy would let through. " + _CODES + ".", _LINT_EXAMPLES)
        testing = _kind(kinds, "test", "Run the tests that travel with each policy. " + _CODES + ".", _TEST_EXAMPLES)
        _kind(kinds, "schema", "Print the JSON Schema of a policy text.", _SCHEMA_EXAMPLES)
        linting.add_argument("--format", choices=FORMATS, default="text", help="default: text")
        testing.add_argument("--junit", metavar="FILE", help="write the reports there too, as JUnit XML")
        for reading in (linting, testing):
            reading.add_argument("files", nargs="+", metavar="FILE", help="a policy text")
            reading.add_argument(
                "--known", default=INSTALLED, metavar="installed|FILE",
                help="what may be named: what is registered here (default), or a file that says it",
            )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        code = getattr(self, f"_{options['kind']}")(options)
        if code:
            raise SystemExit(code)

    def _schema(self, options: dict[str, Any]) -> int:
        self.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return 0

    def _lint(self, options: dict[str, Any]) -> int:
        names, known = _known(options["known"])
        files = [_linted(name, names, known) for name in options["files"]]
        told = render_lint(files, options["format"])
        if told:
            self.stdout.write(told)
        return _code(files, found=blocks(files))

    def _test(self, options: dict[str, Any]) -> int:
        names, _ = _known(options["known"])
        files = [_tested(name, names) for name in options["files"]]
        if options["junit"]:
            _write(options["junit"], junit(files))
        self.stdout.write(render_tests(files))
        return _code(files, found=any(not report.passed for held in files for report in held.reports))


_LINT_EXAMPLES = f"""\
  manage.py policy lint policies/*.yaml
  manage.py policy lint policies/*.yaml --format github            annotations in a pull request
  manage.py policy lint policies/*.yaml --format sarif > lint.sarif
  manage.py policy lint policies/*.yaml --known names.json         by names kept beside them

{_KNOWN}
"""
_TEST_EXAMPLES = """\
  manage.py policy test policies/*.yaml
  manage.py policy test policies/*.yaml --junit report.xml --known names.json
"""
_SCHEMA_EXAMPLES = "  manage.py policy schema > policy.schema.json"


def _kind(kinds: Any, name: str, told: str, examples: str) -> CommandParser:
    made: CommandParser = kinds.add_parser(
        name,
        help=told,
        description=told,
        epilog=f"examples:\n{examples.rstrip()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return made


def _known(where: str) -> tuple[Names, Known]:
    if where == INSTALLED:
        return known_names(), known_to_lint()
    return read_known(_read(where, MAX_KNOWN_BYTES), filename=where)


def _linted(name: str, names: Names, known: Known) -> Linted:
    try:
        compiled = _compiled(name, names)
    except InputRefused as refusal:
        return Linted(name, problems=tuple(refusal.problems))
    return Linted(name, compiled.name, compiled.digest, lint(compiled, known))


def _tested(name: str, names: Names) -> Ran:
    try:
        compiled = _compiled(name, names)
    except InputRefused as refusal:
        return Ran(name, problems=tuple(refusal.problems))
    return Ran(name, compiled.name, run_tests(compiled))


def _compiled(name: str, names: Names) -> CompiledPolicy:
    return compile_policy(_read(name, MAX_BYTES), names, filename=name)


def _code(files: Sequence[Linted] | Sequence[Ran], *, found: bool) -> int:
    if any(held.problems for held in files):
        return REFUSED
    return FOUND if found else 0


def _read(name: str, most: int) -> bytes:
    """Return a file's bytes, one more than `most` where it holds more: readers say themselves what is too long."""
    try:
        with Path(name).open("rb") as stream:
            return stream.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputRefused([Problem(f"cannot be read: {reason}", name, code="unreadable")]) from None


def _write(name: str, content: bytes) -> None:
    try:
        Path(name).write_bytes(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputRefused([Problem(f"cannot be written: {reason}", name)]) from None
