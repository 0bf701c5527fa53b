"""What a lint found, written for people and for the tools that read such findings. Pure.

SARIF is 2.1.0 (OASIS), as code scanning services read it; `github` is the workflow commands of GitHub Actions.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from evaluations.kernel.errors import Problem
from policies.language.lint import BLOCKING, MEANINGS, Finding, Level

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
