"""People: how they are called, which roles they hold, and whether they can sign."""

from datetime import datetime
from typing import Any
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet, Subquery

from compliance.models import Person, PersonName, RoleMembership, SigningHold, User
from compliance.vocabulary import SECOND_FACTORS


def find_people(*, at: datetime, role: str | None = None, team: str | None = None) -> QuerySet[Any]:
    """Return people, unordered, by the roles that they hold at an instant and by their own team.

    Each with `name` (None once it is erased), `first_account` (a row id, rising), `has_account` (an active one),
    `has_second_factor`, `on_hold`, and `held`: her roles at the instant, oldest first.
    """
    live = RoleMembership.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), starts_at__lte=at)
    accounts = User.objects.filter(person=OuterRef("pk"))
    factors = Authenticator.objects.filter(user__person=OuterRef("pk"), user__is_active=True, type__in=SECOND_FACTORS)
    holds = SigningHold.objects.filter(Q(lifted_at=None) | Q(lifted_at__gt=at), person=OuterRef("pk"), placed_at__lte=at)
    names = PersonName.objects.filter(person=OuterRef("pk")).order_by("-id").values("name")
    rows = Person.objects.select_related("team").annotate(
        name=Subquery(names[:1]),
        first_account=Subquery(accounts.order_by("id").values("id")[:1]),
        has_account=Exists(accounts.filter(is_active=True)),
        has_second_factor=Exists(factors),
        on_hold=Exists(holds),
    )
    if role is not None:
        rows = rows.filter(Exists(live.filter(person=OuterRef("pk"), role=role)))
    if team is not None:
        rows = rows.filter(team__key=team)
    held = Prefetch("roles", live.select_related("team").order_by("id"), to_attr="held")
    return rows.filter(first_account__isnull=False).order_by().prefetch_related(held)


def find_person(*, person_id: UUID, at: datetime) -> Any:
    """Return one person as `find_people` gives her, or None."""
    return find_people(at=at).filter(pk=person_id).first()


def find_membership(*, person_id: UUID, number: int) -> RoleMembership | None:
    """Return one role of a person by its number, ended or not."""
    return RoleMembership.objects.select_related("team").filter(person=person_id, pk=number).first()
