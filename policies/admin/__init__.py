"""The console's pages on policies, systems and verdicts: read-only."""

from policies.admin import policies, systems, verdicts

__all__ = ["policies", "systems", "verdicts"]
