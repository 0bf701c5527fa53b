"""`manage.py policy test`: run the tests that travel with a policy, and those kept beside it."""

import argparse
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from compliance.management.policy_kinds.texts import CODES, add_files, code, compiled, known, read, write
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.cases import Cases, read_cases
from policies.language.compiled import CompiledPolicy
from policies.language.document import MAX_BYTES
from policies.language.lint_mutants import score_mutants
from policies.language.lint_places import Places
from policies.language.names import Names
from policies.language.reports import Ran, Told, below, junit, render_tests
from policies.language.testing import run_tests

HELP = f"Run the tests that travel with each policy, and say what they would not notice. {CODES}."
EXAMPLES = """\
  manage.py policy test policies/*.yaml
  manage.py policy test policies/*.yaml --junit report.xml --known names.json
  manage.py policy test long.yaml --cases long.cases.yaml          more tests, under the one key `tests`
  manage.py policy test policies/*.yaml --cases policies/          of each NAME.yaml those in policies/NAME.cases.yaml
  manage.py policy test policies/*.yaml --mutation                 exit code 1 while a change of a policy goes unnoticed
  manage.py policy test policies/*.yaml --min-score 90             or only while more than one in ten does
"""
ALL_NOTICED = Decimal(100)
SUFFIX = ".cases.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", metavar="DIR|FILE", help="more tests: a file for the one policy, or where NAME.cases.yaml lie")
    parser.add_argument("--junit", metavar="FILE", help="write the reports there too, as JUnit XML")
    parser.add_argument(
        "--mutation",
        action="store_true",
        help="change each rule and clause a little and run the tests again: what no test notices is named, and the exit code is 1",
    )
    parser.add_argument(
        "--min-score",
        type=_percent,
        metavar="N",
        help="how many percent of the changes must be noticed (default: 100); implies --mutation",
    )
    add_files(parser)


def run(out: Any, options: dict[str, Any]) -> int:
    began = time.monotonic()
    if options["cases"] and not Path(options["cases"]).is_dir() and len(options["files"]) > 1:
        hint = "name the directory in which NAME.cases.yaml lie, or test one policy at a time"
        raise InputRefused([Problem("one file of cases cannot belong to several policies", field="--cases", hint=hint)])
    names, _ = known(options["known"])
    mutate = options["mutation"] or options["min_score"] is not None
    asked = ALL_NOTICED if options["min_score"] is None else options["min_score"]
    files = [_tested(name, names, options["cases"], mutate=mutate) for name in options["files"]]
    if options["junit"]:
        write(options["junit"], junit(files))
    out.write(render_tests(files, seconds=time.monotonic() - began, min_score=asked))
    return code(files, found=any(held.failed for held in files) or below(files, asked))


def _tested(name: str, names: Names, cases: str | None, *, mutate: bool) -> Ran:
    try:
        policy = compiled(name, names)
        more, place = _cases(name, cases, policy)
    except InputRefused as refusal:
        return Ran(name, problems=tuple(refusal.problems))
    whole = policy if more is None else more.added_to(policy)
    places = Places(policy.text)
    told = tuple(
        Told(report, place, more.lines[report.name])
        if more is not None and report.name in more.lines
        else Told(report, name, places.test(report.name)[0])
        for report in run_tests(whole)
    )
    return Ran(name, policy.name, told, score=score_mutants(whole) if mutate else None, text=policy.text)


def _cases(name: str, cases: str | None, policy: CompiledPolicy) -> tuple[Cases | None, str]:
    """Return the tests kept beside a policy and their file; None where there are none."""
    if cases is None:
        return None, ""
    path = Path(cases)
    if path.is_dir():
        path = path / f"{Path(name).stem}{SUFFIX}"
        if not path.exists():
            return None, ""
    return read_cases(read(str(path), MAX_BYTES), policy, filename=str(path)), str(path)


def _percent(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal(-1)
    if not number.is_finite() or not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 0 to 100")
    return number
