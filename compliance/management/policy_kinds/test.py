"""`manage.py policy test`: run the tests that travel with a policy."""

import argparse
from typing import Any

from compliance.management.policy_kinds.texts import CODES, add_files, code, compiled, known, write
from evaluations.kernel.errors import InputRefused
from policies.language.lint_formats import Ran, junit, render_tests
from policies.language.names import Names
from policies.language.testing import run_tests

HELP = f"Run the tests that travel with each policy. {CODES}."
EXAMPLES = """\
  manage.py policy test policies/*.yaml
  manage.py policy test policies/*.yaml --junit report.xml --known names.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--junit", metavar="FILE", help="write the reports there too, as JUnit XML")
    add_files(parser)


def run(out: Any, options: dict[str, Any]) -> int:
    names, _ = known(options["known"])
    files = [_tested(name, names) for name in options["files"]]
    if options["junit"]:
        write(options["junit"], junit(files))
    out.write(render_tests(files))
    return code(files, found=any(not report.passed for held in files for report in held.reports))


def _tested(name: str, names: Names) -> Ran:
    try:
        policy = compiled(name, names)
    except InputRefused as refusal:
        return Ran(name, problems=tuple(refusal.problems))
    return Ran(name, policy.name, run_tests(policy))
