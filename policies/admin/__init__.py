"""The console's pages on policies, systems and verdicts: read-only."""

from policies.admin import comparing, policies, systems, verdicts

__all__ = ["comparing", "policies", "systems", "verdicts"]
