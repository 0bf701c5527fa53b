"""Tests of a long policy, kept in a file beside it: one key, `tests`, with entries of the same shape as in the policy itself.

They are held against a compiled policy exactly as its own tests are, and refused with file, line and column. Activation runs
only what travels in the signed text.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from evaluations.kernel.errors import InputRefused
from policies.language.checks import Checks
from policies.language.compiled import CompiledPolicy
from policies.language.compiler import in_order, resolved_test
from policies.language.document import Node, read_document
from policies.language.names import Names
from policies.language.noting import child, entries, items, text_of
from policies.language.shapes import CasesShape
from policies.language.shaping import shape_as


class Cases(NamedTuple):
    """Tests in their resolved form, and the line of each, by name."""

    tests: tuple[Mapping[str, Any], ...]
    lines: Mapping[str, int]

    def added_to(self, compiled: CompiledPolicy) -> CompiledPolicy:
        """Return the policy with these tests after its own; text and digests stay those of the policy."""
        return replace(compiled, tests=(*compiled.tests, *self.tests))


def read_cases(text: bytes, compiled: CompiledPolicy, *, filename: str = "") -> Cases:
    """Return the tests of a case file for a compiled policy. Raises `InputRefused` with every problem."""
    root, problems = read_document(text, filename=filename)
    shaped: CasesShape | None = None
    if root is not None:
        shaped, found = shape_as(CasesShape, root, filename)
        problems = [*problems, *found, *_checked(root, compiled, filename)]
    if problems or shaped is None or root is None:
        raise InputRefused(in_order(problems))
    lines = {text_of(child(item, "name")) or "": item.line for item in items(child(root, "tests"))}
    return Cases(tuple(resolved_test(item) for item in shaped.tests), lines)


def _checked(root: Node, compiled: CompiledPolicy, filename: str) -> list[Any]:
    """Return what is wrong with the names that the tests use, by the checks that a policy's own tests pass."""
    policy, _ = read_document(compiled.text)
    spec = child(policy, "spec") or Node({}, 1, 1)
    tests = child(root, "tests") or Node([], root.line, root.column)
    grafted = Node({**entries(spec), "tests": tests}, root.line, root.column)
    checks = Checks(Node({"spec": grafted}, root.line, root.column), Names.for_replay({}), filename)
    checks.tests()
    own = {test["name"] for test in compiled.tests}
    for item in items(tests):
        named = child(item, "name")
        if named is not None and text_of(named) in own:
            checks.note(named, f"the policy has a test `{named.value}` of its own", "duplicate_id", "write another name")
    return checks.problems
