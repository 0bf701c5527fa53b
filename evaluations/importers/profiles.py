"""Profiles: what people say once about the numbers of one source, where the source's files do not say it.

A profile is a small JSON object, kept as a file beside the data or in `evaluations/data/profiles/`:

    {"format": "writegate-profile/1", "name": "our-refusal-suite", "importer": "promptfoo", …}

What else it holds is up to the importer it is for; each says so in its own module. A file whose numbers are called `score`,
`mean` or `accuracy` is refused without one: the same word is a refusal rate in one log and an exploit rate in the next.
Metric, unit and benchmark are always stated; no unit is ever taken from the size of a number.
"""

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.importers.base import Problems, Profile, refuse
from evaluations.importers.decoding import decode_text
from evaluations.importers.drafts import slice_of
from evaluations.importers.fields import Fault, Faults, shown, text_of, unknown_fields, word_of
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.names import name_of

FORMAT = "writegate-profile/1"
MAX_PROFILE_BYTES = 256 * 1024
UNITS = ("percent", "fraction", "usd", "count")
"""Units as a profile may state them; a fraction is multiplied by 100 on the profile's word."""

COMMON = ("format", "name", "importer")
TARGET = ("metric", "unit", "benchmark", "version", "slice", "below_one")


class Measure(NamedTuple):
    """One number of a source, named `of` there, and what it is of ours. `unit` is the unit it is written in.

    `below_one` says that percents below 1 are real ones, and no fractions that slipped in.
    """

    of: str
    metric: str
    unit: str
    benchmark: str
    version: str
    slice: str
    below_one: bool

    @property
    def our_unit(self) -> str:
        return "percent" if self.unit == "fraction" else self.unit


def read_profile(data: bytes, *, name: str) -> Profile:
    """Return the profile in a file. Raises `InputRefused` naming file and field."""
    if len(data) > MAX_PROFILE_BYTES:
        raise refuse("a profile has at most 256 KiB", file=name, code="too_large", hint="give the profile, not the data")
    problems = Problems(name)
    value = parse(decode_text(data, name=name), problems)
    if not isinstance(value, dict):
        raise refuse(
            f"a profile is an object, not {kind_of(value)}", file=name, code="unknown_shape", hint=f'{{"format": "{FORMAT}", …}}'
        )
    faults: Faults = []
    word_of(value, "format", (FORMAT,), faults)
    title = text_of(value, "name", faults, required=True)
    importer = text_of(value, "importer", faults, required=True)
    for fault in faults:
        problems.add(fault.message, field=fault.field, code=fault.code, hint=fault.hint)
    problems.raise_any()
    return Profile(title, importer, f"sha256:{hashlib.sha256(data).hexdigest()}", value)


def required(profile: Profile | None, importer: str, *, file: str, why: str) -> Profile:
    """Return the profile, or refuse: none was given, or it is for another format."""
    if profile is None:
        raise refuse(
            why,
            file=file,
            field="profile",
            code="profile_missing",
            hint=f"say what they mean in a profile for {importer}, and give it with --profile",
        )
    if profile.format != importer:
        raise refuse(
            f"the profile {shown(profile.name)} is for {profile.format}",
            file=file,
            field="profile",
            code="wrong_profile",
            hint=f"give one whose `importer` is {importer}",
        )
    return profile


def measures_of(profile: Profile, faults: Faults, *, also: tuple[str, ...] = ()) -> list[tuple[Measure, Mapping[str, Any]]]:
    """Return the measures of a profile, each with its raw fields, of which those in `also` belong to the importer.

    Benchmark and version may stand once at the top for all.
    """
    listed = profile.fields.get("measures")
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        faults.append(
            Fault("measures", "it is no list of objects", 'write [{"of": "…", "metric": "…", "unit": "percent"}]', "missing")
        )
        return []
    found: list[tuple[Measure, Mapping[str, Any]]] = []
    for index, each in enumerate(listed):
        mine: Faults = []
        unknown_fields(each, ("of", *TARGET, *also), mine)
        raw = {**{field: profile.fields.get(field) for field in ("benchmark", "version", "slice")}, **each}
        measure = Measure(
            of=text_of(raw, "of", mine, required=True),
            metric=text_of(raw, "metric", mine, required=True),
            unit=word_of(raw, "unit", UNITS, mine),
            benchmark=name_of(raw, "benchmark", mine),
            version=name_of(raw, "version", mine),
            slice=slice_of(raw, mine),
            below_one=raw.get("below_one") is True,
        )
        faults.extend(fault._replace(field=f"measures[{index}].{fault.field}") for fault in mine)
        found.append((measure, each))
    return found


def names_of(profile: Profile, field: str, faults: Faults) -> dict[str, str]:
    """Return an object of the profile that maps names as the files write them to names as written on record."""
    given = profile.fields.get(field, {})
    if not isinstance(given, dict):
        faults.append(Fault(field, f"it is {kind_of(given)}", 'write {"name in the file": "name"}'))
        return {}
    return {key: name_of(given, key, faults) for key in given}


def scaled(value: Decimal, unit: str) -> Decimal:
    """Return a number in our unit: a fraction becomes percent."""
    return value * 100 if unit == "fraction" else value


def doubtful(value: Decimal, unit: str, *, below_one: bool) -> str:
    """Return why a number may be in another unit than its column, or "". Only to refuse: size never chooses a unit.

    51.1 and 0.511 in one table are a mix. In a column of fractions a number above 1 is none. In a column of percents one
    between 0 and 1 is either a small rate or a fraction; it stands only where the profile says that small ones are real.
    """
    if unit == "fraction" and value > 1:
        return "it is above 1 in a column of fractions"
    if unit == "percent" and 0 < value < 1 and not below_one:
        return "it is below 1 in a column of percents, and may be a fraction"
    return ""
