"""What views about requests, grants and waivers share: what one may see, what one saw last, and what every service is told."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from compliance.api.authentication import actor_of
from compliance.api.preconditions import PreconditionFailed, seen_digest
from compliance.api.requests import request_id_of
from compliance.api.views import existing
from compliance.models import ServiceToken, User
from compliance.models.signing_in import session_digest
from compliance.selectors.access import active_account, is_key_used
from compliance.selectors.sight import Sight, sight_of
from compliance.vocabulary import Scope


def person_of(request: Request) -> UUID:
    """Return the person who asks, or whose token does."""
    credential: Any = request.auth if isinstance(request.auth, ServiceToken) else request.user
    person: UUID = credential.person_id
    return person


def account_of(request: Request) -> User:
    """Return the account that asks; for a token the one of its person, so that the service can say what a token may not."""
    if isinstance(request.auth, ServiceToken):
        return active_account(person_id=request.auth.person_id)
    account: Any = request.user
    found: User = account
    return found


def session_of(request: Request) -> str:
    """Return the digest under which facts cite the session of who asks; a token has none, and its digest fits no fact."""
    session = getattr(request._request, "session", None)
    return session_digest((session.session_key if session is not None else "") or "")


def narrowed_to(request: Request, scope: str) -> frozenset[str] | None:
    """Return the systems to which a token's scope is narrowed, None where it is not."""
    token = request.auth
    return systems_of(token, scope) if isinstance(token, ServiceToken) else None


def systems_of(token: ServiceToken, scope: str) -> frozenset[str] | None:
    """Return the systems to which a token's scope is narrowed, None where it is held for all; empty where it is not held."""
    if token.holds(scope):
        return None
    return frozenset(held.removeprefix(f"{scope}:") for held in token.scopes if held.startswith(f"{scope}:"))


def sight_for(request: Request, scope: str, *, at: datetime) -> Sight:
    """Return what who asks may see: her own sight, within what the scope of a token is narrowed to."""
    return sight_of(person_of(request), at=at, systems=narrowed_to(request, scope))


def within_scope(request: Request, systems: Collection[str]) -> None:
    """Refuse a token that is narrowed to other systems than these; what is about no system is beyond every narrowed token."""
    narrow = narrowed_to(request, Scope.REQUEST)
    if narrow is not None and (not systems or not set(systems) <= narrow):
        raise PermissionDenied("the token is for other systems", code="scope_missing")


def seen(request: Request, find: Callable[..., Any], *, at: datetime, scope: str = Scope.READ, **named: Any) -> Any:
    """Return one thing that who asks may see. `find(sight, **named)` returns None where there is none: 404, as for what is not."""
    sight = sight_for(request, scope, at=at)
    return existing(lambda **kwargs: find(sight, **kwargs), **named)


def act_of(request: Request) -> dict[str, Any]:
    """Return the arguments that every service takes: who, under which idempotency key, in which request."""
    return {
        "actor": actor_of(request),
        "idempotency_key": request.headers.get("Idempotency-Key"),
        "request_id": request_id_of(request._request),
    }


def require_unchanged(request: Request, version: str) -> None:
    """Hold a change to what the caller saw. Raises `PreconditionRequired`, `PreconditionFailed`.

    A retry under a key that was used is let through: what it changed is why the tag is no longer true, and the service knows the key.
    """
    given = seen_digest(request)
    key = request.headers.get("Idempotency-Key")
    if given != version and not (key and is_key_used(caller=actor_of(request).reference, key=key)):
        raise PreconditionFailed
