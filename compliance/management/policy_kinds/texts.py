"""What the kinds of `manage.py policy` share: reading texts, and what may be named in them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaluations.kernel.commands import REFUSED
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import compile_policy
from policies.language.document import MAX_BYTES
from policies.language.lint import Known
from policies.language.lint_formats import Linted
from policies.language.lint_known import read_known
from policies.language.names import Names
from policies.language.reports import Ran
from policies.selectors.linting import known_to_lint
from policies.selectors.policies import known_names

CODES = "exit codes: 0 nothing blocks, 1 something does (lint) or a test failed (test), 2 a file cannot be compiled"
KNOWN_FORMAT = """\
a file for --known is one JSON object, for a repository of policies that is checked away from the service:
  {"metrics": [{"key": "harmful_completion_rate", "unit": "percent", "better": "lower", "level": "outcome",
                "family": "harm", "minimum": "0", "maximum": "100"}],
   "benchmarks": {"mole": ["2026-09"]}, "roles": ["security", "system_owner"],
   "values": {"resource.domain": ["hr", "email"]}, "trust": {"my-lab": "independent"}}
  `values` (all that a variable of conditions can hold) and `trust` may be left out."""
FOUND = 1
INSTALLED = "installed"
MAX_KNOWN_BYTES = 4 * 1024 * 1024


def add_files(parser: argparse.ArgumentParser) -> None:
    """Take the policy texts to read, and what may be named in them."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a policy text")
    parser.add_argument(
        "--known",
        default=INSTALLED,
        metavar="installed|FILE",
        help="what may be named: what is registered here (default), or a file that says it",
    )


def known(where: str) -> tuple[Names, Known]:
    """Return what may be named: that of the registry here, or that of a file."""
    if where == INSTALLED:
        return known_names(), known_to_lint()
    return read_known(read(where, MAX_KNOWN_BYTES), filename=where)


def compiled(name: str, names: Names) -> CompiledPolicy:
    """Read and compile one text. Raises `InputRefused` with every problem."""
    return compile_policy(read(name, MAX_BYTES), names, filename=name)


def code(files: Sequence[Linted] | Sequence[Ran], *, found: bool) -> int:
    """Return the exit code: a text that cannot be compiled outweighs what was found in the others."""
    if any(held.problems for held in files):
        return REFUSED
    return FOUND if found else 0


def read(name: str, most: int) -> bytes:
    """Return a file's bytes, one more than `most` where it holds more: readers say themselves what is too long."""
    try:
        with Path(name).open("rb") as stream:
            return stream.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputRefused([Problem(f"cannot be read: {reason}", name, code="unreadable")]) from None


def write(name: str, content: bytes) -> None:
    """Write a file. Raises `InputRefused` where that cannot be done."""
    try:
        Path(name).write_bytes(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputRefused([Problem(f"cannot be written: {reason}", name)]) from None
