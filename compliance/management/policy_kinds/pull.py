"""`manage.py policy pull`: the texts of policies into a folder, for version control."""

import argparse
from pathlib import Path
from typing import Any

from compliance.management.policy_kinds.folder import MANIFEST, Pulled, counted, write_folder
from evaluations.kernel.errors import InputRefused, Problem
from policies.models import Policy, PolicyVersion
from policies.selectors.policies import get_policy, version_in_force, version_to_judge

HELP = (
    f"Write each policy's version in force to DIR/NAME.yaml, byte for byte, and what was written to DIR/{MANIFEST}. "
    "What was changed there since the last pull is not written over. Exit codes: 0 done, 2 nothing was written."
)
EXAMPLES = """\
  manage.py policy pull policies/                                  every policy that has a version in force
  manage.py policy pull policies/ --all                            also those that have none yet: their newest
  manage.py policy pull policies/ --version hr-writes@3            this version, to write the next one from it
  manage.py policy pull policies/ --force                          write over local changes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--all", action="store_true", help="where no version is in force, the newest")
    chosen.add_argument(
        "--version", action="append", metavar="NAME@NUMBER", dest="versions", help="only this one; may be repeated"
    )
    parser.add_argument("--force", action="store_true", help="write over what was changed there")


def run(out: Any, options: dict[str, Any]) -> int:
    versions = _named(options["versions"]) if options["versions"] else _every(newest=options["all"])
    texts = [(Pulled(held.policy.name, held.number, held.digest), bytes(held.text)) for held in versions]
    written = write_folder(options["folder"], texts, force=options["force"])
    for path in written:
        out.write(str(path))
    out.write(f"{counted(len(texts), 'policy', 'policies')}, {counted(len(written), 'file', 'files')} written")
    return 0


def _every(*, newest: bool) -> list[PolicyVersion]:
    found = [version_to_judge(policy) if newest else version_in_force(policy) for policy in Policy.objects.order_by("name")]
    return [version for version in found if version is not None]


def _named(asked: list[str]) -> list[PolicyVersion]:
    found: dict[str, PolicyVersion] = {}
    problems: list[Problem] = []
    for word in asked:
        name, _, number = word.rpartition("@")
        digits = number.isascii() and number.isdigit() and len(number) < 10
        version = get_policy(name).versions.filter(number=int(number)).first() if name and digits else None
        if version is None:
            problems.append(Problem(f"there is no version `{word}`", field="--version", hint="NAME@NUMBER, such as hr-writes@3"))
        elif found.setdefault(name, version) != version:
            problems.append(Problem(f"two versions of `{name}` cannot lie in one file", field="--version", hint="name one"))
    if problems:
        raise InputRefused(problems)
    return list(found.values())
