"""What administrators do: register people and teams, close and open accounts, reset passwords and factors, revoke tokens.

A reset places a hold on signing.
"""

import uuid

from allauth.mfa.models import Authenticator
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from compliance.models import Person, ServiceToken, SigningHold, Team, User
from compliance.selectors.access import factor_counts
from compliance.services.administration import (
    MAX_REASON,
    apply_keep_an_administrator,
    apply_lock_administrators,
    apply_require_administrator,
    responsible,
)
from compliance.services.people import apply_create_person, apply_create_team, apply_revoke_token
from compliance.vocabulary import HoldCause
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.actor import person as person_actor
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service


class OwnAccountRefused(DomainError):
    code = "own_account_refused"
    kind = ErrorKind.FORBIDDEN


class TeamExists(DomainError):
    code = "team_exists"
    kind = ErrorKind.CONFLICT


class AccountNotActive(DomainError):
    code = "account_not_active"
    kind = ErrorKind.CONFLICT


class AccountActive(DomainError):
    code = "account_active"
    kind = ErrorKind.CONFLICT


class SecondAdministratorNeeded(DomainError):
    code = "second_administrator_needed"
    kind = ErrorKind.CONFLICT


class HoldLifted(DomainError):
    code = "hold_lifted"
    kind = ErrorKind.CONFLICT


@service(refused="person.refused")
def register_person(*, actor: Actor, name: str, email: str, password: str, team: Team | None = None) -> User:
    """Register a person with one account, a one-time password and no role: roles are given, each on record, by `give_role`.

    Raises `AdministratorNeeded`, `AccountExists`, `InputRefused`.
    """
    apply_require_administrator(actor=actor)
    return apply_create_person(actor=actor, name=name, email=email, password=password, team=team, must_change_password=True)


@service(refused="team.refused")
def register_team(*, actor: Actor, key: str, title: str) -> Team:
    """Register a team. Raises `AdministratorNeeded`, `TeamExists`, `InputRefused`."""
    apply_require_administrator(actor=actor)
    if Team.objects.filter(key=key).exists():
        raise TeamExists(f"the team `{key}` is registered already")
    return apply_create_team(actor=actor, key=key, title=title)


@service(refused="token.refused")
def end_token(*, actor: Actor, token: ServiceToken, reason: str) -> ServiceToken:
    """Revoke anybody's token, which is dead at once. Raises `AdministratorNeeded`, `InputRefused`."""
    apply_require_administrator(actor=actor)
    return apply_revoke_token(actor=actor, token=token, told={"reason": _checked_reason(reason)})


@service(refused="password.refused")
def set_password(*, actor: Actor, user: User, password: str, must_change_password: bool) -> User:
    """Give an account a new password; the record says that it was done, never what it is.

    Done by anybody but the person herself, it places a hold on her signing.
    """
    return apply_set_password(actor=actor, user=user, password=password, must_change_password=must_change_password)


@service(refused="account.refused")
def deactivate_account(*, actor: Actor, user: User, reason: str, request_id: str = "") -> User:
    """Close an account: its sessions end with their next request, and its person's tokens with the last of her accounts.

    Takes the account's row `FOR UPDATE`. Who signs takes it `FOR SHARE`: so a signature is either committed before the account is
    closed or sees that it is. Raises `AdministratorNeeded`, `OwnAccountRefused`, `LastAdministrator`, `AccountNotActive`.
    """
    said = _checked_reason(reason)
    apply_lock_administrators()
    _apply_require_another(actor=actor, user=user)
    account = User.objects.select_for_update().get(pk=user.pk)
    if not account.is_active:
        raise AccountNotActive("this account is closed already")
    if not account.person.accounts.filter(is_active=True).exclude(pk=account.pk).exists():
        apply_keep_an_administrator(without=account.person_id)
    _apply_move(account, is_active=False)
    _record(actor, "account.deactivated", account, {"reason": said}, request_id)
    return account


@service(refused="account.refused")
def reactivate_account(*, actor: Actor, user: User, reason: str, request_id: str = "") -> User:
    """Open a closed account again, with the password and factors it had.

    Raises `AdministratorNeeded`, `OwnAccountRefused`, `AccountActive`.
    """
    said = _checked_reason(reason)
    _apply_require_another(actor=actor, user=user)
    account = User.objects.select_for_update().get(pk=user.pk)
    if account.is_active:
        raise AccountActive("this account is open already")
    _apply_move(account, is_active=True)
    _record(actor, "account.reactivated", account, {"reason": said}, request_id)
    return account


@service(refused="password.refused")
def reset_password(*, actor: Actor, user: User, password: str, request_id: str = "") -> User:
    """Give somebody else's account a one-time password; her sessions end, and a hold on her signing is placed.

    Raises `AdministratorNeeded`, `OwnAccountRefused`, `InputRefused`.
    """
    _apply_require_another(actor=actor, user=user)
    account = User.objects.select_for_update().get(pk=user.pk)
    try:
        validate_password(password, account)
    except ValidationError as refused:
        raise InputRefused(Problem(text.rstrip("."), field="password") for text in refused.messages) from refused
    return apply_set_password(actor=actor, user=account, password=password, must_change_password=True, request_id=request_id)


@service(refused="factor.refused")
def reset_factors(*, actor: Actor, user: User, reason: str, request_id: str = "") -> User:
    """Take every second factor from somebody else's account, so that she can set up new ones; places a hold on her signing.

    Raises `AdministratorNeeded`, `OwnAccountRefused`.
    """
    said = _checked_reason(reason)
    _apply_require_another(actor=actor, user=user)
    account = User.objects.select_for_update().get(pk=user.pk)
    taken = factor_counts(user_id=account.pk)
    Authenticator.objects.filter(user_id=account.pk).delete()
    _record(actor, "factor.reset", account, {"reason": said, "removed": sum(taken.values()), "types": sorted(taken)}, request_id)
    apply_place_hold(actor=actor, person=account.person, cause=HoldCause.FACTORS_RESET, request_id=request_id)
    return account


@service(refused="signing_hold.refused")
def lift_signing_hold(*, actor: Actor, hold: SigningHold, request_id: str = "") -> SigningHold:
    """Confirm that a reset was in order: the person's signatures count again, once no other hold stands.

    Raises `AdministratorNeeded`, `SecondAdministratorNeeded` for the one who placed it and for the person herself, `HoldLifted`.
    """
    lifter = apply_require_administrator(actor=actor)
    by = responsible(actor).reference
    if by == hold.placed_by or lifter == hold.person_id:
        raise SecondAdministratorNeeded(
            "a hold is lifted by another administrator than the one who placed it, and never by herself"
        )
    if not SigningHold.claim(hold.pk, expected={"lifted_at": None}, moved_to={"lifted_by": by, "lifted_at": now()}):
        raise HoldLifted("this hold is lifted already")
    audit.record(
        audit.Event(
            action="signing_hold.lifted",
            actor=actor,
            target=("person", str(hold.person_id)),
            new={"hold": hold.pk, "cause": hold.cause},
            request_id=request_id,
        )
    )
    return hold.reload()


def apply_set_password(*, actor: Actor, user: User, password: str, must_change_password: bool, request_id: str = "") -> User:
    """Set a password inside an open service transaction; places a hold where it is not the person's own act."""
    user.set_password(password)
    user.must_change_password = must_change_password
    user.save(update_fields=["password", "must_change_password"])
    _record(actor, "password.changed", user, {"one_time": must_change_password}, request_id)
    if responsible(actor) != person_actor(user.person_id):
        apply_place_hold(actor=actor, person=user.person, cause=HoldCause.PASSWORD_RESET, request_id=request_id)
    return user


def apply_place_hold(*, actor: Actor, person: Person, cause: HoldCause, request_id: str = "") -> SigningHold:
    """Place a hold on a person's signing inside an open service transaction."""
    hold = SigningHold.objects.create(person=person, cause=cause, placed_by=responsible(actor).reference)
    audit.record(
        audit.Event(
            action="signing_hold.placed",
            actor=actor,
            target=("person", str(person.pk)),
            new={"hold": hold.pk, "cause": str(cause)},
            request_id=request_id,
        )
    )
    return hold


def _apply_require_another(*, actor: Actor, user: User) -> uuid.UUID:
    acting = apply_require_administrator(actor=actor)
    if acting == user.person_id:
        raise OwnAccountRefused("nobody does this to her own account: ask another administrator")
    return acting


def _apply_move(account: User, *, is_active: bool) -> None:
    account.is_active = is_active
    account.save(update_fields=["is_active"])


def _checked_reason(reason: str) -> str:
    said = reason.strip()
    if not said or len(said) > MAX_REASON:
        raise InputRefused([Problem(f"a reason is needed, of at most {MAX_REASON} characters", field="reason")])
    return said


def _record(actor: Actor, action: str, user: User, new: dict[str, object], request_id: str) -> None:
    audit.record(
        audit.Event(
            action=action,
            actor=actor,
            target=("person", str(user.person_id)),
            new={"account": user.pk, **new},
            request_id=request_id,
        )
    )
