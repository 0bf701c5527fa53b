"""The console's pages on what was measured, about whom, by whom: read-only."""

from evaluations.admin import benchmarks, evidence, refreshing, sources, subjects

__all__ = ["benchmarks", "evidence", "refreshing", "sources", "subjects"]
