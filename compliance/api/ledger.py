"""The log as C2SP `tlog-tiles` serves it: the checkpoint, tiles of hashes, and bundles of entries.

Plain views without the API's negotiation: the format fixes every header. Checkpoint and hashes say nothing about anybody and are
open, so that a witness needs no account. Bundles hold the entries, and are for whoever may read the trail.
"""

from http import HTTPStatus
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from rest_framework.exceptions import AuthenticationFailed

from compliance.api.authentication import CHALLENGE, TokenAuthentication
from compliance.api.errors import problem_response
from compliance.ledger.stored import LedgerDamaged, tile_bytes
from compliance.ledger.tiles import PathRefused, parse_path
from compliance.models import User
from compliance.selectors.ledger import last_checkpoint
from compliance.vocabulary import Scope
from evaluations.kernel.errors import NotFound

CHECKPOINT_SECONDS = 2
YEAR_SECONDS = 365 * 24 * 60 * 60


@require_safe
def checkpoint(request: HttpRequest) -> HttpResponse:
    """`<prefix>/checkpoint`: the newest signed note."""
    newest = last_checkpoint()
    if newest is None:
        return problem_response(request, HTTPStatus.NOT_FOUND, "not_found", "the log is empty: nothing is sealed yet")
    response = HttpResponse(newest.note.encode(), content_type="text/plain; charset=utf-8")
    response.headers["Cache-Control"] = f"public, max-age={CHECKPOINT_SECONDS}"
    return response


@require_safe
def tile(request: HttpRequest, name: str) -> HttpResponse:
    """`<prefix>/tile/<L>/<N>[.p/<W>]` and `<prefix>/tile/entries/<N>[.p/<W>]`."""
    try:
        named = parse_path(name)
    except PathRefused as error:
        return problem_response(request, HTTPStatus.NOT_FOUND, "not_found", str(error))
    if named.level is None:
        refusal = _refuse_stranger(request)
        if refusal is not None:
            return refusal
    try:
        data = tile_bytes(named)
    except NotFound as error:
        return problem_response(request, HTTPStatus.NOT_FOUND, error.code, error.detail)
    except LedgerDamaged as error:
        return problem_response(request, HTTPStatus.SERVICE_UNAVAILABLE, error.code, error.detail)
    response = HttpResponse(data, content_type="application/octet-stream")
    whose = "private" if named.level is None else "public"
    response.headers["Cache-Control"] = f"{whose}, max-age={YEAR_SECONDS}, immutable"
    return response


def _refuse_stranger(request: HttpRequest) -> HttpResponse | None:
    """Return a refusal unless a live token with the scope `read`, or a member of staff, asks."""
    try:
        found = TokenAuthentication().authenticate(cast(Any, request))
    except AuthenticationFailed as error:
        return _challenge(request, str(error.detail))
    if found is not None:
        if found[1].holds(Scope.READ):
            return None
        return problem_response(request, HTTPStatus.FORBIDDEN, "scope_missing", f"the token lacks the scope `{Scope.READ}`")
    user: Any = getattr(request, "user", None)
    if isinstance(user, User) and user.is_active and user.is_staff:
        return None
    return _challenge(request, "entries are for whoever may read the trail: send a token with the scope `read`")


def _challenge(request: HttpRequest, detail: str) -> HttpResponse:
    response = problem_response(request, HTTPStatus.UNAUTHORIZED, "not_authenticated", detail)
    response.headers["WWW-Authenticate"] = CHALLENGE
    return response
