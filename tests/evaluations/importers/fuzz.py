"""Changed copies of real files, read by the importer of each: `python -m tests.evaluations.importers.fuzz FIRST COUNT` in a process of
its own, with limits on memory and time. It ends with one line of JSON, and with exit code 1 and each failure on stderr.

Where `WRITEGATE_EVIDENCE_DIR` names them the copies are of the real files, else of those committed here.
"""

import io
import json
import random
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import openpyxl

from evaluations.importers.base import Pair, Profile, Registry
from evaluations.importers.registry import pick, read_files
from tests.evaluations.importers import (
    eog,
    foreign,
    helpers,
    test_every_eval_ever,
    test_hf_claims,
    test_inspect,
    test_lm_eval,
    test_mole,
    test_odcv_bench,
    test_promptfoo,
    test_table,
)
from tests.evaluations.importers.profiled import measure, profile
from tests.support.evidence_files import evidence_bytes
from tests.support.memory import high_mark
from tests.support.mutations import check, mutated

REGISTRY = Registry(
    metrics=foreign.REGISTRY.metrics,
    benchmarks={**helpers.REGISTRY.benchmarks, **foreign.REGISTRY.benchmarks},
    sources=frozenset({"lab", "press"}),
)
MEGABYTES = 300
"""What a process may hold at most, its own code and libraries included."""
ADDRESS_SPACE = 2 * 1024**3


class Seed(NamedTuple):
    """Files that are read together, the last of which is changed, and what the command says beside them."""

    files: dict[str, bytes]
    profile: Profile | None = None
    subject: str | None = None
    format_name: str | None = None


def _one(path: str, **told: Any) -> Seed:
    return Seed({path.rsplit("/", 1)[-1]: evidence_bytes(path)}, **told)


def _lines(document: dict[str, Any]) -> bytes:
    header = {key: value for key, value in document.items() if key != "evidence"}
    return "\n".join(map(json.dumps, (header, *document["evidence"]))).encode()


def _workbook() -> bytes:
    made = openpyxl.Workbook()
    for row in (["Model", "Refused", "n"], ["a", 0.511, 400], ["b", 0.42, 400], ["c", None, 12], ["d", "n/a", 9]):
        made.active.append(row)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def seeds() -> list[Seed]:
    """Return at least one seed for every format; every one of them but a bare attestation is read without a complaint."""
    dojo = "agentdojo/B_asr_model.user_task_0.important_instructions.injection_task_0.json"
    own = helpers.document(helpers.evidence(helpers.observation(k=8, n=10), helpers.observation(slice="hr")))
    inspect = test_inspect.profile(test_inspect.MEASURE, task=test_inspect.EXPECTED["generated/success-20.eval"]["task"])
    card = "hf-model-index/" + test_hf_claims.SIMPLE
    told = test_table.of_table(measure("Refused", unit="fraction", n="n"))
    plain = profile("table", measure("Refused"), subject="Model", provenance="reported")
    return [
        Seed({"a.json": json.dumps(own, indent=1).encode()}),
        Seed({"a.jsonl": _lines(own)}),
        Seed({"a.csv": helpers.table(helpers.ROW, {**helpers.ROW, "slice": "hr"}).encode()}),
        Seed({eog.path("a"): eog.as_bytes(eog.result(eog.run(1, (True, False)), eog.failed(2)))}),
        Seed(test_odcv_bench.judges()),
        _one(dojo),
        _one("agentdojo-luna/automotive_t10_poison_top1_seed_1.json"),
        _one("tau2-bench/submissions/claude-opus-4-5_sierra_2026-02-26.submission.json"),
        _one("tau-bench/gpt-4o-airline.subset-tasks-1-12-35-43-49.json", subject="gpt-4o"),
        Seed({"labels.json": json.dumps(test_mole.labels()).encode()}, subject="m"),
        _one("artificial-analysis/enterpriseops_gym_aa_snapshot_2026-08-26.json"),
        _one("garak/quack.report.jsonl"),
        _one("garak/test_with_ci.report.jsonl"),
        Seed({"out.json": evidence_bytes("promptfoo/out.json")}, test_promptfoo.PROFILE),
        Seed({"out.jsonl": evidence_bytes("promptfoo/out.jsonl")}, test_promptfoo.PROFILE),
        Seed({"t.xlsx": _workbook()}, told),
        Seed({"t.csv": b"Model,Refused\na,51.1\nb,42.0\nc,n/a\nd,7.25 %\n"}, plain, format_name="table"),
        Seed(
            {"t.csv": evidence_bytes("csv-leaderboards/open-llm-leaderboard-20230523.csv")}, _leaderboard(), format_name="table"
        ),
        Seed({"log.eval": evidence_bytes("inspect/generated/success-20.eval")}, inspect),
        Seed({"log.json": evidence_bytes("inspect/generated/success-20.json")}, inspect),
        Seed(
            {"made.eval": test_inspect.as_eval(test_inspect.log([test_inspect.sample(each) for each in range(1, 9)]))},
            test_inspect.profile(test_inspect.MEASURE),
        ),
        Seed(test_lm_eval.made({"acc,none": 0.75, "acc_stderr,none": 0.1}), test_lm_eval.profile()),
        Seed(test_every_eval_ever.record(), test_every_eval_ever.profile()),
        _one("in-toto/generated/dsse-valid.json"),
        Seed({"card.md": evidence_bytes(card)}, test_hf_claims.card()),
        Seed(test_hf_claims.as_file(test_hf_claims.entry()), test_hf_claims.profile(), subject="acme/model"),
    ]


def _leaderboard() -> Profile:
    columns = ("ARC (25-shot)", "HellaSwag (10-shot)")
    measures = [measure(of, "task_completion_rate", slice=of.split(" ")[0].lower(), below_one=True) for of in columns]
    others = ["Average", "MMLU (5-shot)", "TruthfulQA (0-shot)", "Parameters", "URL"]
    return profile("table", *measures, subject="Model", provenance="claim", ignored=others)


def read(seed: Seed, content: bytes) -> list[Pair]:
    """Read a seed with other bytes in its last file, as the command does."""
    last = list(seed.files)[-1]
    files = {**seed.files, last: content}
    first, data = next(iter(seed.files.items()))
    importer = pick(seed.format_name or (seed.profile.importer if seed.profile else None), data[:65536], first)
    streams = {name: io.BytesIO(each) for name, each in files.items()}
    return list(read_files(importer, streams, registry=REGISTRY, source="lab", subject=seed.subject, profile=seed.profile))


def run(first: int, count: int) -> Iterator[tuple[str, str]]:
    """Read `count` changed copies from number `first` on; yield (format, how it ended, or what failed) of each."""
    every = seeds()
    for number in range(first, first + count):
        seed = every[number % len(every)]
        last = list(seed.files)[-1]
        dice = random.Random(f"writegate-{number}")
        content = seed.files[last]
        for _ in range(dice.choice((1, 1, 2, 3))):
            content = mutated(content, dice) or b"x"
        place = f"{last} #{number}"
        try:
            yield (
                place,
                check(lambda each, seed=seed: read(seed, each), content, names=[*seed.files, "mine.json", "profile.json"]),
            )
        except Exception as error:
            yield place, f"failed: {type(error).__name__}: {str(error)[:300]}"


def format_of(seed: Seed) -> str:
    """Return the name of the format that a seed is of."""
    first, data = next(iter(seed.files.items()))
    return pick(seed.format_name or (seed.profile.importer if seed.profile else None), data[:65536], first).NAME


def formats() -> set[str]:
    """Return the formats that the seeds are of."""
    return {format_of(seed) for seed in seeds()}


def main(first: int, count: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    ends: Counter[str] = Counter()
    for place, how in run(first, count):
        ends[how.partition(":")[0]] += 1
        if how.startswith("failed"):
            sys.stderr.write(f"{place}: {how}\n")
    megabytes = round(high_mark())
    sys.stdout.write(json.dumps({**ends, "megabytes": megabytes}) + "\n")
    return 1 if ends["failed"] or megabytes > MEGABYTES else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
