"""Who may come in, decide and sign: tokens, roles, factors and holds, as they stand at the moment of asking. Nothing is cached."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.db.models import Exists, OuterRef, Q, QuerySet

from compliance.models import IdempotencyKey, Reauthentication, RoleMembership, ServiceToken, SigningHold, User
from compliance.vocabulary import SECOND_FACTORS, Role


def find_live_token(*, token_digest: str, at: datetime) -> ServiceToken | None:
    """Return the token under this digest, with `person`, where it may be used at this instant.

    None for one that is unknown, revoked or past its end, and for one whose person has no active account any more.
    """
    active = User.objects.filter(person=OuterRef("person"), is_active=True)
    token = ServiceToken.objects.select_related("person").filter(Exists(active), token_digest=token_digest).first()
    return token if token is not None and token.is_live(at) else None


def find_account(*, email: str) -> User | None:
    """Return the account that signs in by this address, active or not."""
    return User.objects.filter(email__iexact=email.strip()).first() if email else None


def active_account(*, person_id: uuid.UUID) -> User:
    """Return the oldest account of a person that is active. Raises `User.DoesNotExist`."""
    return User.objects.filter(person_id=person_id, is_active=True).earliest("id")


def is_key_used(*, caller: str, key: str) -> bool:
    """True where a caller's request under this idempotency key was carried out."""
    return IdempotencyKey.objects.filter(caller=caller, key=key).exists()


def holds_any_role(*, person_id: uuid.UUID, roles: Iterable[Role], at: datetime) -> bool:
    """True when the person holds one of the roles at this instant."""
    return _live(at).filter(person_id=person_id, role__in=list(roles)).exists()


def live_roles(*, person_id: uuid.UUID, at: datetime) -> list[RoleMembership]:
    """Return the roles that the person holds at this instant, oldest first, each with its team."""
    return list(_live(at).filter(person_id=person_id).select_related("team").order_by("id"))


def all_live_roles(
    *, at: datetime, person_ids: Collection[uuid.UUID] | None = None, roles: Collection[str] | None = None
) -> list[RoleMembership]:
    """Return the roles that people hold at this instant (all, or the given ones), oldest first, each with its team and the person's."""
    held = _live(at).select_related("team", "person__team").order_by("id")
    if person_ids is not None:
        held = held.filter(person__in=person_ids)
    return list(held if roles is None else held.filter(role__in=roles))


def held_signing_holds(*, person_ids: Iterable[uuid.UUID], at: datetime) -> set[uuid.UUID]:
    """Return those of the people on whose signing a hold stands at this instant."""
    standing = SigningHold.objects.filter(person_id__in=list(person_ids), placed_at__lte=at)
    return set(standing.filter(Q(lifted_at=None) | Q(lifted_at__gt=at)).values_list("person_id", flat=True))


def latest_reauthentication(*, user_id: int, session_digest: str) -> Reauthentication | None:
    """Return the newest proof that this account gave in this session by a second factor (an authenticator app or a passkey).

    A password alone does not count, nor does a recovery code: it replaces a lost factor for long enough to set up a new one. Whether
    the proof is recent enough is for the caller, who knows the policy's minutes.
    """
    given = Reauthentication.objects.filter(user_id=user_id, session_digest=session_digest, method__in=SECOND_FACTORS)
    return given.order_by("-id").first()


def has_second_factor(*, user_id: int) -> bool:
    """True when the account can prove itself by an authenticator app or a passkey; recovery codes alone are none."""
    return Authenticator.objects.filter(user_id=user_id, type__in=SECOND_FACTORS).exists()


def factor_counts(*, user_id: int) -> dict[str, int]:
    """Return how many factors of each type the account has, by allauth's names of the types."""
    return dict(Counter(Authenticator.objects.filter(user_id=user_id).order_by("type").values_list("type", flat=True)))


def _live(at: datetime) -> QuerySet[RoleMembership]:
    return RoleMembership.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), starts_at__lte=at)
