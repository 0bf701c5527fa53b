"""Who is asking: a machine by its token, or a person by the console's session."""

from typing import Any, cast

from rest_framework import authentication
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from compliance.models import ServiceToken, User
from compliance.selectors.access import find_live_token
from compliance.services.people import TOKEN_PREFIX, token_digest
from compliance.services.tokens import note_token_use
from evaluations.kernel.actor import Actor, person, service
from evaluations.kernel.clock import now

CHALLENGE = "Bearer"
MAX_TOKEN_LENGTH = 200

__all__ = ["Machine", "SessionAuthentication", "TokenAuthentication", "actor_of"]


class Machine:
    """Stands where Django keeps the user when a token asks: authenticated, and nobody's account."""

    is_authenticated = True
    is_anonymous = False
    is_active = True
    is_staff = False
    is_superuser = False
    pk = None

    def __init__(self, token: ServiceToken) -> None:
        self.token = token

    def __str__(self) -> str:
        return f"token {self.token.name}"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer wg_…`. A token that was given and does not hold ends the request: no session is tried after it."""

    def authenticate(self, request: Request) -> tuple[Machine, ServiceToken] | None:
        scheme, _, rest = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        moment = now()
        secret = rest.strip()
        token = None
        if secret.isascii() and len(secret) <= MAX_TOKEN_LENGTH and secret.startswith(TOKEN_PREFIX.encode()):
            token = find_live_token(token_digest=token_digest(secret.decode("ascii")), at=moment)
        if token is None:
            # One sentence for all causes: which of them it is helps only somebody who guesses.
            raise AuthenticationFailed("the token is unknown, expired or revoked", code="token_refused")
        note_token_use(token=token, at=moment)
        return Machine(token), token

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


class SessionAuthentication(authentication.SessionAuthentication):
    """The console's session. A one-time password opens the page that asks for a new one, and nothing else."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        found = super().authenticate(request)
        if found is not None and getattr(found[0], "must_change_password", False):
            raise PermissionDenied("the password is a one-time password: choose a new one in the console first")
        return found


def token_actor(token: ServiceToken) -> Actor:
    """Return the token as an actor, on behalf of its person."""
    return service(token.pk, on_behalf_of=person(token.person_id))


def actor_of(request: Request) -> Actor:
    """Return who acts: the token on behalf of its person, or the signed-in person."""
    if isinstance(request.auth, ServiceToken):
        return token_actor(request.auth)
    user: Any = request.user
    return person(cast(User, user).person_id)
