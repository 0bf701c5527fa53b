"""Which lines were altered, dropped, doubled, moved or slipped in: a file's hashes beside the hashes it must have. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import takewhile

from compliance.ledger.findings import Finding, Kind

Label = Callable[[int], int]


def explain(expected: Sequence[bytes], got: Sequence[bytes], label: Label, *, part: str) -> list[Finding]:
    """Return the differences, by index. `label` turns a position among the expected into the log's index.

    Lines that are where they belong are the longest run of known lines in rising order; everything else is judged against them. A
    foreign line stands for a missing one where one is missing at that place (altered), else it was slipped in.
    """
    # Nearly all of it is alike at both ends; only what lies between is looked at.
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(expected, got, strict=False)))
    shorter = min(len(expected), len(got)) - head
    ends = zip(expected[: head - 1 if head else None : -1], got[: head - 1 if head else None : -1], strict=False)
    tail = min(shorter, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends)))
    middle = _Middle(range(head, len(expected) - tail), head, label, part)
    lines = got[head : len(got) - tail]
    place_of = {leaf: place for place, leaf in enumerate(expected)} if lines else {}
    findings = middle.differences([place_of.get(leaf, -1) for leaf in lines])
    return sorted(findings, key=lambda finding: (finding.index if finding.index is not None else -1, finding.kind))


class _Middle:
    """The places between the two ends that are alike, and the lines that stand there instead of them."""

    def __init__(self, places: range, first_line: int, label: Label, part: str) -> None:
        self._places = places
        self._first_line = first_line
        self._label = label
        self._part = part

    def differences(self, found: list[int]) -> list[Finding]:
        """Return the findings for lines of known place (or -1), which are all the lines of the middle."""
        anchored = _rising([place if place in self._places else -1 for place in found])
        present = set(found)
        missing = [place for place in self._places if place not in present]
        return self._moved(found, anchored) + self._gaps(found, anchored, missing)

    def _moved(self, found: list[int], anchored: set[int]) -> list[Finding]:
        findings: list[Finding] = []
        seen = {found[line] for line in anchored}
        for line, place in enumerate(found):
            if place < 0 or line in anchored:
                continue
            if place in seen or place not in self._places:
                findings.append(self._finding(Kind.DUPLICATED, place, f"it stands again on line {self._number(line)}"))
            else:
                seen.add(place)
                findings.append(self._finding(Kind.REORDERED, place, f"it stands on line {self._number(line)}, out of its place"))
        return findings

    def _gaps(self, found: list[int], anchored: set[int], missing: list[int]) -> list[Finding]:
        """Pair the foreign lines between two anchors with the entries that are missing between them."""
        findings: list[Finding] = []
        foreign: list[int] = []
        left, before = 0, self._places.start - 1
        for line, place in [*enumerate(found), (len(found), self._places.stop)]:
            if place < 0:
                foreign.append(line)
            elif line in anchored or line == len(found):
                start = left
                while left < len(missing) and missing[left] < place:
                    left += 1
                findings += self._gap(foreign, missing[start:left], before)
                foreign, before = [], place
        return findings

    def _gap(self, foreign: list[int], missing: list[int], before: int) -> list[Finding]:
        findings = [
            self._finding(Kind.ALTERED, place, f"line {self._number(line)} is not what was logged")
            for line, place in zip(foreign, missing, strict=False)
        ]
        findings += [self._finding(Kind.MISSING, place, "its line is not there") for place in missing[len(foreign) :]]
        for line in foreign[len(missing) :]:
            where = f"behind entry {self._label(before)}" if before >= 0 else "before the first entry"
            index = self._label(before) + 1 if before >= 0 else self._label(0)
            findings.append(Finding(Kind.INSERTED, f"line {self._number(line)}, {where}, was never logged", index, self._part))
        return findings

    def _finding(self, kind: Kind, place: int, detail: str) -> Finding:
        return Finding(kind, detail, self._label(place), self._part)

    def _number(self, line: int) -> int:
        return self._first_line + line + 1


def _rising(places: Sequence[int]) -> set[int]:
    """Return the lines of a longest strictly rising run of known places (patience sorting)."""
    tails: list[int] = []
    tail_lines: list[int] = []
    previous = [-1] * len(places)
    for line, place in enumerate(places):
        if place < 0:
            continue
        spot = bisect_left(tails, place)
        previous[line] = tail_lines[spot - 1] if spot else -1
        if spot == len(tails):
            tails.append(place)
            tail_lines.append(line)
        else:
            tails[spot] = place
            tail_lines[spot] = line
    chosen: set[int] = set()
    line = tail_lines[-1] if tail_lines else -1
    while line >= 0:
        chosen.add(line)
        line = previous[line]
    return chosen
