"""The one wrapper round services: the outermost transaction, the service's mark for state tables, and the record of refusals."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Thread
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, connection, transaction

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import DomainError, InputRefused

P = ParamSpec("P")
R = TypeVar("R")

SHOWN_DETAIL = 500
_running: ContextVar[str] = ContextVar("running_service", default="")

logger = logging.getLogger("writegate.services")


@contextmanager
def service_transaction(name: str) -> Iterator[None]:
    """Open the outermost transaction and mark it as a service's, so that state tables accept its changes.

    Nesting raises (`durable`): a service never calls a service.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('writegate.service', %s, true)", [name])
        yield


def service(*, refused: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a keyword-only function `f(*, actor, …)` a service.

    `refused` is the audit action under which a `DomainError` is recorded, in a transaction of its own after the roll-back.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            actor = kwargs.get("actor")
            if args or not isinstance(actor, Actor):
                raise TypeError(f"{name}() takes keywords only, and `actor` must be an Actor")
            before = _running.set(name)
            try:
                with service_transaction(name):
                    return function(*args, **kwargs)
            except DomainError as refusal:
                record_refusal(refused, name, actor, refusal, str(kwargs.get("request_id", "")))
                raise
            finally:
                _running.reset(before)

        return run

    return decorate


def running_service() -> str:
    """Return the name of the service whose function runs here, "" outside one. A transaction that only calls itself so is none."""
    return _running.get()


def record_refusal(action: str, name: str, actor: Actor, refusal: DomainError, request_id: str = "") -> None:
    """Record a refusal in a transaction of its own, whatever the caller has open; once, however many hands it passes through."""
    if refusal.recorded:
        return
    refusal.recorded = True
    try:
        _record_refusal(action, name, actor, refusal, request_id)
    except RuntimeError:
        if not connection.in_atomic_block:
            raise
        # The caller's transaction may be rolled back, and the record with it: another connection keeps it.
        elsewhere = Thread(target=_record_elsewhere, args=(action, name, actor, refusal, request_id))
        elsewhere.start()
        elsewhere.join()


def _record_elsewhere(action: str, name: str, actor: Actor, refusal: DomainError, request_id: str) -> None:
    try:
        _record_refusal(action, name, actor, refusal, request_id)
    finally:
        connection.close()


def _record_refusal(action: str, name: str, actor: Actor, refusal: DomainError, request_id: str) -> None:
    new: dict[str, object] = {"code": refusal.code, "detail": str(refusal)[:SHOWN_DETAIL]}
    if isinstance(refusal, InputRefused):
        new["problems"] = len(refusal.problems)
    try:
        with service_transaction(name):
            audit.record(audit.Event(action=action, actor=actor, target=("service", name), new=new, request_id=request_id))
    except (DatabaseError, audit.AuditSinkMissing):
        # Nothing was changed and the caller is told no; that the refusal itself could not be written is for the operator.
        logger.exception("a refusal of %s could not be recorded", name)
