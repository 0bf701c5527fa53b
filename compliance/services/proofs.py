"""Who signs is she, and still herself when it commits: what a signature, a grant's beginning and a break-glass ask for."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from compliance.models import Reauthentication, RoleMembership, User
from compliance.selectors.access import latest_reauthentication
from evaluations.kernel.errors import DomainError, ErrorKind

CLOCKS_APART = timedelta(seconds=5)


class ReauthenticationNeeded(DomainError):
    """Whoever signs shows once more, by a second factor and a short while before, that it is she."""

    code = "reauthentication_needed"
    kind = ErrorKind.FORBIDDEN


def require_proof(*, account: User, session: str, minutes: int, at: datetime) -> Reauthentication:
    """Return the proof by a second factor that this session gave within the last minutes. Raises `ReauthenticationNeeded`."""
    shown = latest_reauthentication(user_id=account.pk, session_digest=session)
    if shown is None or not at - timedelta(minutes=minutes) <= shown.at <= at + CLOCKS_APART:
        raise ReauthenticationNeeded(
            f"show once more that it is you, by your authenticator app or passkey, within {minutes} minutes before this",
            minutes=minutes,
        )
    return shown


def apply_hold_people(people: Collection[UUID]) -> None:
    """Hold the accounts and roles of people as they are until this transaction ends.

    Deactivating an account takes its row for update, ending a role its own: whichever commits first, the other sees it.
    """
    accounts = User.objects.select_for_update(no_key=True).filter(person__in=people)
    list(accounts.order_by("pk").values_list("pk", flat=True))
    roles = RoleMembership.objects.select_for_update(no_key=True).filter(person__in=people)
    list(roles.order_by("pk").values_list("pk", flat=True))
