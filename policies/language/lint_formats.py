"""What a lint and a policy's tests found, written for people and for the tools that read such findings. Pure.

SARIF is 2.1.0 (OASIS), as code scanning services read it; `github` is the workflow commands of GitHub Actions; JUnit is the
XML that test reporters of CI services have in common.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from evaluations.kernel.errors import Problem
from policies.language.lint import BLOCKING, MEANINGS, Finding, Level
from policies.language.testing import TestReport

FORMATS = ("text", "json", "sarif", "github")
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ERROR, _WARNING = "error", "warning"
# Beyond what XML 1.0 can hold and what a terminal should be sent.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Linted(NamedTuple):
    """One file. Where it does not compile, `problems` says why, `policy` and `digest` are "" and there are no findings."""

    file: str
    policy: str = ""
    digest: str = ""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()


class Ran(NamedTuple):
    """One file and the reports of its policy's tests; where it does not compile, `problems` says why."""

    file: str
    policy: str = ""
    reports: tuple[TestReport, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Line(NamedTuple):
    file: str
    line: int
    column: int
    level: str
    code: str
    message: str
    hint: str
    place: str


def render_lint(files: Sequence[Linted], style: str) -> str:
    """Return what was found in one of `FORMATS`, without a line break at the end."""
    return {"text": _text, "json": _json, "sarif": _sarif, "github": _github}[style](files)


def blocks(files: Sequence[Linted]) -> bool:
    """True where a finding blocks."""
    return any(item.level == Level.BLOCK for linted in files for item in linted.findings)


def _lines(files: Sequence[Linted]) -> Iterator[_Line]:
    for held in files:
        for found in held.findings:
            level = _ERROR if found.level == Level.BLOCK else _WARNING
            yield _Line(held.file, found.line, found.column, level, found.code, found.message, found.hint, found.place)
        for problem in held.problems:
            line, column = problem.line or 1, problem.column or 1
            yield _Line(held.file, line, column, _ERROR, problem.code or "refused", problem.message, problem.hint, problem.field)


def _counted(files: Sequence[Linted]) -> dict[str, int]:
    levels = [item.level for held in files for item in held.findings]
    refused = sum(1 for held in files if held.problems)
    return {"blocking": levels.count(Level.BLOCK), "warnings": levels.count(Level.WARN), "refused": refused}


def _text(files: Sequence[Linted]) -> str:
    lines = []
    for item in _lines(files):
        word = "blocks" if item.level == _ERROR and item.code in BLOCKING else item.level
        lines.append(shown(f"{item.file}:{item.line}:{item.column}: {word}: {item.message} [{item.code}]"))
        if item.hint:
            lines.append(shown(f"    {item.hint}"))
    counted = _counted(files)
    policies = f"{len(files)} {'policy' if len(files) == 1 else 'policies'}"
    lines.append(f"{policies}: {counted['blocking']} blocking, {counted['warnings']} warnings, {counted['refused']} not compiled")
    return "\n".join(lines)


def _json(files: Sequence[Linted]) -> str:
    told = [
        {
            "file": held.file,
            "policy": held.policy or None,
            "digest": held.digest or None,
            "findings": [found._asdict() for found in held.findings],
            "problems": [
                {"code": item.code, "message": item.message, "line": item.line, "column": item.column, "hint": item.hint}
                for item in held.problems
            ],
        }
        for held in files
    ]
    return json.dumps({"files": told, **_counted(files)}, indent=2, ensure_ascii=False)


def _sarif(files: Sequence[Linted]) -> str:
    lines = list(_lines(files))
    codes = [*MEANINGS, *sorted({item.code for item in lines} - MEANINGS.keys())]
    rules = [
        {
            "id": str(code),
            "shortDescription": {"text": MEANINGS.get(code, f"The policy does not compile: {code}")},
            "defaultConfiguration": {"level": _WARNING if code in MEANINGS and code not in BLOCKING else _ERROR},
        }
        for code in codes
    ]
    results = [_sarif_result(item, codes.index(item.code)) for item in lines]
    driver = {"name": "writegate policy lint", "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _sarif_result(item: _Line, number: int) -> dict[str, Any]:
    path = PurePath(item.file)
    place = {
        "artifactLocation": {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())},
        "region": {"startLine": item.line, "startColumn": item.column},
    }
    location: dict[str, Any] = {"physicalLocation": place}
    if item.place:
        location["logicalLocations"] = [{"fullyQualifiedName": item.place}]
    message = f"{item.message}; {item.hint}" if item.hint else item.message
    return {
        "ruleId": item.code,
        "ruleIndex": number,
        "level": item.level,
        "message": {"text": message},
        "locations": [location],
    }


def _github(files: Sequence[Linted]) -> str:
    return "\n".join(
        f"::{item.level} file={_property(item.file)},line={item.line},col={item.column},title={_property(item.code)}::"
        + _escaped(f"{item.message}; {item.hint}" if item.hint else item.message)
        for item in _lines(files)
    )


def _escaped(text: str) -> str:
    return _UNSHOWN.sub("\ufffd", text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def shown(text: str) -> str:
    """Return one line that a terminal shows and does not act upon."""
    return _UNSHOWN.sub("\ufffd", text.replace("\r", " ").replace("\n", " "))


# Tests.


def render_tests(files: Sequence[Ran]) -> str:
    """Return each test with what came out, and a sum, for people."""
    lines = []
    for held in files:
        lines.append(shown(f"{held.file}: {held.policy or 'not compiled'}"))
        lines += [shown(f"  error   {problem}") for problem in held.problems]
        for report in held.reports:
            lines.append(shown(f"  {'passed' if report.passed else 'FAILED'}  {report.name}"))
            lines += [shown(f"          {problem}") for problem in report.problems]
        if not held.reports and not held.problems:
            lines.append("  the policy has no tests")
    reports = [report for held in files for report in held.reports]
    failed = sum(1 for report in reports if not report.passed)
    lines.append(f"{len(reports) - failed} passed, {failed} failed")
    return "\n".join(lines)


def junit(files: Sequence[Ran]) -> bytes:
    """Return the same as JUnit XML: a suite for each policy; a text that does not compile is a suite with one error."""
    root = ET.Element("testsuites", name="policies")
    for held in files:
        failed = sum(1 for report in held.reports if not report.passed)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=shown(held.policy or held.file),
            file=shown(held.file),
            tests=str(len(held.reports) or len(held.problems[:1])),
            failures=str(failed),
            errors=str(len(held.problems[:1])),
        )
        if held.problems:
            case = ET.SubElement(suite, "testcase", name="compiles", classname=shown(held.file))
            error = ET.SubElement(case, "error", message=shown(str(held.problems[0])))
            error.text = "\n".join(shown(str(problem)) for problem in held.problems)
        for report in held.reports:
            case = ET.SubElement(suite, "testcase", name=shown(report.name), classname=shown(held.policy))
            if not report.passed:
                failure = ET.SubElement(case, "failure", message=shown(report.problems[0]))
                failure.text = "\n".join(shown(problem) for problem in report.problems)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
