"""Hugging Face evaluation results: `.eval_results/*.yaml` in a model's repository, or the answer of the API that wraps them.

Source of the format: repository huggingface/hub-docs (Apache-2.0), `eval_results.yaml`.

    - dataset: {id, task_id, revision}      value, verifyToken, date, source: {url, name, user, org}, notes

What is shared with model cards stands in `hf_claims.py`. The model is nowhere in the file: it is the repository the file lies in, so
the subject is given with the command. `task_id` is free text in practice. A profile for `hf-eval-results` says what a value means:
`of` is the `task_id`, and `dataset` its data set, at the top or in a measure. The specification's own template is refused.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from evaluations.importers import profiles
from evaluations.importers.base import Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Faults, instant_of, is_absent, shown
from evaluations.importers.hf_claims import Claim, make, text_at
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker
from evaluations.importers.yamltext import parse_yaml

NAME = "hf-eval-results"
VERSION = 1
GROUP = False
TAKES_PROFILE = True

_LIMIT = 2 * 1024 * 1024
_MAX_ENTRIES = 2000


def sniff(head: bytes, name: str) -> bool:
    """A list of entries with a data set and its task."""
    return b"task_id" in head and b"dataset" in head and b"value" in head and head.lstrip()[:1] in (b"-", b"#", b"[")


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of each file. Raises `InputRefused` with every problem."""
    for name, stream in files.items():
        maker = Maker(Problems(name), registry=intake.registry, source=intake.source, subject=intake.subject)
        text = decode_text(read_bounded(stream, name=name, limit=_LIMIT), name=name)
        value = parse(text, Problems(name)) if text.lstrip()[:2] in ("[{", "[\n") else parse_yaml(text, name=name)
        if not isinstance(value, list) or not value or len(value) > _MAX_ENTRIES:
            hint = "give a file of .eval_results"
            raise refuse(f"it is no list of results, but {kind_of(value)}", file=name, code="unknown_shape", hint=hint)
        claims = [claim for index, each in enumerate(value) for claim in _claims(index, each, maker)]
        maker.problems.raise_any()
        told = ", ".join(dict.fromkeys(shown(claim.names["of"]) for claim in claims[:5]))
        why = f"what the values of the tasks mean, and their unit, is not said in the file; it has {told}"
        profile = profiles.required(intake.profile, NAME, file=name, why=why)
        measures = profiles.read_measures(profile, intake.registry, fields=("dataset",), also=("dataset",))
        if intake.subject is None:
            hint = "name the repository that the file lies in, as the subject"
            maker.problems.add("the file names no model", field="subject", code="missing", hint=hint)
        make(claims, subject=intake.subject or "", measures=measures, keys=("dataset",), maker=maker, intake=intake)
        maker.problems.raise_any()
        yield from maker.pairs


def _claims(index: int, given: Any, maker: Maker) -> Iterator[Claim]:
    """Yield the claim of one entry, or those that the API wraps into one with their file's name."""
    place = f"[{index}]"
    wrapped = given.get("data") if isinstance(given, dict) else None
    entries = wrapped if isinstance(wrapped, list) else [wrapped] if isinstance(wrapped, dict) else [given]
    notes = ("not merged: a proposal of somebody",) if isinstance(given, dict) and not is_absent(given.get("pullRequest")) else ()
    for entry in entries:
        dataset = entry.get("dataset") if isinstance(entry, dict) else None
        if not isinstance(dataset, dict) or "value" not in entry:
            hint = "an entry has `dataset` with `id` and `task_id`, and a `value`"
            maker.problems.add(f"it is no result, but {kind_of(entry)}", field=place, code="unknown_shape", hint=hint)
            continue
        task, data_set = text_at(dataset, "task_id", place, maker), text_at(dataset, "id", place, maker)
        if not task or not data_set or isinstance(dataset.get("task_id"), dict):
            maker.problems.add(
                "its task or data set is missing", field=f"{place}.dataset", code="missing", hint="fill in the template"
            )
            continue
        faults: Faults = []
        ended = instant_of(entry, "date", faults)
        maker.report(faults, place=(index,))
        source = entry.get("source")
        url = text_at(source, "url", place, maker)
        told = text_at(entry, "notes", place, maker)
        revision = text_at(dataset, "revision", place, maker)
        more = (*notes, told, f"revision {revision}" if revision else "")
        names = {"of": task, "dataset": data_set}
        yield Claim(place, names, entry["value"], url, not is_absent(entry.get("verifyToken")), ended, more)
