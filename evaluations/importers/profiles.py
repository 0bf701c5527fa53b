"""Profiles: what people say once about the numbers of one source, where the source's files do not say it.

A profile is a small JSON object in a file of one's own, or one of those in `evaluations/data/profiles/`:

    {"format": "writegate-profile/1", "name": "our-refusal-suite", "importer": "promptfoo",
     "benchmark": "our-suite", "version": "1",
     "measures": [{"of": "SafeRefusal", "metric": "harmful_refusal_rate", "better": "higher", "level": "task", "unit": "percent"}]}

`of` is the number's name in the files. `metric`, `benchmark` and `version` are registered keys, and `better` and `level` are the
metric's own, stated once more so that a polarity is never taken from a name. `unit` is the one the number is written in: percent,
fraction, usd or count; a fraction becomes percent on this word alone. `benchmark`, `version` and `slice` may stand once for all
measures. Whatever else a profile holds belongs to its importer, and is described in the importer's module.

A file whose numbers are called `score`, `mean` or `accuracy` is refused without one: the same word is a refusal rate in one log and an
exploit rate in the next. No unit is ever taken from the size of a number.
"""

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from evaluations.importers.base import MetricDefinition, Problems, Profile, Registry, refuse
from evaluations.importers.bundle_entries import LEVELS
from evaluations.importers.decoding import decode_text
from evaluations.importers.drafts import target_of
from evaluations.importers.fields import Fault, Faults, closest, is_absent, shown, text_of, unknown_fields, word_of
from evaluations.importers.jsontext import kind_of, line_of, locate, parse, path_text
from evaluations.importers.names import name_of

FORMAT = "writegate-profile/1"
BUNDLED = Path(__file__).parents[1] / "data" / "profiles"
MAX_PROFILE_BYTES = 256 * 1024
MAX_MEASURES = 500
UNITS = ("percent", "fraction", "usd", "count")
"""Units as a profile may state them; a fraction is multiplied by 100 on the profile's word."""

COMMON = ("format", "name", "importer", "about", "benchmark", "version", "slice", "measures")
"""Fields that every profile may have; `about` is for people."""
MEASURE = ("of", "metric", "better", "level", "unit", "benchmark", "version", "slice", "below_one")


class Measure(NamedTuple):
    """One number of a source, named `of` there, and what it is of ours. `unit` is the unit that it is written in.

    `below_one` says that percents below 1 are real ones, and no fractions that slipped in. `own` holds the importer's fields.
    """

    of: str
    definition: MetricDefinition
    unit: str
    benchmark: str
    version: str
    slice: str
    below_one: bool
    own: Mapping[str, Any]

    def in_our_unit(self, value: Decimal) -> Decimal:
        """Return a number in the metric's unit: a fraction becomes percent."""
        return value.scaleb(2) if self.unit == "fraction" else value


def bundled_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with the service."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.json")))


def load_profile(given: str) -> Profile:
    """Return a bundled profile by its name, or the one in a file. Raises `InputRefused`."""
    path = Path(given)
    if given in bundled_profiles() and not path.exists():
        path = BUNDLED / f"{given}.json"
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_PROFILE_BYTES + 1)
    except OSError as error:
        hint = f"give a file, or one of {', '.join(bundled_profiles())}"
        raise refuse(f"it cannot be read: {error.strerror}", file=given, field="profile", hint=hint) from error
    return read_profile(data, name=given)


def read_profile(data: bytes, *, name: str) -> Profile:
    """Return the profile in a file. Raises `InputRefused` naming file, line and field."""
    if len(data) > MAX_PROFILE_BYTES:
        raise refuse("a profile has at most 256 KiB", file=name, code="too_large", hint="give the profile, not the data")
    problems = Problems(name)
    text = decode_text(data, name=name)
    value = parse(text, problems)
    if not isinstance(value, dict):
        hint = f'begin with {{"format": "{FORMAT}", "name": …, "importer": …, "measures": …}}'
        raise refuse(f"a profile is an object, not {kind_of(value)}", file=name, code="unknown_shape", hint=hint)
    faults: Faults = []
    word_of(value, "format", (FORMAT,), faults)
    title = text_of(value, "name", faults, required=True)
    importer = text_of(value, "importer", faults, required=True)
    made = Profile(title, importer, f"sha256:{hashlib.sha256(data).hexdigest()}", name, data, value)
    report(made, faults, problems)
    problems.raise_any()
    return made


def required(profile: Profile | None, importer: str, *, file: str, why: str) -> Profile:
    """Return the profile, or refuse: none was given, or it is for another format. `why` says which numbers need it."""
    if profile is None:
        raise refuse(
            why,
            file=file,
            field="profile",
            code="profile_missing",
            hint=f"say what they mean in a profile whose `importer` is `{importer}`, and give it with --profile: of, metric, better, "
            "level and unit of each number, and its benchmark and version",
        )
    check_importer(profile, importer)
    return profile


def check_importer(profile: Profile, importer: str) -> None:
    """Refuse a profile that is for another format."""
    if profile.importer != importer:
        raise refuse(
            f"the profile {shown(profile.name)} is for {shown(profile.importer)}, the files are {importer}",
            file=profile.file,
            field="importer",
            code="wrong_profile",
            hint=f"give one whose `importer` is `{importer}`",
        )


def report(profile: Profile, faults: Faults, problems: Problems, base: tuple[str | int, ...] = ()) -> None:
    """Add faults of the profile's fields to the problems, each with the profile's file and line."""
    if not faults:
        return
    text = profile.data.decode()
    located = locate(text)
    for fault in faults:
        steps = (int(step) if step.isdigit() else step for step in fault.field.split(".") if step)
        path = (*base, *steps)
        line = line_of(path, located)
        problems.add(
            fault.message, file=profile.file, line=line, field=path_text(path), code=fault.code, hint=fault.hint or "correct it"
        )
    faults.clear()


def read_measures(
    profile: Profile, registry: Registry, *, fields: Iterable[str] = (), also: Iterable[str] = ()
) -> tuple[Measure, ...]:
    """Return the measures of a profile, each known to the registry. Raises `InputRefused` with everything wrong in the profile.

    `fields` are the importer's own fields of the profile, `also` those of a measure; other fields are refused.
    """
    problems = Problems(profile.file)
    faults: Faults = []
    unknown_fields(profile.fields, (*COMMON, *fields), faults)
    listed = profile.fields.get("measures")
    if not isinstance(listed, list) or not listed or len(listed) > MAX_MEASURES:
        hint = 'write [{"of": "…", "metric": "…", "better": "higher", "level": "task", "unit": "percent"}]'
        faults.append(Fault("measures", f"it is no list of 1 to {MAX_MEASURES} objects", hint, "missing"))
        listed = []
    report(profile, faults, problems)
    made: list[Measure] = []
    for index, each in enumerate(listed):
        if not isinstance(each, dict):
            faults.append(Fault("", f"it is {kind_of(each)}", "write an object"))
        else:
            measure = _measure(each, profile, registry, tuple(also), faults)
            if measure is not None:
                made.append(measure)
        report(profile, faults, problems, ("measures", index))
    problems.raise_any()
    return tuple(made)


def _measure(
    each: Mapping[str, Any], profile: Profile, registry: Registry, also: tuple[str, ...], faults: Faults
) -> Measure | None:
    before = len(faults)
    unknown_fields(each, (*MEASURE, *also), faults)
    raw = {**{field: profile.fields.get(field) for field in ("benchmark", "version", "slice")}, **each}
    of = text_of(raw, "of", faults, required=True)
    unit = word_of(raw, "unit", UNITS, faults)
    better, level = word_of(raw, "better", ("higher", "lower"), faults), word_of(raw, "level", LEVELS, faults)
    below_one = raw.get("below_one", False)
    if not isinstance(below_one, bool):
        faults.append(Fault("below_one", f"it is {kind_of(below_one)}", "write true or false"))
    if len(faults) > before:
        return None
    target = target_of({**raw, "unit": "percent" if unit == "fraction" else unit}, registry=registry, faults=faults)
    if target is None:
        return None
    definition = target.definition
    for field, stated, registered in (("better", better, definition.better), ("level", level, definition.level)):
        if stated != registered:
            hint = f"of {definition.key} it is `{registered}`: correct it, or choose the metric that is meant"
            faults.append(Fault(field, f"{shown(stated)} contradicts the metric", hint, "contradicts_metric"))
    if len(faults) > before:
        return None
    own = {field: each[field] for field in also if not is_absent(each.get(field))}
    return Measure(of, definition, unit, target.benchmark, target.version, target.slice, below_one is True, own)


def names_map(profile: Profile, field: str, problems: Problems) -> dict[str, str]:
    """Return an object of the profile that maps names as the files write them to names as they go on record."""
    given = profile.fields.get(field)
    if given is None:
        return {}
    faults: Faults = []
    if not isinstance(given, dict):
        faults.append(Fault(field, f"it is {kind_of(given)}", 'write {"name in the files": "name"}'))
        report(profile, faults, problems)
        return {}
    named = {key: name_of(given, key, faults) for key in given}
    report(profile, faults, problems, (field,))
    return named


def unmapped(written: str, known: Iterable[str], *, what: str) -> str:
    """Return the hint for a number that the profile does not name."""
    near = closest(written, tuple(known), what=what)
    return f"{near}; map it in the profile under `measures`, or name it under `ignored`"


def mix_of_units(values: Iterable[tuple[str, Decimal]], measure: Measure) -> tuple[str, str] | None:
    """Return (place, message) of a number that stands in another unit than the others of its measure, or None.

    Only to refuse: size never chooses a unit. 51.1 and 0.511 under one name are a mix. Among fractions a number above 1 is none.
    Among percents one between 0 and 1 is a small rate or a fraction; it stands only where the profile says that small ones are real.
    """
    if measure.unit not in ("percent", "fraction"):
        return None
    for place, value in values:
        if measure.unit == "fraction" and value > 1:
            return place, f"{value} is above 1, and the profile says that these are fractions"
        if measure.unit == "percent" and 0 < value < 1 and not measure.below_one:
            return place, f"{value} is below 1, and the profile says that these are percent: it may be a fraction"
    return None


def told(profile: Profile) -> str:
    """Return what evidence says about the profile that it was read with."""
    return f"read with the profile {profile.name} ({profile.digest})"
