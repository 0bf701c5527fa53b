"""tau2-bench leaderboard entries: one `submission.json` a model.

Source of the format: repository sierra-research/tau2-bench (MIT), `web/leaderboard/public/submissions/<name>/submission.json` and its
`schema.json`.

    {"model_name", "submitting_organization", "submission_date", "submission_type", "reasoning_effort",
     "results": {"<domain>": null | {"pass_1" … "pass_4", "cost"}},
     "methodology": {"evaluation_date", "tau2_bench_version", "user_simulator", "verification"}}

Values are percent. `pass_1` is the mean share of tasks done, and makes `task_completion_rate`; pass^2 to pass^4 stand in the
note. Costs are USD a trajectory. How many tasks or trials there were is not stated, so there is no n, and no bound can clear.

A domain that is null or absent was not run. The effort is part of the name as written ("Claude Fable 5 (max)"), and with
another scaffold (`submission_type: custom`, changed prompts) the evidence is about an agent. Versions are written `v2.0` and `2.0`
for the same thing; scores of different versions were graded differently and never compare. The repository's example entry,
with invented numbers, is refused.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from evaluations.importers.base import Pair, Problems, Registry
from evaluations.importers.decoding import decode_text, read_bounded
from evaluations.importers.fields import Fault, Faults, NumberText, instant_of, is_absent, shown, text_of
from evaluations.importers.jsontext import kind_of, parse
from evaluations.importers.making import Maker, On, against
from evaluations.importers.names import name_of, slice_key
from evaluations.importers.numbers import exact

NAME = "tau2-bench"
VERSION = 1
GROUP = False

BENCHMARK = "tau2-bench"
DOMAINS = ("airline", "retail", "telecom", "banking_knowledge")

_LIMIT = 1024 * 1024
_PASSES = ("pass_1", "pass_2", "pass_3", "pass_4")


def sniff(head: bytes, name: str) -> bool:
    """An object with `model_name`, `submitting_organization` and a version of the benchmark."""
    return b'"submitting_organization"' in head and (b'"tau2_bench_version"' in head or b'"results"' in head)


def read(stream: BinaryIO, *, name: str, registry: Registry, source: str | None) -> Iterator[Pair]:
    """Yield the pairs of one entry. Raises `InputRefused` with every problem."""
    problems = Problems(name)
    maker = Maker(problems, registry=registry, source=source)
    value = parse(decode_text(read_bounded(stream, name=name, limit=_LIMIT), name=name), problems)
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("results"), dict)
        or not isinstance(value.get("methodology"), dict)
    ):
        hint = "give a submission.json with `results` and `methodology`"
        problems.add(f"it is no leaderboard entry, but {kind_of(value)}", code="unknown_shape", hint=hint)
        problems.raise_any()
    _entry(value, maker)
    problems.raise_any()
    if not maker.pairs:
        problems.add("no domain was run", field="results", code="empty", hint="an entry has results of at least one domain")
        problems.raise_any()
    yield from maker.pairs


def _entry(value: dict[str, Any], maker: Maker) -> None:
    faults: Faults = []
    method = value["methodology"]
    model = text_of(value, "model_name", faults, required=True)
    name_of(value, "model_name", faults)
    effort = name_of(value, "reasoning_effort", faults, required=False)
    organisation = text_of(value, "submitting_organization", faults, required=True)
    kind = text_of(value, "submission_type", faults) or "standard"
    if kind not in ("standard", "custom"):
        faults.append(Fault("submission_type", f"unknown word {shown(kind)}", "standard or custom", "unknown_word"))
    if "example" in organisation.lower() or model.lower().startswith("example"):
        faults.append(
            Fault("model_name", "this is the repository's example entry, with invented numbers", "give a real one", "example")
        )
    published = instant_of(value, "submission_date", faults)
    ended = instant_of(method, "evaluation_date", faults)
    version = name_of(method, "tau2_bench_version", faults).removeprefix("v")
    simulator = text_of(method, "user_simulator", faults)
    verification = method.get("verification")
    checks = verification if isinstance(verification, dict) else {}
    unknown = [domain for domain in value["results"] if domain not in DOMAINS]
    for domain in unknown:
        faults.append(Fault("results", f"unknown domain {shown(domain)}", f"known: {', '.join(DOMAINS)}", "unknown_domain"))
    maker.report(faults)
    if maker.problems:
        return
    subject = f"{model} ({effort})" if effort else model
    custom = kind == "custom" or checks.get("modified_prompts") is True
    for domain in DOMAINS:
        found = value["results"].get(domain)
        if is_absent(found):
            continue
        if not isinstance(found, dict):
            problem = f"it is {kind_of(found)}"
            maker.problems.add(problem, field=f"results.{domain}", code="unknown_shape", hint="an object, or null where not run")
            continue
        retrieval = text_of(found, "retrieval_config", faults)
        passes = [f"{field.replace('_', '^')} {found[field]}" for field in _PASSES if isinstance(found.get(field), NumberText)]
        evidence = maker.evidence(
            subject,
            provenance="reported",
            run_status="partial" if checks.get("omitted_questions") is True else "complete",
            harness=f"tau2-bench {version}" + (f", retrieval {retrieval}" if retrieval else "") + (", custom" if custom else ""),
            run_ended_at=ended,
            published_at=published,
            about="agent" if custom else "model",
            locator=f"results.{domain}",
            notes=[
                f"submitted by {organisation}",
                f"user simulator {simulator}" if simulator else "",
                "questions were left out" if checks.get("omitted_questions") is True else "",
                ", ".join(passes),
            ],
        )
        on = On(BENCHMARK, version, slice_key(domain))
        _value(maker, evidence, found, "pass_1", "task_completion_rate", "percent", on, domain)
        _value(maker, evidence, found, "cost", "cost_per_task_usd", "usd", on, domain)
        maker.report(faults, place=("results", domain))


def _value(maker: Maker, evidence: Any, found: dict[str, Any], field: str, metric: str, unit: str, on: On, domain: str) -> None:
    """Add one number of a domain. A cost that is null or 0 is not known, and never free."""
    faults: Faults = []
    number = exact(found, field, faults)
    if field == "cost" and number is not None and not number:
        number = None
    if number is not None and (number < 0 or (unit == "percent" and number > 100)):
        faults.append(Fault(field, f"{shown(found[field])} is outside the range of {metric}", "fetch it again", "out_of_range"))
    definition = maker.metric(metric, on, unit=unit)
    maker.report(faults, place=("results", domain))
    if number is not None and definition is not None and not maker.problems:
        maker.value(evidence, against(number, definition.better), str(found[field]), definition, on=on)
