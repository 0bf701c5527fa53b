"""Subject, resource and action search, by pages.

A page's token is signed, and holds a digest of what was asked and by which token: another question under it is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.core import signing

from compliance.api.authzen.frame import Outgoing, json_answer
from compliance.api.authzen.reading import (
    Entity,
    Members,
    Misshapen,
    Refused,
    check_context,
    make_question,
    read_entity,
)
from compliance.api.authzen.views import Asker, door
from compliance.deciding.facts import Question
from compliance.services.decisions import Unavailable
from compliance.services.searches import Found, Place, search_actions, search_resources, search_subjects
from evaluations.kernel.canonical import digest

DEFAULT_LIMIT, MAX_LIMIT = 100, 1_000
TOKEN_SECONDS = 24 * 60 * 60
MAX_TOKEN = 1_000
_SALT = "writegate.authzen.search"
_NOBODY = Entity("", "", {})

Search = Callable[..., Found]
Shape = Callable[[str], dict[str, str]]


@door
def search_subject(asker: Asker, body: Members) -> Outgoing:
    """`POST /access/v1/search/subject`: who may."""
    return _search("subject", search_subjects, asker, body)


@door
def search_resource(asker: Asker, body: Members) -> Outgoing:
    """`POST /access/v1/search/resource`: where."""
    return _search("resource", search_resources, asker, body)


@door
def search_action(asker: Asker, body: Members) -> Outgoing:
    """`POST /access/v1/search/action`: what."""
    return _search("action", search_actions, asker, body)


def _search(sought: str, search: Search, asker: Asker, body: Members) -> Outgoing:
    try:
        question = _question(sought, body)
        check_context(body)
        bound = digest({"sought": sought, "asker": asker.token_digest, **question._asdict()})
        place, limit = _read_page(body, bound)
    except Misshapen as error:
        raise Refused(400, str(error)) from None
    try:
        found = search(question=question, token_digest=asker.token_digest, place=place, limit=limit, admit=asker.admit)
    except Unavailable as error:
        raise Refused(503, error.detail, {"Retry-After": "1"}) from None
    page = {"next_token": _token(found.behind, limit, bound), "count": len(found.results)}
    return json_answer({"results": [_shape(sought, question, name) for name in found.results], "page": page})


def _question(sought: str, body: Members) -> Question:
    """Return the question that is asked of each candidate: what is sought has no id in it."""
    parts: dict[str, Entity] = {
        name: _NOBODY if name == sought == "action" else read_entity(body, name, with_id=name != sought)
        for name in ("subject", "action", "resource")
    }
    return make_question(parts["subject"], parts["action"], parts["resource"])


def _shape(sought: str, question: Question, name: str) -> dict[str, str]:
    if sought == "action":
        return {"name": name}
    return {"type": question.subject_type if sought == "subject" else question.resource_type, "id": name}


# --- pages


def _read_page(body: Members, bound: str) -> tuple[Place, int]:
    """Return where the page begins and how much it holds. Raises `Misshapen`."""
    page = body.get("page")
    if page is None:
        return Place(), DEFAULT_LIMIT
    if not isinstance(page, dict):
        raise Misshapen("`page` is an object")
    limit, token = page.get("limit"), page.get("token")
    if limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_LIMIT):
        raise Misshapen(f"`page.limit` is a whole number from 0 to {MAX_LIMIT}")
    if token is None or token == "":
        return Place(), DEFAULT_LIMIT if limit is None else limit
    if not isinstance(token, str):
        raise Misshapen("`page.token` is text")
    held = _read_token(token)
    if held.get("of") != bound or (limit is not None and limit != held["limit"]):
        raise Misshapen("`page.token` belongs to another search: ask the same again, or begin anew without it")
    return Place(*held["place"]), held["limit"]


def _read_token(token: str) -> Mapping[str, Any]:
    try:
        if len(token) > MAX_TOKEN:
            raise signing.BadSignature
        held: Mapping[str, Any] = signing.loads(token, salt=_SALT, max_age=TOKEN_SECONDS)
    except signing.SignatureExpired:
        raise Misshapen("`page.token` is too old: begin anew without it") from None
    except (signing.BadSignature, ValueError):
        raise Misshapen("`page.token` is none of ours: take it from `page.next_token` of an answer") from None
    return held


def _token(behind: Place | None, limit: int, bound: str) -> str:
    return "" if behind is None else signing.dumps({"of": bound, "place": list(behind), "limit": limit}, salt=_SALT)
