"""The console's pages on policies, systems and verdicts: read-only."""

from policies.admin import measures, plotting, policies, systems, verdicts

__all__ = ["measures", "plotting", "policies", "systems", "verdicts"]
