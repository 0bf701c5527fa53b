"""What this app announces, always after commit, always by ids."""

from django.dispatch import Signal

subject_versions_changed = Signal()
"""Facts that concern these subject versions were recorded. Arguments: `subject_version_ids: list[int]`."""

subject_version_registered = Signal()
"""This version of a subject runs from now on: it was registered, or an older one was registered again. What rests on another version
of the subject rests on something that no longer runs. Arguments: `subject_id: int`, `subject_version_id: int`."""

metric_redefined = Signal()
"""A registered metric has another definition from here on, which every policy that reads it judges by. Arguments: `metric: str`."""

refresh_wanted = Signal()
"""Somebody asked for a source to be refreshed now. Arguments: `source_id: int`."""
