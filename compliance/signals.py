"""What this app announces, always after commit. The work is found by query, so that a lost announcement costs seconds."""

from django.dispatch import Signal

notices_queued = Signal()
"""Messages wait in the outbox. No arguments."""

grants_to_review = Signal()
"""What grants of these subject versions rest on may have changed without a new verdict: a waiver ended or was taken back, or a grant
was made or came back while a verdict was under way. Arguments: `subject_version_ids: list[int]`."""
