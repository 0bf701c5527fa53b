"""What a policy's tests said, written as pytest would and as JUnit, the XML that test reporters of CI services have in common. Pure."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple
from xml.etree import ElementTree as ET

from evaluations.kernel.errors import Problem
from policies.language.lint_formats import shown
from policies.language.lint_mutants import Mutant, Score
from policies.language.lint_places import Places
from policies.language.testing import TestReport

WIDTH = 79


class Told(NamedTuple):
    """One test's report and where the test stands."""

    report: TestReport
    file: str
    line: int


class Ran(NamedTuple):
    """One policy file and the reports of its policy's tests; where it (or a case file) cannot be read, `problems` says why.

    `score` and `text` are there where the policy was mutated.
    """

    file: str
    policy: str = ""
    tests: tuple[Told, ...] = ()
    problems: tuple[Problem, ...] = ()
    score: Score | None = None
    text: bytes = b""

    @property
    def failed(self) -> list[Told]:
        return [told for told in self.tests if not told.report.passed]


def render_tests(files: Sequence[Ran], *, seconds: float | None = None, min_score: Decimal = Decimal(100)) -> str:
    """Return each test with what came out, what failed and why, what survived, and a sum, for people."""
    lines = [*_progress(files)]
    failed = [(held, told) for held in files for told in held.failed]
    if failed:
        lines += ["", _ruled("FAILURES", "=")]
    for _, told in failed:
        lines.append(_ruled(told.report.name, "_"))
        lines += [f"{told.file}:{told.line}: {problem}" for problem in told.report.problems]
    refused = [(held, problem) for held in files for problem in held.problems]
    if refused:
        lines += ["", _ruled("ERRORS", "=")]
    lines += [str(problem) for _, problem in refused]
    lines += _mutation(files, min_score)
    if failed or refused:
        lines += ["", _ruled("short test summary info", "=")]
        lines += [f"FAILED {told.file}::{told.report.name} - {told.report.problems[0]}" for _, told in failed]
        lines += [f"ERROR {held.file} - {held.problems[0].message}" for held in files if held.problems]
    lines += ["", _ruled(_sum(files, seconds), "=")]
    return "\n".join(shown(line) for line in lines).lstrip("\n")


def below(files: Sequence[Ran], min_score: Decimal) -> bool:
    """True where the tests of a policy notice fewer of its changes than so many percent."""
    return any(held.score is not None and held.score.percent < min_score for held in files)


def _progress(files: Sequence[Ran]) -> Iterator[str]:
    total = sum(len(held.tests) for held in files)
    done = 0
    for held in files:
        if not held.tests and not held.problems:
            yield f"{held.file}: the policy `{held.policy}` has no tests"
        for told in held.tests:
            done += 1
            what = f"{told.file}::{told.report.name} {'PASSED' if told.report.passed else 'FAILED'}"
            yield f"{what.ljust(WIDTH - 7)} [{100 * done // total:3d}%]"


def _mutation(files: Sequence[Ran], min_score: Decimal) -> Iterator[str]:
    scored = [(held, held.score) for held in files if held.score is not None]
    if scored:
        yield ""
        yield _ruled("mutation score", "=")
    for held, score in scored:
        enough = "" if score.percent >= min_score else f", fewer than the {min_score:f} % asked for"
        yield f"{held.file}: {score.percent:f} %: {score.noticed} of {score.total} changes are noticed by a test{enough}"
        places = Places(held.text)
        for mutant in score.survivors:
            line, column = place_of(mutant, places)
            whose = f"rule `{mutant.rule}`" if mutant.rule else f"evidence `{mutant.clause}`"
            yield f"SURVIVED {held.file}:{line}:{column}: {whose}: {mutant.what}"
        for name in score.unfinished:
            yield f"SURVIVED {held.file}: `{name}`: not tried to the end, for the policy is too long: split it"


def place_of(mutant: Mutant, places: Places) -> tuple[int, int]:
    """Return line and column of what was changed."""
    if not mutant.rule:
        return places.clause(mutant.clause, "statistic")
    return places.rule(mutant.rule) if mutant.number is None else places.bar(mutant.rule, mutant.number)


def _sum(files: Sequence[Ran], seconds: float | None) -> str:
    tests = sum(len(held.tests) for held in files)
    failed = sum(len(held.failed) for held in files)
    errors = sum(1 for held in files if held.problems)
    parts = [f"{failed} failed"] if failed else []
    parts += [f"{tests - failed} passed"] if tests - failed or not (failed or errors) else []
    parts += [f"{errors} error{'' if errors == 1 else 's'}"] if errors else []
    return ", ".join(parts) + ("" if seconds is None else f" in {seconds:.2f}s")


def _ruled(text: str, sign: str) -> str:
    return f" {text} ".center(WIDTH, sign)


def junit(files: Sequence[Ran]) -> bytes:
    """Return the same as JUnit XML: a suite for each policy; what cannot be read is a suite's error, a survivor a failed case."""
    root = ET.Element("testsuites", name="policies")
    for held in files:
        survivors = [] if held.score is None else list(held.score.survivors)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=shown(held.policy or held.file),
            file=shown(held.file),
            tests=str(len(held.tests) + len(held.problems[:1]) + len(survivors)),
            failures=str(len(held.failed) + len(survivors)),
            errors=str(len(held.problems[:1])),
        )
        if held.problems:
            case = ET.SubElement(suite, "testcase", name="compiles", classname=shown(held.file))
            error = ET.SubElement(case, "error", message=shown(str(held.problems[0])))
            error.text = "\n".join(shown(str(problem)) for problem in held.problems)
        for told in held.tests:
            _case(suite, held, told.report.name, told.file, told.line, told.report.problems)
        places = Places(held.text) if survivors else None
        for mutant in survivors:
            line = place_of(mutant, places)[0] if places else 1
            name = f"a test notices: {mutant.rule or mutant.clause}: {mutant.what}"
            _case(suite, held, name, held.file, line, ("no test notices this change of the policy",))
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _case(suite: ET.Element, held: Ran, name: str, file: str, line: int, problems: Sequence[str]) -> None:
    case = ET.SubElement(suite, "testcase", name=shown(name), classname=shown(held.policy), file=shown(file), line=str(line))
    if problems:
        failure = ET.SubElement(case, "failure", message=shown(problems[0]))
        failure.text = "\n".join(shown(problem) for problem in problems)
