"""What the two forms of results on Hugging Face share: claims on a repository's page, each about the model the repository is of.

Neither form has n, errors, a status or a harness, so a claim has no k and no n, and no bound can clear. Who wrote it is the owner of
the card, or anybody whose change was merged. A source that speaks of another model makes the evidence borrowed: it stays under the
name as written, is marked, and its run's status is `unknown`, which never qualifies. A `verifyToken` is worth something once it is
checked with its issuer's key; that is not done here, so it is told and makes no claim more than one.

Whether a value is 51.1 or 0.511 is said by the profile; the two in one file are refused as a mix and never scaled.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers import profiles
from evaluations.importers.base import Intake
from evaluations.importers.fields import Faults, NumberText, is_absent, shown
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact_text
from evaluations.importers.profiles import Measure

_CARD = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)")
_NO_MODEL = ("datasets/", "spaces/", "papers/", "docs/", "blog/", "collections/", "api/")


class Claim(NamedTuple):
    """One value of a file: its place, the task it is of by the form's own words, and what stands beside it."""

    place: str
    names: Mapping[str, str]
    value: object
    source: str
    token: bool
    ended_at: datetime | None
    notes: tuple[str, ...]


def card_of(url: str) -> str:
    """Return the model whose page an address is, as "owner/name", or "" where it is none."""
    found = _CARD.match(url)
    return "" if found is None or found[1].startswith(_NO_MODEL) else found[1]


def borrowed(subject: str, url: str) -> str:
    """Return the other model that a source speaks of, or ""."""
    other = card_of(url)
    own = subject.split(" (", maxsplit=1)[0].strip()
    return other if other and other.lower() != own.lower() else ""


def make(
    claims: list[Claim], *, subject: str, measures: tuple[Measure, ...], keys: tuple[str, ...], maker: Maker, intake: Intake
) -> None:
    """Add the pairs of the claims that the profile names; each field of `keys` that a measure states must be the claim's."""
    found: list[tuple[Claim, Measure]] = []
    for claim in claims:
        mine = [each for each in measures if _is_meant(each, claim, keys, intake)]
        found.extend((claim, each) for each in mine)
    if not found and not maker.problems:
        told = "; ".join(", ".join(f"{key} {shown(name)}" for key, name in claim.names.items() if name) for claim in claims[:5])
        maker.problems.add(
            "the profile names none of its values", code="unknown_score", hint=f"map one in the profile; it has {told}"
        )
    numbers: dict[int, list[tuple[str, Decimal]]] = {}
    worth: dict[str, Decimal] = {}
    for claim, measure in found:
        number = exact_text(str(claim.value)) if isinstance(claim.value, NumberText) else None
        if number is None:
            hint = "a value is a finite number; `n/a` and text are none"
            maker.problems.add(f"{shown(claim.value)} is no number", field=f"{claim.place}.value", code="not_a_number", hint=hint)
            continue
        worth[claim.place] = number
        numbers.setdefault(id(measure), []).append((claim.place, number))
    for measure in measures:
        mixed = profiles.mix_of_units(numbers.get(id(measure), []), measure)
        if mixed is not None:
            hint = "the file mixes units, or the profile says the wrong one; nothing is scaled"
            maker.problems.add(mixed[1], field=f"{mixed[0]}.value", code="unit_mix", hint=hint)
    seen: dict[tuple[str, str, str, str], str] = {}
    for claim, measure in found:
        key = measure.definition.key, measure.benchmark, measure.version, measure.slice
        if key in seen:
            message = f"it is a second value for {measure.definition.key}, beside {seen[key]}"
            hint = "give each a measure with a slice or version of its own"
            maker.problems.add(message, field=claim.place, code="duplicate", hint=hint)
        seen.setdefault(key, claim.place)
    if maker.problems:
        return
    for claim, measure in found:
        _observe(claim, measure, worth[claim.place], subject, maker, intake)


def _is_meant(measure: Measure, claim: Claim, keys: tuple[str, ...], intake: Intake) -> bool:
    fields = intake.profile.fields if intake.profile else {}
    wanted = {key: measure.own.get(key, fields.get(key)) for key in keys}
    return measure.of == claim.names["of"] and all(want is None or want == claim.names[key] for key, want in wanted.items())


def _observe(claim: Claim, measure: Measure, number: Decimal, subject: str, maker: Maker, intake: Intake) -> None:
    definition = measure.definition
    value = against(measure.in_our_unit(number), definition.better)
    if value < definition.minimum or (definition.maximum is not None and value > definition.maximum):
        hint = f"{definition.key} goes from {definition.minimum} to {definition.maximum}"
        maker.problems.add(f"{claim.value} is out of range", field=f"{claim.place}.value", code="out_of_range", hint=hint)
        return
    other = borrowed(subject, claim.source)
    evidence = maker.evidence(
        subject,
        provenance="claim",
        run_status="unknown" if other else "complete",
        run_ended_at=claim.ended_at,
        published_at=intake.published_at,
        locator=claim.place,
        notes=[
            f"borrowed: the source is the card of {other}, another model" if other else "",
            f"source {claim.source[:200]}" if claim.source else "no source is named",
            "a token to verify it is there, and was not checked" if claim.token else "self-reported",
            *claim.notes,
            profiles.told(intake.profile) if intake.profile else "",
        ],
    )
    on = On(measure.benchmark, measure.version, measure.slice)
    maker.value(evidence, value, str(claim.value), definition, on=on, locator=claim.place)


def text_at(holder: object, field: str, place: str, maker: Maker) -> str:
    """Return a name as written in an object, in ASCII, or "" where absent or after adding why not."""
    faults: Faults = []
    raw = holder if isinstance(holder, dict) else {}
    value: Any = raw.get(field)
    text = "" if is_absent(value) else name_of({field: str(value)}, field, faults, required=False)
    maker.report(faults, place=(place,))
    return text
