"""The console's pages on what was measured, about whom, by whom: read-only."""

from evaluations.admin import benchmarks, evidence, sources, subjects

__all__ = ["benchmarks", "evidence", "sources", "subjects"]
