"""Hugging Face model cards: the `model-index` in the YAML before a README.md.

Source of the format: repository huggingface/hub-docs (Apache-2.0), `modelcard.md`.

    model-index:
    - name, results: [{task: {type, name}, dataset: {type, name, config, split, revision}, metrics: [{type, value, name, verifyToken}],
                       source: {name, url}}]

What is shared with evaluation results stands in `hf_claims.py`. `name` is what its owner calls the model, and not the repository it
lies in: the subject is that name as written, or the repository, given with the command, where the name is noted.

A result without `dataset` is refused; Hugging Face's own library drops it, and all others of the card, without a word. Its library
also gives a result the source of another of the same task and data set: a source is read where it stands. A profile for
`hf-model-index` says what a value means: `of` is the metric's type; `dataset` (its type), `task`, `config` and `split` narrow it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from evaluations.importers import profiles
from evaluations.importers.base import Intake, Pair, Problems, refuse
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import is_absent, shown
from evaluations.importers.hf_claims import Claim, make, text_at
from evaluations.importers.jsontext import kind_of
from evaluations.importers.making import Maker
from evaluations.importers.yamltext import parse_yaml

NAME = "hf-model-index"
VERSION = 1
GROUP = False
TAKES_PROFILE = True

KEYS = ("task", "dataset", "config", "split")

_LIMIT = 4 * 1024 * 1024
_MAX_RESULTS = 5000


def sniff(head: bytes, name: str) -> bool:
    """A card with YAML before it; one without is no evidence, and is refused by `read_group` where it is a README."""
    return head[:4] in (b"---\n", b"---\r") or (name.lower().endswith(".md") and head.lstrip()[:1] == b"#")


def read_group(files: Mapping[str, BinaryIO], intake: Intake) -> Iterator[Pair]:
    """Yield the pairs of each card. Raises `InputRefused` with every problem."""
    for name, stream in files.items():
        maker = Maker(Problems(name), registry=intake.registry, source=intake.source, subject=intake.subject)
        front = front_matter(decode_text(read_bounded(stream, name=name, limit=_LIMIT), name=name), name=name)
        models = front.get("model-index")
        if not isinstance(models, list) or not models:
            hint = "a card without results is no evidence"
            raise refuse("the card has no `model-index`", file=name, field="model-index", code="empty", hint=hint)
        claims = {index: _claims(index, model, maker) for index, model in enumerate(models)}
        maker.problems.raise_any()
        every = [claim for listed in claims.values() for claim in listed]
        told = ", ".join(dict.fromkeys(shown(claim.names["of"]) for claim in every[:5]))
        why = f"what the metrics of the card mean, and their unit, is not said in it; it has {told}"
        profile = profiles.required(intake.profile, NAME, file=name, why=why)
        measures = profiles.read_measures(profile, intake.registry, fields=KEYS, also=KEYS)
        if intake.subject is not None and len(models) > 1:
            maker.problems.add(
                "the card names several models", field="subject", code="other_subject", hint="leave the subject out"
            )
        for index, listed in claims.items():
            written = text_at(models[index], "name", f"model-index[{index}]", maker)
            subject = intake.subject or written
            if not subject:
                hint = "name the repository as the subject"
                maker.problems.add("the card names no model", field=f"model-index[{index}].name", code="missing", hint=hint)
                continue
            called = [claim._replace(notes=(*claim.notes, f"called {written} by its card")) for claim in listed]
            made = called if written and written != subject else listed
            make(made, subject=subject, measures=measures, keys=KEYS, maker=maker, intake=intake)
        maker.problems.raise_any()
        yield from maker.pairs


def front_matter(text: str, *, name: str) -> dict[str, Any]:
    """Return the YAML between the first two lines of three dashes. Raises `InputRefused` where there is none, or no object in it."""
    lines = text.replace("\r\n", "\n").split("\n")
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0) if lines[0] == "---" else 0
    if not end:
        hint = "its results stand in YAML between two lines of three dashes"
        raise refuse("the card has no metadata before its text", file=name, line=1, code="empty", hint=hint)
    # The empty first line keeps the numbers of the lines that a refusal tells.
    value = parse_yaml("\n" + "\n".join(lines[1:end]) + "\n", name=name)
    if not isinstance(value, dict):
        hint = "its metadata are keys and values"
        raise refuse(f"the card's metadata are {kind_of(value)}", file=name, line=1, code="unknown_shape", hint=hint)
    return value


def _claims(index: int, model: Any, maker: Maker) -> list[Claim]:
    place = f"model-index[{index}]"
    results = model.get("results") if isinstance(model, dict) else None
    if not isinstance(results, list) or len(results) > _MAX_RESULTS:
        maker.problems.add(
            f"it is {kind_of(results)}", field=f"{place}.results", code="unknown_shape", hint="it is a list of results"
        )
        return []
    found: list[Claim] = []
    for number, result in enumerate(results):
        at = f"{place}.results[{number}]"
        raw = result if isinstance(result, dict) else {}
        dataset, metrics = raw.get("dataset"), raw.get("metrics")
        if not isinstance(dataset, dict) or not isinstance(metrics, list) or not metrics:
            missing = "metrics" if isinstance(dataset, dict) else "dataset"
            hint = "each result has a task, a data set and metrics"
            maker.problems.add("it is missing, or no object", field=f"{at}.{missing}", code="missing", hint=hint)
            continue
        names = {
            "task": text_at(raw.get("task"), "type", f"{at}.task", maker),
            "dataset": text_at(dataset, "type", f"{at}.dataset", maker),
            "config": text_at(dataset, "config", f"{at}.dataset", maker),
            "split": text_at(dataset, "split", f"{at}.dataset", maker),
        }
        url = text_at(raw.get("source"), "url", f"{at}.source", maker)
        revision = text_at(dataset, "revision", f"{at}.dataset", maker)
        for position, metric in enumerate(metrics):
            here = f"{at}.metrics[{position}]"
            if not isinstance(metric, dict) or "value" not in metric:
                maker.problems.add(f"it is {kind_of(metric)}", field=here, code="unknown_shape", hint="it has `type` and `value`")
                continue
            of = text_at(metric, "type", here, maker)
            token = not is_absent(metric.get("verifyToken")) or metric.get("verified") is True
            notes = (f"revision {revision}" if revision else "",)
            found.append(Claim(here, {"of": of, **names}, metric["value"], url, token, None, notes))
    return found
