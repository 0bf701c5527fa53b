"""The bytes of a ledger entry. Pure: the verifier shares this format and nothing else.

An entry is canonical JSON (see `evaluations.kernel.canonical`) with exactly these members:

- `action` — `noun.past_participle`
- `actor` — `kind`, `id`; a person's also `name_commitment`; background work also `task_id` and `on_behalf_of` (an actor again)
- `at` — when it was appended
- `digests` — digests of policies, evidence, documents and bodies the act rests on
- `id` — a UUID, so that two equal acts are two entries
- `new`, `old` — values after and before, or null
- `request_id` — the HTTP request it came by, or empty
- `target` — `kind` and `id` of what it is about
- `version` — 1
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evaluations.kernel.canonical import canonical_bytes

VERSION = 1
MAX_ENTRY_BYTES = 65_535
"""C2SP tlog-tiles length-prefixes entries with 16 bits."""


class EntryTooLarge(ValueError):
    """A body that must go by digest was put into an entry."""


def entry_bytes(
    *,
    entry_id: str,
    at: datetime,
    action: str,
    actor: Mapping[str, Any],
    target: tuple[str, str],
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    digests: Mapping[str, Any],
    request_id: str,
) -> bytes:
    """Return the canonical bytes of one entry, at most 65,535. Raises `EntryTooLarge`."""
    content = canonical_bytes(
        {
            "action": action,
            "actor": dict(actor),
            "at": at,
            "digests": dict(digests),
            "id": entry_id,
            "new": None if new is None else dict(new),
            "old": None if old is None else dict(old),
            "request_id": request_id,
            "target": {"id": target[1], "kind": target[0]},
            "version": VERSION,
        }
    )
    if len(content) > MAX_ENTRY_BYTES:
        raise EntryTooLarge(f"an entry of {len(content)} bytes for `{action}`: cite large bodies by digest")
    return content
