"""`manage.py policy lint`: what would a policy let through that nobody meant?"""

import argparse
from typing import Any

from compliance.management.policy_kinds.texts import CODES, KNOWN_FORMAT, add_files, code, compiled, known
from evaluations.kernel.errors import InputRefused
from policies.language.lint import Known, lint
from policies.language.lint_formats import FORMATS, Linted, blocks, render_lint
from policies.language.names import Names

HELP = f"Say what each policy would let through. {CODES}."
EXAMPLES = f"""\
  manage.py policy lint policies/*.yaml
  manage.py policy lint policies/*.yaml --format github            annotations in a pull request
  manage.py policy lint policies/*.yaml --format sarif > lint.sarif
  manage.py policy lint policies/*.yaml --known names.json         by names kept beside them

{KNOWN_FORMAT}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    add_files(parser)


def run(out: Any, options: dict[str, Any]) -> int:
    names, about = known(options["known"])
    files = [_linted(name, names, about) for name in options["files"]]
    told = render_lint(files, options["format"])
    if told:
        out.write(told)
    return code(files, found=blocks(files))


def _linted(name: str, names: Names, about: Known) -> Linted:
    try:
        policy = compiled(name, names)
    except InputRefused as refusal:
        return Linted(name, problems=tuple(refusal.problems))
    return Linted(name, policy.name, policy.digest, lint(policy, about))
