"""What a body asks: strict about what we read, blind to what we do not know.

JSON as I-JSON has it (RFC 7493): UTF-8, no member twice, no number that no double holds, no half of a surrogate pair. At most 1 MiB,
16 levels, 1,000 questions.
"""

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings

from compliance.api.authzen.frame import Incoming
from compliance.deciding.facts import Question
from compliance.services.decisions import Semantic

MOST_BYTES = 1024 * 1024
MOST_DEPTH = 16
MOST_ITEMS = 1_000
MOST_ID, MOST_ACTION, MOST_FINGERPRINT = 300, 200, 300
ENTITIES = ("subject", "action", "resource")
SEMANTICS = ", ".join(f"`{semantic}`" for semantic in Semantic)

Members = Mapping[str, Any]


class Refused(Exception):
    """The request is refused: status, one sentence, headers."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


class Misshapen(Exception):
    """What was asked is no question; its text says what in it."""


class Entity(NamedTuple):
    """A subject, an action (its `type` is "") or a resource."""

    type: str
    id: str
    properties: Members


class Asking(NamedTuple):
    """The items of a request in their order, each a question or what is wrong with it; `many` where they came as a batch."""

    items: list[Question | str]
    many: bool
    semantic: Semantic
    observed: bool


def read_object(incoming: Incoming) -> Members:
    """Return the JSON object of a request's body. Raises `Refused`."""
    kind, _, rest = incoming.meta.get("CONTENT_TYPE", "").partition(";")
    if kind.strip().lower() != "application/json":
        raise Refused(400, "send the question as application/json")
    charset = rest.replace(" ", "").replace('"', "").lower()
    if charset.startswith("charset=") and charset not in ("charset=utf-8", "charset=utf8"):
        raise Refused(400, "JSON is UTF-8; send it as application/json")
    if "HTTP_TRANSFER_ENCODING" in incoming.meta and not incoming.meta.get("CONTENT_LENGTH"):
        raise Refused(400, "send the body with a Content-Length")
    value = parse_json(_bytes_of(incoming))
    if not isinstance(value, dict):
        raise Refused(400, "the body is no JSON object")
    return value


def _bytes_of(incoming: Incoming) -> bytes:
    length = incoming.meta.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "the Content-Length is no number")
    if len(length) > 12 or int(length) > MOST_BYTES:
        raise Refused(413, f"the body has more than {MOST_BYTES} bytes")
    left, parts = int(length), []
    try:
        while left and (part := incoming.read(left)):
            parts.append(part)
            left -= len(part)
    except OSError:
        raise Refused(400, "the body broke off") from None
    if left:
        raise Refused(400, "the body broke off")
    body = b"".join(parts)
    if not body.strip():
        raise Refused(400, "the body is empty; send a JSON object")
    return body


def parse_json(body: bytes) -> Any:
    """Return the value of I-JSON bytes. Raises `Refused`."""
    try:
        text = body.decode("utf-8")
        value = _decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "the body is no UTF-8") from None
    except UnicodeEncodeError:
        raise Refused(400, "the body holds half of a surrogate pair, which is no character") from None
    except Misshapen as error:
        raise Refused(400, str(error)) from None
    except (ValueError, RecursionError):
        # `str()` of it would quote the body.
        raise Refused(400, "the body is no JSON") from None
    if isinstance(value, dict | list) and _is_deeper(value, MOST_DEPTH):
        raise Refused(400, f"the body is nested more than {MOST_DEPTH} levels deep")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Misshapen("an object of the body has a member twice")
    return found


def _no_constant(word: str) -> Any:
    raise Misshapen(f"`{word}` is no JSON")


def _double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Misshapen("a number of the body is larger than a double holds")
    return value


def _whole(text: str) -> int | float:
    # A double takes any number of digits, as I-JSON means numbers; an integer of thousands would cost time, and say no more.
    return int(text) if len(text) <= 20 else _double(text)


# Made once: a decoder costs more than most bodies.
_decode = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_double, parse_int=_whole).decode


def _is_deeper(value: Any, levels: int) -> bool:
    held = [value]
    for _ in range(levels):
        values = chain.from_iterable(one.values() if type(one) is dict else one for one in held)
        held = [one for one in values if type(one) in (dict, list)]
        if not held:
            return False
    return True


# --- questions


def read_one(body: Members) -> Asking:
    """Return the one question of a body. Raises `Refused`."""
    try:
        return Asking([_question(body)], False, Semantic.EXECUTE_ALL, _observes(body))
    except Misshapen as error:
        raise Refused(400, str(error)) from None


def read_many(body: Members) -> Asking:
    """Return the questions of a batch; what is wrong with an item stands in its place. Raises `Refused`.

    A key inside an item takes the place of the whole entity beside the list. Without items the body is one question.
    """
    try:
        semantic = _semantic(body)
        items = body.get("evaluations")
        if items is None or items == []:
            return read_one(body)
        if not isinstance(items, list):
            raise Misshapen("`evaluations` is a list")
        if len(items) > MOST_ITEMS:
            raise Refused(400, f"ask at most {MOST_ITEMS} questions at once, not {len(items)}")
        defaults = {name: body[name] for name in (*ENTITIES, "context") if body.get(name) is not None}
        for name, held in defaults.items():
            _object(held, name)
    except Misshapen as error:
        raise Refused(400, str(error)) from None
    found = [_item(item, defaults) for item in items]
    # A denial of one who only looks on stops nobody: that is said of a batch only where each question says so.
    observed = all(observes for _, observes in found)
    return Asking([question for question, _ in found], True, semantic, observed)


def _item(item: Any, defaults: Members) -> tuple[Question | str, bool]:
    if not isinstance(item, dict):
        return "an item of `evaluations` is an object", False
    try:
        whole = {**defaults, **item}
        return _question(whole), _observes(whole)
    except Misshapen as error:
        return str(error), False


def _semantic(body: Members) -> Semantic:
    options = body.get("options")
    if options is None:
        return Semantic.EXECUTE_ALL
    word = _object(options, "options").get("evaluations_semantic", Semantic.EXECUTE_ALL)
    if not isinstance(word, str) or word not in list(Semantic):
        raise Misshapen(f"`options.evaluations_semantic` is one of {SEMANTICS}")
    return Semantic(word)


def _question(body: Members) -> Question:
    return make_question(read_entity(body, "subject"), read_entity(body, "action"), read_entity(body, "resource"))


def make_question(subject: Entity, action: Entity, resource: Entity) -> Question:
    """Return the question about three entities. Raises `Misshapen`."""
    fingerprint = "" if settings.CONFORMANCE else _fingerprint(subject)
    claims = ""
    if settings.CONFORMANCE:
        parts = {"subject": subject, "action": action, "resource": resource}
        claims = json.dumps({name: entity.properties for name, entity in parts.items()}, sort_keys=True)
    return Question(subject.type, subject.id, action.id, resource.id, resource.type, fingerprint, claims)


def read_entity(body: Members, name: str, *, with_id: bool = True) -> Entity:
    """Return an entity of a body; its id is "" where none is read. Raises `Misshapen`."""
    if body.get(name) is None:
        raise Misshapen(f"`{name}` is missing")
    held = _object(body[name], name)
    properties = held.get("properties")
    found = {} if properties is None else _object(properties, f"{name}.properties")
    if name == "action":
        return Entity("", _text(held, name, "name", MOST_ACTION), found)
    return Entity(_text(held, name, "type", MOST_ID), _text(held, name, "id", MOST_ID) if with_id else "", found)


def check_context(body: Members) -> None:
    """Raise `Misshapen` where the `context` is none."""
    _observes(body)


def _observes(body: Members) -> bool:
    context = body.get("context")
    return context is not None and _object(context, "context").get("observe") is True


def _fingerprint(subject: Entity) -> str:
    if "fingerprint" not in subject.properties:
        return ""
    # Passed over, it would be answered as if it had been compared.
    given = subject.properties["fingerprint"]
    if not isinstance(given, str) or not given or len(given) > MOST_FINGERPRINT:
        raise Misshapen("`subject.properties.fingerprint` is a digest, `sha256:…`")
    return given


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misshapen(f"`{name}` is an object")
    return value


def _text(held: Members, name: str, member: str, most: int) -> str:
    value = held.get(member)
    if value is None:
        raise Misshapen(f"`{name}.{member}` is missing")
    if not isinstance(value, str):
        raise Misshapen(f"`{name}.{member}` is text")
    if not value:
        raise Misshapen(f"`{name}.{member}` is empty")
    if len(value) > most:
        raise Misshapen(f"`{name}.{member}` is longer than {most} characters")
    return value
