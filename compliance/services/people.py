"""People with their first accounts and roles, teams, and tokens: every write.

What happens to an account later is in `accounts`, what happens to a role in `roles`.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from compliance.models import Person, PersonName, RoleMembership, ServiceToken, Team, User
from compliance.models.people import normalise_email
from compliance.services.administration import responsible
from compliance.vocabulary import Scope
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.names import check_key, key_problem
from evaluations.kernel.services import service

TOKEN_PREFIX = "wg_"  # noqa: S105  (what every token begins with, so that scanners find one that leaked)
TOKEN_BYTES = 32
TOKEN_SHOWN = 11
MAX_TOKEN_DAYS = 366


class AccountExists(DomainError):
    code = "account_exists"
    kind = ErrorKind.CONFLICT


class NewToken(NamedTuple):
    """A token row, and the secret, which is shown once and kept nowhere."""

    token: ServiceToken
    secret: str


def token_digest(secret: str) -> str:
    """Return the digest under which a secret is kept. A random 256-bit secret needs no slow hash."""
    return DIGEST_PREFIX + hashlib.sha256(secret.encode()).hexdigest()


@service(refused="team.refused")
def create_team(*, actor: Actor, key: str, title: str) -> Team:
    """Register a team by key; the same key again returns the team that is there."""
    return apply_create_team(actor=actor, key=key, title=title)


@service(refused="person.refused")
def create_person(
    *,
    actor: Actor,
    name: str,
    email: str,
    password: str | None = None,
    team: Team | None = None,
    roles: Sequence[str] = (),
    is_staff: bool = True,
    is_superuser: bool = False,
    must_change_password: bool = False,
) -> User:
    """Register a person with one account and her first roles. Raises `AccountExists`, `InputRefused`."""
    return apply_create_person(
        actor=actor,
        name=name,
        email=email,
        password=password,
        team=team,
        roles=roles,
        is_staff=is_staff,
        is_superuser=is_superuser,
        must_change_password=must_change_password,
    )


@service(refused="token.refused")
def create_token(
    *,
    actor: Actor,
    name: str,
    scopes: Sequence[str],
    person: Person,
    team: Team | None = None,
    expires_at: datetime | None = None,
) -> NewToken:
    """Make a service token that belongs to a person and acts for her. Raises `InputRefused`."""
    moment = now()
    ends = expires_at or moment + timedelta(days=90)
    problems = _token_problems(name, scopes, ends, moment)
    if problems:
        raise InputRefused(problems)
    secret = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    token = ServiceToken.objects.create(
        name=name.strip(),
        prefix=secret[:TOKEN_SHOWN],
        token_digest=token_digest(secret),
        scopes=sorted(set(scopes)),
        person=person,
        team=team or person.team,
        created_at=moment,
        expires_at=ends,
    )
    audit.record(
        audit.Event(
            action="token.created",
            actor=actor,
            target=("token", str(token.id)),
            new={"name": token.name, "scopes": token.scopes, "person": str(person.id), "expires_at": ends},
        )
    )
    return NewToken(token, secret)


@service(refused="token.refused")
def revoke_token(*, actor: Actor, token: ServiceToken) -> ServiceToken:
    """End a token at once; ending it twice is no error."""
    return apply_revoke_token(actor=actor, token=token, told={})


def apply_revoke_token(*, actor: Actor, token: ServiceToken, told: Mapping[str, str]) -> ServiceToken:
    """End a token inside an open service transaction; `told` stands in the entry beside its name."""
    if ServiceToken.claim(token.pk, expected={"revoked_at": None}, moved_to={"revoked_at": now()}):
        new = {"name": token.name, **told}
        audit.record(audit.Event(action="token.revoked", actor=actor, target=("token", str(token.id)), new=new))
    return token.reload()


def apply_create_team(*, actor: Actor, key: str, title: str) -> Team:
    """Register a team inside an open service transaction."""
    check_key(key, field="key")
    team, made = Team.objects.get_or_create(key=key, defaults={"title": title or key})
    if made:
        audit.record(audit.Event(action="team.registered", actor=actor, target=("team", key), new={"title": team.title}))
    return team


def apply_create_person(
    *,
    actor: Actor,
    name: str,
    email: str,
    password: str | None = None,
    team: Team | None = None,
    roles: Sequence[str] = (),
    is_staff: bool = True,
    is_superuser: bool = False,
    must_change_password: bool = False,
) -> User:
    """Register a person inside an open service transaction."""
    address = normalise_email(email.strip())
    printed = name.strip()
    if not printed or "@" not in address:
        raise InputRefused([Problem("a name and an e-mail address are needed", field="name" if not printed else "email")])
    if User.objects.filter(email__iexact=address).exists():
        raise AccountExists(f"`{address}` has an account already")
    person = Person.objects.create(team=team)
    salt = secrets.token_bytes(16)
    PersonName.objects.create(
        person=person,
        name=printed,
        salt=salt,
        commitment=DIGEST_PREFIX + hashlib.sha256(salt + printed.encode()).hexdigest(),
    )
    user = User(
        email=address,
        person=person,
        is_staff=is_staff,
        is_superuser=is_superuser,
        must_change_password=must_change_password,
    )
    user.set_password(password)
    user.save()
    for role in roles:
        RoleMembership.objects.create(person=person, role=role, given_by=responsible(actor).reference)
    audit.record(
        audit.Event(
            action="person.registered",
            actor=actor,
            target=("person", str(person.id)),
            new={
                "account": user.pk,
                "is_staff": is_staff,
                "is_superuser": is_superuser,
                "roles": sorted(str(role) for role in roles),
                "team": team.key if team else None,
            },
        )
    )
    return user


def _token_problems(name: str, scopes: Sequence[str], ends: datetime, moment: datetime) -> list[Problem]:
    problems = []
    if not name.strip():
        problems.append(Problem("a token needs a name", field="name"))
    if not scopes:
        problems.append(
            Problem("a token needs at least one scope", field="scope", hint=f"known scopes: {', '.join(Scope.values)}")
        )
    for scope in scopes:
        word, _, system = scope.partition(":")
        if word not in Scope.values:
            problems.append(Problem(f"`{scope}` is no scope", field="scope", hint=f"known scopes: {', '.join(Scope.values)}"))
        elif ":" in scope and (problem := key_problem(system, field="scope")):
            problems.append(problem)
    if not moment < ends <= moment + timedelta(days=MAX_TOKEN_DAYS):
        problems.append(Problem(f"a token ends within {MAX_TOKEN_DAYS} days from now", field="expires_at"))
    return problems
