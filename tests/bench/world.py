"""The registry that the benchmark's evidence names."""

from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service_transaction
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version, apply_register_metric
from evaluations.services.sources import apply_assign_trust, apply_register_source
from tests.bench.registry import DEFINITIONS

VERSIONS = {"bench-a": ("1", "2", "3", "4"), "bench-b": ("1",)}


def register_world(actor: Actor) -> None:
    """Register metrics, two benchmarks and a trusted source; safe to run again."""
    with service_transaction("load_bundle"):
        for definition in DEFINITIONS:
            apply_register_metric(actor=actor, definition=definition)
        for key, versions in VERSIONS.items():
            benchmark = apply_register_benchmark(actor=actor, key=key, title=key)
            for version in versions:
                apply_register_benchmark_version(actor=actor, benchmark=benchmark, version=version)
        source = apply_register_source(actor=actor, key="lab", title="A lab")
        apply_assign_trust(actor=actor, source=source, tier="independent", reason="benchmark")
