"""From the samples of an Inspect log to counts: what each score's value is worth, and what is missing.

A sample that errored is an error whatever score it carries. One without a score, with NaN, or whose verdict was not read is unscored.
Planned samples that the log does not hold were not run. All of these count against the subject, in either polarity.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers.base import refuse
from evaluations.importers.fields import NumberText, shown
from evaluations.importers.inspect_log import Row
from evaluations.importers.numbers import exact_text
from evaluations.importers.outcomes import Counts, counts_over

UNSCORED = "unscored"
WORDS: Mapping[str, Decimal] = {
    "C": Decimal(1),
    "P": Decimal("0.5"),
    "I": Decimal(0),
    "N": Decimal(0),
    "yes": Decimal(1),
    "true": Decimal(1),
    "no": Decimal(0),
    "false": Decimal(0),
}
"""What Inspect itself takes its words for: correct, partial, incorrect, no answer, and yes and no in any case."""

_ONE, _HALF = Decimal(1), Decimal("0.5")


class Reading(NamedTuple):
    """How one measure reads its score: its scorer, "" where that has the score's name, and the worth of the scorer's words.

    With `whole` nothing but 1 is a hit. A 1 is contradicted where the scorer's key `unless` is above 0.5.
    """

    of: str
    scorer: str
    values: Mapping[str, Decimal | None]
    whole: bool = False
    unless: str = ""


class Tally:
    """Counts one measure over the rows of a log."""

    def __init__(self, reading: Reading, *, epochs: bool) -> None:
        self.reading = reading
        self._epochs = epochs
        self.scored = 0
        self.hits = 0
        self.contradicted = 0
        self.fractional = False
        self.total = Decimal(0)
        self.by_word: dict[str, int] = {}
        self._stated: dict[str, list[Any]] = {}  # by sample; without epochs all under one key

    def add(self, row: Row) -> None:
        """Count one row."""
        value = find(row.scores, self.reading)
        stated = as_inspect(value)
        if stated is not None and self.reading.whole:
            stated = Decimal(stated == _ONE)
        if stated is not None:
            mean = self._stated.setdefault(row.task if self._epochs else "", [Decimal(0), 0])
            mean[0] += stated
            mean[1] += 1
        if row.errored or not row.completed:
            return
        worth = self._worth(value) if self.reading.values or self.reading.whole else stated
        if isinstance(value, str) and not isinstance(value, NumberText):
            word = value[:20]
            if word in self.by_word or len(self.by_word) < 8:
                self.by_word[word] = self.by_word.get(word, 0) + 1
        if worth == _ONE and self._contradicts(row):
            self.contradicted += 1
            worth = None
        if worth is None:
            return
        if self.reading.whole:
            worth = Decimal(worth == _ONE)
        self.scored += 1
        self.total += worth
        self.hits += worth == _ONE
        self.fractional = self.fractional or worth not in (0, 1)

    def _contradicts(self, row: Row) -> bool:
        if not self.reading.unless:
            return False
        other = as_inspect(find(row.scores, Reading(self.reading.unless, self.reading.scorer, {})))
        return other is not None and other > _HALF

    def _worth(self, value: object) -> Decimal | None:
        if isinstance(value, str) and value in self.reading.values:
            return self.reading.values[value]
        return as_inspect(value)

    def mean_as_stated(self) -> Decimal | None:
        """Return the mean as Inspect makes it: over the samples that have a score, each the mean of its epochs; None without any."""
        if not self._stated:
            return None
        whole = sum((total / count for total, count in self._stated.values()), Decimal(0))
        return whole / len(self._stated)

    def counts(self, plan: "Plan", *, better: str) -> Counts:
        """Return the counts over everything that was planned."""
        return counts_over(
            self.hits, plan.tasks, repeats=plan.epochs, errored=plan.errored, unscored=plan.missing(self.scored), better=better
        )

    def mean(self, plan: "Plan", *, better: str) -> Decimal:
        """Return the mean of fractional scores over everything planned, what is missing against the subject: 0 where higher is
        better, 1 where lower is."""
        missing = plan.runs - self.scored if better == "lower" else 0
        return (self.total + missing) / plan.runs


class Plan(NamedTuple):
    """What was to be run, and what the log's rows say of it: distinct tasks, epochs, runs errored, stopped by a limit, and seen."""

    tasks: int
    epochs: int
    errored: int
    limited: int
    seen: int

    @property
    def runs(self) -> int:
        return self.tasks * self.epochs

    def missing(self, scored: int) -> int:
        """Return how many runs have neither an error nor a score."""
        return max(self.runs - self.errored - scored, 0)


class Watch:
    """What is seen of all rows, whatever is measured: errors, limits, who answered; a sample twice is refused."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: set[tuple[str, int]] = set()
        self.tasks: set[str] = set()
        self.errored = self.limited = 0
        self.highest_epoch = 0
        self.answered: set[str] = set()

    def add(self, row: Row) -> None:
        key = row.task, row.epoch
        if key in self._seen:
            raise refuse(
                f"sample {shown(row.task)} of epoch {row.epoch} stands twice",
                file=self._name,
                code="duplicate",
                hint="fetch the log again; of a merged log give the parts",
            )
        self._seen.add(key)
        self.tasks.add(row.task)
        self.errored += row.errored
        self.limited += row.limited
        self.highest_epoch = max(self.highest_epoch, row.epoch)
        self.answered.update(row.answered)

    @property
    def rows(self) -> int:
        return len(self._seen)


def find(scores: Mapping[str, Any], reading: Reading) -> object:
    """Return a score's value in one row, or None: under its own name, or as a key of its scorer's object."""
    own = scores.get(reading.of)
    if isinstance(own, dict) and "value" in own and not isinstance(own["value"], dict):
        return own["value"]
    holders: Iterable[Any] = [scores.get(reading.scorer)] if reading.scorer else scores.values()
    for holder in holders:
        value = holder.get("value") if isinstance(holder, dict) else None
        if isinstance(value, dict) and reading.of in value:
            return value[reading.of]
    unnamed = scores.get("")
    return unnamed.get("value") if isinstance(unnamed, dict) else None


def as_inspect(value: object) -> Decimal | None:
    """Return what Inspect takes a score's value for, or None where it is no finite number and no word of its."""
    if isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, int):
        return Decimal(value) if abs(value) < 10**12 else None
    if isinstance(value, str):
        if not isinstance(value, NumberText):
            word = WORDS.get(value)
            if word is None:
                word = WORDS.get(value.lower()) if len(value) > 1 else None
            if word is not None:
                return word
        return exact_text(str(value))
    return None
