"""Worlds that are made once a module, and for each test as if they were new."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction


@contextmanager
def undone() -> Iterator[None]:
    """Undo at the end whatever happens inside; marked as Django marks its test transactions, so that services may open theirs."""
    block = transaction.atomic()
    block._from_testcase = True
    block.__enter__()
    try:
        yield
    finally:
        transaction.set_rollback(True)
        block.__exit__(None, None, None)
