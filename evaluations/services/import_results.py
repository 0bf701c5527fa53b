"""What became of an import's rows, in one shape for every door: taken, held for want of a known name, refused with reason and place."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.selectors.evidence import held_observations
from evaluations.services.evidence import Imported

MAX_SHOWN = 50


class ImportResult(NamedTuple):
    """`taken` counts observations that were recorded; `held` those of their documents that count for nobody, by name as written, until
    somebody says which subject version it means; `repeated` counts evidence that was there already, from the same bytes.

    Imports are all or nothing: where anything was refused, nothing was taken, and `refused` says why and where.
    """

    documents: tuple[str, ...] = ()
    evidence: int = 0
    taken: int = 0
    held: Mapping[str, int] = {}
    repeated: int = 0
    refused: tuple[Problem, ...] = ()

    @property
    def held_count(self) -> int:
        return sum(self.held.values())


def result_of(imported: Sequence[Imported]) -> ImportResult:
    """Return what an import recorded. Reads which names are known now."""
    return ImportResult(
        documents=tuple(each.document.digest for each in imported),
        evidence=sum(each.evidence for each in imported),
        taken=sum(each.observations for each in imported),
        held=held_observations([each.document.pk for each in imported], known_at=now()),
        repeated=sum(each.repeated for each in imported),
    )


def result_of_refusal(refusal: InputRefused) -> ImportResult:
    """Return that nothing was taken, and why."""
    return ImportResult(refused=tuple(refusal.problems))


def problem_values(problems: Sequence[Problem], *, most: int = MAX_SHOWN) -> list[dict[str, Any]]:
    """Return problems as a row of state keeps them: what each states of itself, the first `most` of them."""
    return [{name: held for name, held in each._asdict().items() if held not in ("", None)} for each in problems[:most]]
