"""What this app announces, always after commit, always by ids. `on_behalf_of` is an actor's value, or None where nobody asked."""

from django.dispatch import Signal

standings_moved = Signal()
"""New verdicts stand. Arguments: `subject_version_ids: list[int]`, `verdict_uids: list[str]` (in the same order), `on_behalf_of`."""

policies_changed = Signal()
"""A version came into force, or a binding was recorded. Arguments: `policy_ids: list[int]`, `on_behalf_of`."""

policies_rejudged = Signal()
"""After such a change these subject versions have been judged, also where no verdict is new: what rests on them may rest on
another version or on other parameters now. Arguments: `policy_ids: list[int]`, `subject_version_ids: list[int]`, `on_behalf_of`."""

system_changed = Signal()
"""A system's domain, environment or reversibility was changed: what was judged or granted for it rests on other facts now.
Arguments: `system_id: int`."""
