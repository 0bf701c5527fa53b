"""`manage.py policy diff`: what differs in meaning, and in text, between two policies."""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from compliance.management.policy_kinds.texts import INSTALLED, compiled, known
from evaluations.kernel.errors import InputRefused, Problem
from policies.language.compiled import CompiledPolicy
from policies.language.lint_formats import shown
from policies.language.meaning import MeaningChange, changes_of_meaning, unified
from policies.language.names import Names
from policies.models import PolicyVersion
from policies.selectors.policies import compile_version, get_policy, version_to_compare, version_to_judge

HELP = (
    "Say what differs between two policies, in meaning and in text. A is the older one; exit code 2 where one cannot be compiled."
)
EXAMPLES = """\
  manage.py policy diff hr-writes@2 hr-writes@3      two stored versions
  manage.py policy diff hr-writes@3                  against what it would replace
  manage.py policy diff hr-writes new.yaml           the version in force, else the newest, against a file
  manage.py policy diff old.yaml new.yaml --known names.json --format json
"""


class _Side(NamedTuple):
    name: str
    policy: CompiledPolicy
    version: PolicyVersion | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a policy text, a policy's name, or NAME@NUMBER")
    parser.add_argument("b", metavar="B", nargs="?", help="likewise; left out, A is compared with what it would replace")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "--known",
        default=INSTALLED,
        metavar="installed|FILE",
        help="what may be named in files: what is registered here (default)",
    )


def run(out: Any, options: dict[str, Any]) -> int:
    names, _ = known(options["known"])
    first = _side(options["a"], names)
    before, after = (_replaced(first), first) if options["b"] is None else (first, _side(options["b"], names))
    changes = changes_of_meaning(before.policy, after.policy)
    lines = unified(before.policy.text, after.policy.text, named=(before.name, after.name))
    out.write(_json(before, after, changes, lines) if options["format"] == "json" else _text(before, after, changes, lines))
    return 0


def _side(name: str, names: Names) -> _Side:
    """Return the policy that an argument names; a file of that name comes first."""
    policy, _, number = name.partition("@")
    if Path(name).exists():
        return _Side(name, compiled(name, names), None)
    if "/" in name or name.endswith((".yaml", ".yml", ".json")):
        raise InputRefused([Problem("there is no such file", name, code="unreadable")])
    found = get_policy(policy)
    if not number:
        return _stored(version_to_judge(found))
    version = (
        found.versions.filter(number=int(number)).first() if number.isascii() and number.isdigit() and len(number) < 10 else None
    )
    if version is None:
        raise InputRefused([Problem(f"`{policy}` has no version `{number}`", hint="write NAME@NUMBER")])
    return _stored(version)


def _replaced(side: _Side) -> _Side:
    if side.version is None:
        return _stored(version_to_judge(get_policy(side.policy.name)))
    before = version_to_compare(side.version)
    if before is None:
        raise InputRefused([Problem(f"`{side.name}` is the first version: there is nothing to compare it with", hint="name B")])
    return _stored(before)


def _stored(version: PolicyVersion) -> _Side:
    return _Side(f"{version.policy.name}@{version.number}", compile_version(version), version)


def _text(before: _Side, after: _Side, changes: tuple[MeaningChange, ...], lines: list[str]) -> str:
    told = [f"{change.direction:<7} {change.path}: {change.sentence}" for change in changes]
    if not told:
        told = ["nothing differs in meaning" if lines else "nothing differs"]
    return "\n".join(shown(line) for line in [f"{before.name} → {after.name}", *told, *(["", *lines] if lines else [])])


def _json(before: _Side, after: _Side, changes: tuple[MeaningChange, ...], lines: list[str]) -> str:
    value = {
        "before": {"name": before.name, "digest": before.policy.digest},
        "after": {"name": after.name, "digest": after.policy.digest},
        "changes": [{**change._asdict(), "sentence": change.sentence} for change in changes],
        "text_diff": lines,
    }
    return json.dumps(value, indent=2, ensure_ascii=False)
