"""What the tests of foreign formats share: a registry that knows their benchmarks, and reading by file name."""

import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from evaluations.importers.base import EvidenceDraft, ObservationDraft, Pair, Profile, Registry
from evaluations.importers.bundles import definitions, read_metrics
from evaluations.importers.registry import pick, read_files
from evaluations.kernel.errors import InputRefused, Problem

BENCHMARKS: dict[str, frozenset[str]] = {
    "agentdojo": frozenset({"v1.2.2", "v1.2.2-important_instructions", "v1.2.2-tool_knowledge", "v1.2.2-injecagent"}),
    "agentdojo-luna": frozenset({"poison_top1"}),
    "agentharm": frozenset({"inspect-evals-9", "repro-2025-03", "repro-2025-03-chat"}),
    "enterpriseops-gym-aa": frozenset({"2026-07"}),
    "garak": frozenset({"0.14.0.pre1", "0.17.1"}),
    "mole": frozenset({"2026-09"}),
    "tau-bench": frozenset({"airline", "retail"}),
    "writes": frozenset({"1"}),
    "tau2-bench": frozenset({"0.1.3", "1.0.1", "2.0"}),
}

REGISTRY = Registry(metrics=definitions(read_metrics()), benchmarks=BENCHMARKS, sources=frozenset({"lab"}))


def read(
    files: Mapping[str, bytes],
    *,
    format_name: str | None = None,
    source: str | None = "lab",
    subject: str | None = None,
    published_at: datetime | None = None,
    registry: Registry = REGISTRY,
    profile: Profile | None = None,
) -> list[Pair]:
    """Read files as the command does: the format found by the first file where none is named."""
    name, data = next(iter(files.items()))
    importer = pick(format_name, data[:65536], name)
    streams = {each: io.BytesIO(content) for each, content in files.items()}
    told = {"source": source, "subject": subject, "published_at": published_at, "profile": profile}
    return list(read_files(importer, streams, registry=registry, **told))


def refused(files: Mapping[str, bytes], **options: Any) -> list[Problem]:
    """Return the problems of files that must be refused, each with its file, its message and what to do."""
    with pytest.raises(InputRefused) as caught:
        read(files, **options)
    for problem in caught.value.problems:
        assert problem.file, problem
        assert problem.message, problem
        assert problem.hint, problem
    return list(caught.value.problems)


def by_metric(pairs: list[Pair]) -> dict[tuple[str, str, str, str], tuple[EvidenceDraft, ObservationDraft]]:
    """Return the pairs by subject, metric, benchmark version and slice; none may stand twice."""
    found = {(draft.subject_as_written, seen.metric, seen.benchmark_version, seen.slice): (draft, seen) for draft, seen in pairs}
    assert len(found) == len(pairs)
    return found
