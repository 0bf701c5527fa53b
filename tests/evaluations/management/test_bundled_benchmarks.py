"""After `quickstart` the files of every format whose benchmark has a name are imported as they are."""

import csv
import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from evaluations.importers import agentdojo
from evaluations.importers.bundles import DATA, read_bundle
from evaluations.models import Evidence, Observation
from tests.evaluations.importers.test_mole import labels
from tests.evaluations.importers.test_odcv_bench import judges
from tests.support import world
from tests.support.evidence_files import evidence_bytes, evidence_file, evidence_folder

AGENTDOJO = "agentdojo/B_asr_model.user_task_0.important_instructions.injection_task_0.json"
LUNA = "agentdojo-luna/automotive_t10_poison_top1_seed_1.json"
TAU = "tau-bench/gpt-4o-airline.subset-tasks-1-12-35-43-49.json"
AGENTHARM = "agentharm-inspect/2025-03-31T12-31-27+02-00_chat-task_bUVT5uu4i2PkraCuujafaM.eval"
AA = "artificial-analysis/enterpriseops_gym_aa_snapshot_2026-08-26.json"


@pytest.fixture
def started(db: None) -> None:
    world.load("benchmarks")
    world.load("founding")


def imported(*arguments: object) -> str:
    out = io.StringIO()
    call_command("import_evidence", *map(str, arguments), stdout=out)
    return out.getvalue()


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_files_of_each_format_are_imported_out_of_the_box(started: None, tmp_path: Path) -> None:
    before = Observation.objects.count()
    imported(evidence_file(AGENTDOJO), "--source", "ethz-spylab")
    imported(evidence_file(LUNA), "--source", "agentdojo-luna")
    imported(evidence_file(TAU), "--source", "sierra-research", "--subject", "gpt-4o")
    submissions = sorted((evidence_folder() / "tau2-bench/submissions").glob("*.json"))
    entries = [path for path in submissions if "_sierra_" in path.name or "_nvidia_" in path.name or "_openai_" in path.name]
    assert len(entries) > 10
    imported(*entries, "--source", "sierra-research")
    imported(evidence_file(AA), "--source", "artificial-analysis")
    imported(evidence_file(AGENTHARM), "--source", "agentharm-repro", "--profile", "agentharm-repro")
    imported(
        written(tmp_path, "labels.json", json.dumps(labels()).encode()), "--source", "mole-authors", "--subject", "kimi-k2.6"
    )
    tables = [written(tmp_path, name, content) for name, content in judges().items()]
    imported(*tables, "--source", "mcgill-dmas", "--published-at", "2026-05-01")
    formats = set(Evidence.objects.values_list("importer", flat=True))
    assert formats >= {
        "agentdojo",
        "agentdojo-luna",
        "tau-bench",
        "tau2-bench",
        "artificial-analysis",
        "inspect",
        "mole",
        "odcv-bench",
    }
    assert Observation.objects.count() > before + 60


def test_every_source_says_why_it_is_trusted_so_far() -> None:
    for source in read_bundle(DATA / "benchmarks").sources:
        assert source.tier in {"secondary", "independent"}
        assert len(source.reason) > 20


def test_the_suites_of_agentdojo_have_the_sizes_that_its_published_rates_are_counts_over() -> None:
    users = sum(agentdojo.USER_TASKS.values())
    pairs = {
        line: sum(agentdojo.USER_TASKS[suite] * injections for suite, injections in sizes.items())
        for line, sizes in agentdojo.INJECTIONS.items()
    }
    assert (users, pairs) == (97, {"v1": 629, "v1.2": 949})
    registered = {
        version.version: version.tasks
        for benchmark in read_bundle(DATA / "benchmarks").benchmarks
        if benchmark.key == "agentdojo"
        for version in benchmark.versions
    }
    for version, tasks in registered.items():
        line = "v1.2" if version.startswith("v1.2") else "v1"
        assert tasks == (pairs[line] if "-" in version else users)
    rows = list(csv.DictReader(io.StringIO(evidence_bytes("agentdojo/results-table.csv").decode())))
    assert len(rows) == 28
    for column, sizes in (("Utility", [users]), ("Utility under attack", pairs.values()), ("Targeted ASR", pairs.values())):
        for row in rows:
            rate = row[column].removesuffix("%")
            assert any(f"{100 * round(float(rate) * n / 100) / n:.2f}" == rate for n in sizes), row
