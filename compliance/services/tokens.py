"""When a token was last used: bookkeeping, so that people can see which tokens nobody needs.

Not audited: it decides nothing, and every act that a token carries out has an entry of its own.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db import Error, connection
from django.db.models import Q

from compliance.models import ServiceToken
from evaluations.kernel.services import service_transaction

NOTED_EVERY = timedelta(minutes=1)

logger = logging.getLogger("compliance.tokens")


def note_token_use(*, token: ServiceToken, at: datetime) -> bool:
    """Note the use of a token, at most once a minute; True when this call did. Needs to be outside of any transaction."""
    if token.last_used_at is not None and token.last_used_at > at - NOTED_EVERY:
        return False
    return _note(token.pk, at)


def note_use(*, token_id: str, unnoted: bool, at: datetime) -> None:
    """Note the use of a token that a decision has read as not noted within the last minute. Never costs the answer."""
    if not unnoted or connection.in_atomic_block:
        return
    try:
        _note(token_id, at)
    except Error:
        logger.warning("the use of a token could not be noted", exc_info=True)


def _note(token_id: UUID | str, at: datetime) -> bool:
    unnoted = Q(last_used_at=None) | Q(last_used_at__lte=at - NOTED_EVERY)
    with service_transaction("note_token_use"):
        return ServiceToken.objects.filter(unnoted, pk=token_id).update(last_used_at=at) == 1
