"""Bundled registry entries and evidence: the part of loading a bundle that lies on this floor."""

from contextlib import ExitStack
from typing import NamedTuple

from evaluations.importers.bundle_entries import RulingEntry
from evaluations.importers.bundles import DATA, Bundle, read_metrics
from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.models import Evidence, Source, Subject, SubjectVersion
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version, apply_register_metric
from evaluations.services.evidence import apply_import_files, apply_rule_on_evidence, open_paths
from evaluations.services.sources import apply_assign_trust, apply_register_source, digest_stream
from evaluations.services.subjects import apply_assign_alias, apply_register_subject, apply_register_subject_version

MAX_BUNDLED_BYTES = 10 * 1024 * 1024


class LoadedEvidence(NamedTuple):
    """Counts of what a bundle brought that was not there before."""

    evidence: int
    observations: int
    rulings: int


def apply_register_metrics(*, actor: Actor) -> int:
    """Register the package's metric definitions inside an open service transaction; returns how many there are."""
    entries = read_metrics()
    for entry in entries:
        known = entry.definition
        apply_register_metric(
            actor=actor,
            definition={
                **known._asdict(),
                "title": entry.title,
                "population": entry.population,
                "definition": entry.text,
            },
        )
    return len(entries)


def apply_load_evidence_bundle(*, actor: Actor, bundle: Bundle) -> LoadedEvidence:
    """Load sources, benchmarks, subjects, names, evidence and rulings inside an open service transaction; safe to run again."""
    for entry in bundle.sources:
        source = apply_register_source(
            actor=actor, key=entry.key, title=entry.title, publisher=entry.publisher, url=entry.url, notes=entry.notes
        )
        if entry.tier and not source.trust_assignments.exists():
            # Only a first word: a steward's later one is not undone by loading the bundle again.
            apply_assign_trust(actor=actor, source=source, tier=entry.tier, reason=entry.reason)
    for benchmark_entry in bundle.benchmarks:
        benchmark = apply_register_benchmark(
            actor=actor,
            key=benchmark_entry.key,
            title=benchmark_entry.title,
            publisher=benchmark_entry.publisher,
            url=benchmark_entry.url,
            description=benchmark_entry.description,
        )
        for version in benchmark_entry.versions:
            facts = version._asdict()
            apply_register_benchmark_version(actor=actor, benchmark=benchmark, version=facts.pop("version"), **facts)
    versions = _subjects(actor, bundle)
    sources: dict[str, Source] = {source.key: source for source in Source.objects.all()}
    for alias in bundle.aliases:
        apply_assign_alias(
            actor=actor,
            name_as_written=alias.name,
            subject_version=versions[alias.subject],
            source=sources[alias.source] if alias.source else None,
            reason=alias.reason,
        )
    evidence, observations = _evidence(actor, bundle)
    rulings = sum(_rule(actor, bundle, ruling) for ruling in bundle.rulings)
    return LoadedEvidence(evidence, observations, rulings)


def _subjects(actor: Actor, bundle: Bundle) -> dict[str, SubjectVersion]:
    versions = {}
    for entry in bundle.subjects:
        subject: Subject = apply_register_subject(
            actor=actor,
            key=entry.key,
            kind=entry.kind,
            title=entry.title,
            provider=entry.provider,
            candidate=entry.candidate,
        )
        versions[entry.key] = apply_register_subject_version(actor=actor, subject=subject, pin=entry.pin)
    return versions


def _evidence(actor: Actor, bundle: Bundle) -> tuple[int, int]:
    evidence = observations = 0
    for path in bundle.evidence:
        with ExitStack() as stack:
            files = {name: stack.enter_context(stream) for name, stream in open_paths([path])}
            for imported in apply_import_files(actor=actor, files=files, max_bytes=MAX_BUNDLED_BYTES):
                evidence += imported.evidence
                observations += imported.observations
    return evidence, observations


def _rule(actor: Actor, bundle: Bundle, entry: RulingEntry) -> int:
    """Record a ruling on the evidence that the entry describes; returns how many pieces of evidence it concerns."""
    path = DATA / entry.document
    with path.open("rb") as stream:
        digest, _ = digest_stream(stream)
    found = (
        Evidence.objects.filter(document__digest=digest, subject_as_written=entry.subject, observations__metric__key=entry.metric)
        .distinct()
        .order_by("id")
    )
    rulings = [
        apply_rule_on_evidence(actor=actor, evidence=evidence, kind=entry.ruling, reason=entry.reason, link=entry.link)
        for evidence in found
    ]
    if not rulings:
        hint = "load the bundle that holds it first"
        raise InputRefused([Problem(f"no {entry.metric} of {entry.subject} in {entry.document}", file=bundle.name, hint=hint)])
    return len(rulings)
