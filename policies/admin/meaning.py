"""A policy version as its page explains it: what it changes, its text with the lint's findings beside it, and its own tests."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html_join

from evaluations.kernel.display import Cell, Custom, Fields, Mark, Table, anchor, chip, link, ticked, url_of
from policies.admin.marks import lint_chip
from policies.language.compiled import CompiledPolicy
from policies.language.meaning import Direction, MeaningChange, changes_of_meaning, unified
from policies.models import PolicyVersion
from policies.selectors.linting import Checked
from policies.selectors.policies import changes_between, compile_readable, version_to_compare

_MARKS = {
    Direction.LOOSER: Mark("looser", "fail", "lock_open"),
    Direction.TIGHTER: Mark("tighter", "pass", "lock"),
    Direction.OTHER: Mark("other", "neutral", "swap_horiz"),
}
_PASSES, _FAILS = Mark("passes", "pass", "check_circle"), Mark("fails", "fail", "cancel")
_DIFF_TONES = {"+": "added", "-": "gone", "@": "where"}
SHOWN_VERSIONS = 50


def shown_meaning(changes: Iterable[Mapping[str, Any]]) -> list[tuple[Cell, Cell]]:
    """Return each change's chip and sentence; `changes` hold the fields of a `MeaningChange`, as dossiers keep them."""
    found = (MeaningChange(*(change[name] for name in MeaningChange._fields)) for change in changes)
    return [(chip(_MARKS[Direction(change.direction)]), ticked(change.sentence)) for change in found]


def directions_of(versions: Sequence[PolicyVersion]) -> dict[int, Cell]:
    """Return of each version, by its id, in which directions it differs in meaning from the number before it.

    `versions` are of one policy, newest first; of the last one nothing is said unless it is the first.
    """
    compiled, _ = compile_readable(versions)
    return {
        version.pk: _directions(
            compiled.get(version.pk), None if before is None else compiled.get(before.pk), first=before is None
        )
        for version, before in zip_longest(versions, versions[1:])
    }


def _directions(after: CompiledPolicy | None, before: CompiledPolicy | None, *, first: bool) -> Cell:
    if first:
        return "the first one"
    if after is None or before is None:
        return "cannot be read"
    found = Counter(change.direction for change in changes_of_meaning(before, after))
    # What both say alike means the same, whatever their texts look like.
    chips = [chip(_MARKS[word]._replace(word=f"{_MARKS[word].word}: {found[word]}")) for word in _MARKS if found[word]]
    return format_html_join(" ", "{}", ((one,) for one in chips)) or "the same meaning"


def changes_section(version: PolicyVersion, request: HttpRequest) -> Custom | Fields:
    """Return what a version changes against the one that the address names by `against`, else against what it would replace."""
    others = list(
        PolicyVersion.objects.filter(policy=version.policy_id)
        .exclude(pk=version.pk)
        .order_by("-number")
        .values_list("number", flat=True)
    )
    asked = request.GET.get("against", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else None
    before = version_to_compare(version)
    if number in others:
        before = PolicyVersion.objects.select_related("policy").get(policy=version.policy_id, number=number)
    if before is None:
        return Fields("What it changes", [("Compared with", "nothing: it is the first version of its policy")])
    named = (f"{version.policy.name}@{before.number}", f"{version.policy.name}@{version.number}")
    lines = unified(bytes(before.text), bytes(version.text), named=named)
    own = url_of(version)
    data = {
        "before": link(before, f"v{before.number}"),
        "changes": shown_meaning(change._asdict() for change in changes_between(before, version)),
        "lines": [(_DIFF_TONES.get(line[:1], ""), line) for line in lines[2:]],
        "others": [anchor(f"{own}?against={other}", f"v{other}") for other in others[:SHOWN_VERSIONS] if other != before.number],
    }
    return Custom("What it changes", "writegate/sections/version_changes.html", data)


def text_section(version: PolicyVersion, checked: Checked, resolved: str) -> Custom:
    """Return the text line by line, each finding of the lint beside its line, and the meaning with every default filled in."""
    found = defaultdict(list)
    for finding in checked.findings:
        told = ticked(f"{finding.message}; {finding.hint}")
        found[finding.line].append({"chip": lint_chip(finding.level), "code": finding.code, "told": told})
    text = bytes(version.text).decode("utf-8", "replace").splitlines()
    data = {
        "lines": [(number, line, found.get(number, ())) for number, line in enumerate(text, start=1)],
        "blocking": len(checked.blocking),
        "warnings": len(checked.findings) - len(checked.blocking),
        "resolved": resolved,
    }
    return Custom("Text and meaning", "writegate/sections/policy_text.html", data)


def tests_section(checked: Checked) -> Table:
    """Return how the policy's own tests come out: the same bytes come out the same each time."""
    return Table(
        "Its own tests",
        ("Test", "Line", "Result", "What came out otherwise"),
        [
            [report.name, str(line), chip(_PASSES if report.passed else _FAILS), "; ".join(report.problems) or "nothing"]
            for report, line in checked.tests
        ],
        empty="It has none, so it cannot come into force.",
        note="Run over these very bytes, by the metrics registered now." if checked.tests else "",
    )
