"""What a verification says: one finding for each thing that is wrong, by kind and index, or by the part it was found in. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What sort of fault it is."""

    ALTERED = "altered"
    MISSING = "missing"
    DUPLICATED = "duplicated"
    REORDERED = "re-ordered"
    INSERTED = "inserted"
    FORKED = "forked"
    BAD_SIGNATURE = "bad signature"
    OLDER = "older than the checkpoint held"
    UNPROVED = "not proved"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `index` is the entry's place in the log where there is one, `part` the member of the export."""

    kind: Kind
    detail: str
    index: int | None = None
    part: str = ""

    def __str__(self) -> str:
        place = f"entry {self.index}" if self.index is not None else self.part
        return f"{self.kind}: {place}: {self.detail}" if place else f"{self.kind}: {self.detail}"


class Unreadable(ValueError):
    """Not an export or proof that can be judged at all."""


@dataclass
class Report:
    """The result: `facts` are the words for a person, in order; `findings` is empty when all of it verifies."""

    facts: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def is_ok(self) -> bool:
        """True when nothing was found wrong."""
        return not self.findings

    def add(self, kind: Kind, detail: str, *, index: int | None = None, part: str = "") -> None:
        """Note a fault."""
        self.findings.append(Finding(kind, detail, index, part))
