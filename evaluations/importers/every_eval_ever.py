"""Records of Every Eval Ever, one JSON object a model and run, of schema 0.2 and 0.3.

Source of the format: repository evaleval/every_eval_ever (MIT), `eval.schema.json`.

    {"schema_version", "evaluation_id", "evaluation_timestamp", "source_metadata": {"source_type", "source_organization_name",
     "evaluator_relationship"}, "eval_library": {"name", "version"}, "model_info": {"name", "id", "inference_platform"},
     "evaluation_results": [{"evaluation_name", "metric_config": {"metric_id", "metric_unit", "min_score", "max_score", "llm_scoring"},
                             "score_details": {"score", "uncertainty": {"num_samples"}}, "generation_config"}]}

**A record forgets.** It has no status, no planned number, and no count of errors: its converter makes a clean record of a cancelled
log, and nothing in it shows that. So a record is a `claim` without k. The run of one that was made from a run (`source_type:
evaluation_run`) has the status `unknown`, or `partial` where the record shows that less was run than its data set has; neither ever
qualifies. What it was made from is evidence by itself: give that. A published table (`documentation`) presents finished results.

- Which metric a score is, which way is good and in which unit, is said by a profile for `every-eval-ever`: `lower_is_better` is false
  on every converted record. `of` is `metric_id` (`evaluation_result_id` or the evaluation's name where there is none), `evaluation` the
  evaluation's name. Where the record states a unit or a largest score of its own, the profile must agree.
- An overall and its parts stand side by side, and one score may stand twice under two names: what the profile does not name is left
  out, and told.
- `num_samples` counts runs, epochs included, and is told in the note; n is not stated, so no bound can clear.
- The subject is `model_info.id` as written, with its precision and the settings of generation. A converter writes there the model that
  answered, not the one asked for. `uncertainty` is never used.
- A time is seconds since 1970 in text, or a date; one without an offset is read as the earliest instant that it can mean.
- The file of samples that a record points at is not read: it holds no errors either.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from evaluations.importers import profiles
from evaluations.importers.base import EvidenceDraft, Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Fault, Faults, NumberText, is_absent, shown, text_of
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.localtime import earliest_instant
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of
from evaluations.importers.numbers import exact_text
from evaluations.importers.profiles import Measure

NAME = "every-eval-ever"
VERSION = 1
GROUP = False
TAKES_PROFILE = True

SCHEMAS = ("0.2.", "0.3.")
UNITS: Mapping[str, str] = {"proportion": "fraction", "fraction": "fraction", "percent": "percent", "percentage": "percent"}
"""Units as records write them; others are not ours to compare."""
SETTINGS = ("precision", "dtype", "quantization", "revision")

_LIMIT = 32 * 1024 * 1024


def sniff(head: bytes, name: str) -> bool:
    """A record: the samples beside it are none."""
    return head.lstrip()[:1] == b"{" and b'"schema_version"' in head and b'"evaluation_id"' in head and b'"model_info"' in head


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of each record. Raises `InputRefused` with every problem."""
    for name, stream in files.items():
        problems = Problems(name)
        maker = Maker(problems, registry=intake.registry, source=intake.source)
        if intake.subject is not None:
            problems.add("the record names its model", field="subject", hint="leave the subject out")
        value = parse(decode_text(read_bounded(stream, name=name, limit=_LIMIT), name=name), problems)
        _read(name, value, maker, intake)
        problems.raise_any()
        yield from maker.pairs


def _read(name: str, value: Any, maker: Maker, intake: Intake) -> None:
    listed = value.get("evaluation_results") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed or not isinstance(value.get("model_info"), dict):
        hint = "give the record with `model_info` and `evaluation_results`, not its samples"
        raise refuse(f"it is no record, but {kind_of(value)}", file=name, code="unknown_shape", hint=hint)
    schema = str(value.get("schema_version"))
    if not schema.startswith(SCHEMAS):
        hint = "0.2 and 0.3 are read"
        raise refuse(f"unknown schema {shown(schema)}", file=name, field="schema_version", code="unknown_version", hint=hint)
    told = ", ".join(shown(_metric_id(each)) for each in listed[:5] if isinstance(each, dict))
    profile = profiles.required(
        intake.profile,
        NAME,
        file=name,
        why=f"which way is good and in which unit is not to be believed of a record; it has {told}",
    )
    measures = profiles.read_measures(profile, intake.registry, fields=("evaluation",), also=("evaluation",))
    evidence: EvidenceDraft | None = None
    found: list[tuple[int, Mapping[str, Any], Measure]] = []
    unread: list[str] = []
    for index, result in enumerate(listed):
        if not isinstance(result, dict):
            maker.problems.add(
                f"it is {kind_of(result)}", field=f"evaluation_results[{index}]", code="unknown_shape", hint="fetch it"
            )
            continue
        mine = [each for each in measures if _is_meant(each, result, profile.fields.get("evaluation"))]
        found.extend((index, result, each) for each in mine)
        unread.extend([] if mine else [f"{result.get('evaluation_name')} {_metric_id(result)}"])
    seen: set[tuple[str, str, str, str]] = set()
    for index, result, measure in found:
        key = measure.definition.key, measure.benchmark, measure.version, measure.slice
        if key in seen:
            message = f"{shown(_metric_id(result))} gives a second value for {measure.definition.key}"
            hint = "name the `evaluation` in the measure, or give each a slice"
            maker.problems.add(message, field=f"evaluation_results[{index}]", code="duplicate", hint=hint)
        seen.add(key)
    if not found and not maker.problems:
        hint = f"map one in the profile; it has {told}"
        maker.problems.add("the profile names none of its scores", field="evaluation_results", code="unknown_score", hint=hint)
    for index, result, measure in found:
        if maker.problems:
            return
        if evidence is None:
            evidence = _evidence(value, result, maker, intake, [each for _, each, _ in found], unread)
        _observe(index, result, measure, evidence, maker)


def _metric_id(result: Mapping[str, Any]) -> str:
    config = result.get("metric_config")
    given = config.get("metric_id") if isinstance(config, dict) else None
    return str(given or result.get("evaluation_result_id") or result.get("evaluation_name"))


def _is_meant(measure: Measure, result: Mapping[str, Any], evaluation: object) -> bool:
    wanted = measure.own.get("evaluation", evaluation)
    return measure.of == _metric_id(result) and (wanted is None or wanted == result.get("evaluation_name"))


def _observe(index: int, result: Mapping[str, Any], measure: Measure, evidence: EvidenceDraft, maker: Maker) -> None:
    """Add one score, after what the record says of its unit and range was held against the profile."""
    faults: Faults = []
    details, config = result.get("score_details"), result.get("metric_config")
    written = details.get("score") if isinstance(details, dict) else None
    config = config if isinstance(config, dict) else {}
    place = f"evaluation_results[{index}]"
    number = exact_text(str(written)) if isinstance(written, NumberText) else None
    if number is None:
        faults.append(Fault("score_details.score", f"{shown(written)} is no finite number", "fetch it again", "not_a_number"))
    else:
        stated = config.get("metric_unit")
        if isinstance(stated, str) and UNITS.get(stated, measure.unit) != measure.unit:
            hint = f"the record says {shown(stated)}: correct the profile"
            faults.append(Fault("metric_config.metric_unit", f"it is not {measure.unit}", hint, "wrong_unit"))
        for bound, sign in (("min_score", 1), ("max_score", -1)):
            limit = exact_text(str(config.get(bound))) if isinstance(config.get(bound), NumberText) else None
            if limit is not None and (number - limit) * sign < 0:
                message = f"{written} is outside its own range: {bound} is {limit}"
                faults.append(Fault("score_details.score", message, "fetch it again", "out_of_range"))
            largest = {"fraction": 1, "percent": 100}.get(measure.unit)
            if bound == "max_score" and limit is not None and largest is not None and limit != largest:
                hint = f"a profile that says {measure.unit} expects {largest}: correct the profile"
                faults.append(Fault("metric_config.max_score", f"it is {limit}", hint, "wrong_unit"))
        mixed = profiles.mix_of_units([(place, number)], measure)
        if mixed is not None and not faults:
            faults.append(Fault("score_details.score", mixed[1], "correct the profile's unit", "unit_mix"))
    judge = _judge(config, evidence, faults)
    bad = bool(faults)
    maker.report(faults, place=(place,))
    if number is None or bad:
        return
    definition = measure.definition
    value = against(measure.in_our_unit(number), definition.better)
    on, locator = On(measure.benchmark, measure.version, measure.slice), f"{place} {_metric_id(result)}"
    maker.value(evidence, value, str(written), definition, on=on, judge=judge, locator=locator)


def _judge(config: Mapping[str, Any], evidence: EvidenceDraft, faults: Faults) -> dict[str, Any] | None:
    scoring = config.get("llm_scoring")
    judges = scoring.get("judges") if isinstance(scoring, dict) else None
    names = []
    for each in judges if isinstance(judges, list) else ():
        info = each.get("model_info") if isinstance(each, dict) else None
        if isinstance(info, dict) and (model := name_of(info, "id", faults, required=False)):
            names.append(model)
    if not names:
        return {"rule": "a model graded, which one is not said"} if isinstance(scoring, dict) else None
    return {"models": names, "is_subject": any(name == evidence.subject_as_written.split(" (")[0] for name in names)}


def _evidence(
    value: Mapping[str, Any],
    first: Mapping[str, Any],
    maker: Maker,
    intake: Intake,
    results: list[Mapping[str, Any]],
    unread: list[str],
) -> EvidenceDraft:
    faults: Faults = []
    info, source = value["model_info"], value.get("source_metadata")
    source = source if isinstance(source, dict) else {}
    model = name_of(info, "id", faults)
    organisation = text_of(source, "source_organization_name", faults)
    relationship = text_of(source, "evaluator_relationship", faults)
    ended = _instant(first, "evaluation_timestamp", faults) or _instant(value, "evaluation_timestamp", faults)
    retrieved = _instant(value, "retrieved_timestamp", faults)
    samples = [(_samples(each), _size(each)) for each in results]
    published = source.get("source_type") == "documentation"
    partial = any(run is not None and size is not None and run < size for run, size in samples)
    maker.report(faults)
    counts = sorted({run for run, _ in samples if run is not None})
    return maker.evidence(
        f"{model}{_settings(info, first)}",
        provenance="claim",
        run_status="complete" if published else "partial" if partial else "unknown",
        harness=_library(value),
        run_ended_at=ended,
        published_at=intake.published_at or retrieved,
        locator=str(value.get("evaluation_id", ""))[:200],
        notes=[
            "" if published else "a record holds no status and no errors: what it was made from may have been cancelled",
            f"measured by {organisation}" + (f", {relationship.replace('_', ' ')}" if relationship else "")
            if organisation
            else "",
            f"runs counted: {', '.join(map(str, counts))}" if counts else "",
            "less was run than the data set has" if partial else "",
            f"scores not read: {', '.join(unread)}"[:300] if unread else "",
            profiles.told(intake.profile) if intake.profile else "",
        ],
    )


def _samples(result: Mapping[str, Any]) -> int | None:
    details = result.get("score_details")
    spread = details.get("uncertainty") if isinstance(details, dict) else None
    return _whole(spread.get("num_samples")) if isinstance(spread, dict) else None


def _size(result: Mapping[str, Any]) -> int | None:
    """Return the size of the data set, where a converter kept it."""
    data = result.get("source_data")
    more = data.get("additional_details") if isinstance(data, dict) else None
    return _whole(more.get("samples_number")) if isinstance(more, dict) else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9 else None


def _library(value: Mapping[str, Any]) -> str:
    library = value.get("eval_library")
    parts = [library.get(field) for field in ("name", "version")] if isinstance(library, dict) else []
    return " ".join(part for part in parts if isinstance(part, str) and part.isprintable() and part != "unknown")


def _settings(info: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return precision and the settings of generation, as " (dtype=…, temperature=…)"."""
    more, config = info.get("additional_details"), result.get("generation_config")
    arguments = config.get("generation_args") if isinstance(config, dict) else None
    plan = arguments.get("eval_plan") if isinstance(arguments, dict) else None
    of_plan = plan.get("config") if isinstance(plan, dict) else None
    kept = {key: more[key] for key in SETTINGS if isinstance(more, dict) and not is_absent(more.get(key))}
    for held in (arguments, of_plan):
        kept |= {
            key: each
            for key, each in (held.items() if isinstance(held, dict) else ())
            if key not in ("max_connections", "seed") and isinstance(each, str) and 0 < len(each) <= 40 and each.isprintable()
        }
    if isinstance(arguments, dict) and arguments.get("reasoning") is True:
        kept["reasoning"] = "true"
    told = ", ".join(f"{key}={each}" for key, each in sorted(kept.items()) if f"{key}{each}".isascii())
    return f" ({told[:100]})" if told else ""


def _instant(raw: Mapping[str, Any], field: str, faults: Faults) -> datetime | None:
    written = raw.get(field)
    if is_absent(written):
        return None
    number = exact_text(written) if isinstance(written, str) else None
    if number is not None and 0 < number < 10**11:
        return datetime.fromtimestamp(int(number), tz=UTC)
    return earliest_instant(raw, field, faults)
