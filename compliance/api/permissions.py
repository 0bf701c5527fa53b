"""What who asks may do: every view declares the scope of each of its methods, and a method without one is closed."""

from collections.abc import Mapping
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from compliance.api.authentication import token_actor
from compliance.models import ServiceToken, User
from compliance.selectors.access import holds_any_role
from compliance.selectors.uploads import was_handed_in_by
from compliance.services.requests import MAY_ASK
from compliance.vocabulary import KEEPS_SOURCES, TRAIL_READERS, Role, Scope
from evaluations.kernel.clock import now

SESSION_ROLES: Mapping[str, tuple[Role, ...]] = {
    Scope.SUBMIT_EVIDENCE: KEEPS_SOURCES,
    Scope.REGISTER: (Role.REQUESTER, Role.SYSTEM_OWNER, Role.SECURITY, Role.ADMINISTRATOR),
    Scope.REQUEST: tuple(role for role in Role if any(role in roles for roles in MAY_ASK.values())),
}
"""The roles with which a signed-in person may use a scope; `read` takes a member of staff instead."""


class HasScope(BasePermission):
    """Holds a request against the view's `scopes`, by method.

    A token needs the scope itself: one narrowed to a system (`read:hr-prod`) opens nothing that belongs to no system. A person's
    roles are read at the moment of asking.
    """

    code = "scope_missing"
    message = "you may not do this"

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method.lower() not in view.http_method_names or not hasattr(view, method.lower()):
            # No such method: the answer is 405, for everybody who may know that the address exists.
            return bool(request.user and request.user.is_authenticated)
        scope: str | None = getattr(view, "scopes", {}).get(method)
        if scope is None:
            return False
        credential: Any = request.auth
        if isinstance(credential, ServiceToken):
            self.message = f"the token lacks the scope `{scope}`"
            return self.holds(credential, scope, view)
        user: Any = request.user
        if not isinstance(user, User) or not user.is_active:
            return False
        return self.opens(user, scope)

    def opens(self, user: User, scope: str) -> bool:
        """True when a signed-in person may use the scope."""
        if scope == Scope.READ:
            self.message = "this account may not use the console"
            return user.is_staff
        roles = SESSION_ROLES.get(scope, ())
        self.message = f"this needs the role {' or '.join(roles) or 'of a machine'}"
        return bool(roles) and holds_any_role(person_id=user.person_id, roles=roles, at=now())

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        """True when the token's scope opens the view."""
        return token.holds(scope)


class HasScopeOfSystem(HasScope):
    """Takes a scope narrowed to the system in the address; where the address names none, one narrowed to any system, and the view
    narrows what is done.
    """

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        key = str(view.kwargs.get("key", ""))
        if key or scope == Scope.READ:
            return token.holds(scope, system=key)
        return token.holds(scope) or any(held.startswith(f"{scope}:") for held in token.scopes)


class HasScopeOfAnySystem(HasScope):
    """Takes a scope narrowed to any system: the view narrows what is seen, and what is done, to it."""

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        return token.holds(scope) or any(held.startswith(f"{scope}:") for held in token.scopes)


class ReadsOrHandedIn(HasScope):
    """Opens an upload to whoever reads, and to the token that handed it in: what may submit learns what became of it."""

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        own = token.holds(Scope.SUBMIT_EVIDENCE) and was_handed_in_by(token_actor(token).reference, uid=view.kwargs["uid"])
        return token.holds(scope) or own


class KeepsSources(HasScope):
    """Opens what decides where evidence comes from: a token needs its scope, and a person behind it with one of `KEEPS_SOURCES`."""

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        if not token.holds(scope) or scope == Scope.READ:
            return token.holds(scope)
        self.code = "role_missing"
        self.message = f"this needs the role {' or '.join(KEEPS_SOURCES)}, which a token takes from its person"
        return holds_any_role(person_id=token.person_id, roles=KEEPS_SOURCES, at=now())


class ServiceJudges(HasScopeOfAnySystem):
    """Opens acts whose service judges who may: a signed-in person needs no more than an account for the console."""

    def opens(self, user: User, scope: str) -> bool:
        return super().opens(user, Scope.READ)


class ServiceJudgesWhole(HasScope):
    """Opens acts whose service judges who may, and which belong to no system: a token needs the whole scope."""

    def opens(self, user: User, scope: str) -> bool:
        return super().opens(user, Scope.READ)


class ToBeRefused(ServiceJudges):
    """Lets every token that sees or asks for requests come as far as the service, which says no and puts it on record."""

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        return any(super(ToBeRefused, self).holds(token, each, view) for each in {scope, Scope.READ, Scope.REQUEST})


class PeopleAlone(ServiceJudges):
    """Opens acts whose service judges who may, and which no machine does."""

    def holds(self, token: ServiceToken, scope: str, view: APIView) -> bool:
        self.code = "person_needed"
        self.message = "no token may do this: it is for people who are signed in"
        return False


class ReadsTrail(HasScope):
    """Holds a request against the scope as ever, then against `TRAIL_READERS` of the person who asks, or whose token does."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not super().has_permission(request, view):
            return False
        credential: Any = request.auth if isinstance(request.auth, ServiceToken) else request.user
        if holds_any_role(person_id=credential.person_id, roles=TRAIL_READERS, at=now()):
            return True
        self.code = "role_missing"
        self.message = f"the trail is for the roles {' and '.join(TRAIL_READERS)}, which a token takes from its person"
        return False


class Administers(HasScope):
    """Opens what runs the service: auditors and administrators read, administrators act, each signed in. Tokens do neither."""

    code = "role_missing"
    message = "you may not do this"

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not hasattr(view, "get" if request.method == "HEAD" else str(request.method).lower()):
            # As in `HasScope`: the answer is 405.
            return bool(request.user and request.user.is_authenticated)
        user: Any = request.user
        if not isinstance(user, User) or not user.is_active:
            self.message = "no token may do this: it is for people who are signed in"
            return False
        roles = TRAIL_READERS if request.method in ("GET", "HEAD") else (Role.ADMINISTRATOR,)
        self.message = f"this needs the role {' or '.join(roles)}"
        return holds_any_role(person_id=user.person_id, roles=roles, at=now())
