"""The audit port: how every floor writes to the ledger without looking up.

A port and not a signal: a signal that nobody hears is silence, a port that nobody wired is an error. `record` resolves
`settings.AUDIT_SINK` (a dotted path to a callable taking a sequence of events) and calls it inside the caller's transaction, so the
change and its entry commit or vanish together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.utils.module_loading import import_string

from evaluations.kernel.actor import Actor


@dataclass(frozen=True, slots=True)
class Event:
    """One security-relevant act, as it goes under the ledger's hash.

    `action` is `noun.past_participle`; `target` is `(table word, stable id)`; `old`, `new` and `digests` are canonical values
    (large bodies by digest only).
    """

    action: str
    actor: Actor
    target: tuple[str, str]
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    digests: Mapping[str, Any] = field(default_factory=dict)
    request_id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.actor, Actor):
            raise TypeError("an audit event needs an actor")


class AuditSinkMissing(ImproperlyConfigured):
    """AUDIT_SINK is unset or cannot be imported: nothing may be changed."""


class NoTransaction(RuntimeError):
    """An event was recorded outside a transaction, where it could outlive the change it tells of."""


def record(*events: Event) -> None:
    """Append events to the ledger in the present transaction. Raises when there is none, or when the sink fails."""
    if not connection.in_atomic_block:
        raise NoTransaction("audit.record needs the transaction of the change it records")
    sink()(events)


def sink() -> Callable[[Sequence[Event]], Any]:
    """Return the wired sink. Raises `AuditSinkMissing`."""
    path = getattr(settings, "AUDIT_SINK", None)
    if not path:
        raise AuditSinkMissing("AUDIT_SINK is not set: point it at the ledger's `append`")
    return _resolve(path)


@lru_cache(maxsize=8)
def _resolve(path: str) -> Callable[[Sequence[Event]], Any]:
    try:
        resolved = import_string(path)
    except ImportError as error:
        raise AuditSinkMissing(f"AUDIT_SINK `{path}` cannot be imported: {error}") from error
    if not callable(resolved):
        raise AuditSinkMissing(f"AUDIT_SINK `{path}` is not callable")
    return resolved
