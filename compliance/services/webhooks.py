"""Webhook endpoints: registered with a secret that is shown once, rotated, disabled. Their secrets sign and go nowhere else."""

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from compliance.models import WebhookEndpoint
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_first_time, apply_use_key
from compliance.services.outbox import EVERY_EVENT, WebhookDisabled, apply_disable_webhook
from compliance.services.outgoing import AddressRefused, parse_target, resolve
from compliance.vocabulary import NoticeKind
from evaluations.importers.base import Problems
from evaluations.importers.fields import closest, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest, digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.services import service

SECRET_PREFIX = "whsec_"  # noqa: S105  (what Standard Webhooks puts before every secret)
SECRET_BYTES = 32
BOTH_SIGN_FOR = timedelta(hours=24)
MAX_TITLE = 120
MAX_BODY_BYTES = 16 * 1024
BODY_NAME = "request-body.json"

_MEMBERS = ("url", "title", "events")
_REFERENCE = "webhook "


class BodyTooLarge(DomainError):
    code = "too_large"
    kind = ErrorKind.TOO_LARGE


class NewSecret(NamedTuple):
    """An endpoint, and the secret to be shown now; empty on a retry, since it is shown once."""

    endpoint: WebhookEndpoint
    secret: str


class Wish(NamedTuple):
    """What was asked to be registered, and whether the address may be asked: `refusal` says why not."""

    url: str
    title: str
    events: tuple[str, ...]
    refusal: str = ""


def open_webhook(
    *, actor: Actor, url: str, title: str, events: Sequence[str], idempotency_key: str | None = None, request_id: str = ""
) -> NewSecret:
    """Look the address up, then register it: what every door calls. Errors are those of `register_webhook`."""
    refusal = ""
    try:
        # Network: outside the transaction, which is told what came of it.
        resolve(parse_target(url))
    except AddressRefused as refused:
        refusal = refused.detail
    wish = Wish(url, title.strip(), tuple(dict.fromkeys(events)), refusal)
    return register_webhook(actor=actor, wish=wish, idempotency_key=idempotency_key, request_id=request_id)


@service(refused="webhook.refused")
def register_webhook(*, actor: Actor, wish: Wish, idempotency_key: str | None = None, request_id: str = "") -> NewSecret:
    """Register an endpoint for the events it names, or for all by `*`. Raises `InputRefused`, `IdempotencyKeyReused`.

    The entry names the host; the address itself, which may hold a secret of the receiver's, by digest.
    """
    claim = None
    if idempotency_key is not None:
        asked = digest({"events": list(wish.events), "title": wish.title, "url": wish.url})
        claim = {"caller": actor.reference, "key": idempotency_key, "request_digest": asked}
        known = apply_claim_key(**claim)
        if known is not None:
            if not known.startswith(_REFERENCE):
                raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
            return NewSecret(WebhookEndpoint.objects.get(uid=UUID(known.removeprefix(_REFERENCE))), "")
    problems = _problems(wish)
    if problems:
        raise InputRefused(problems)
    endpoint = WebhookEndpoint.objects.create(
        title=wish.title, url=wish.url, events=sorted(wish.events), secret=new_secret(), created_by=actor.reference
    )
    if claim is not None:
        apply_use_key(**claim, reference=f"{_REFERENCE}{endpoint.uid}")
    audit.record(
        audit.Event(
            action="webhook.registered",
            actor=actor,
            target=("webhook", str(endpoint.uid)),
            new={"events": endpoint.events, "host": parse_target(wish.url).place, "title": endpoint.title},
            digests={"url": digest_of(wish.url.encode())},
            request_id=request_id,
        )
    )
    return NewSecret(endpoint, endpoint.secret)


@service(refused="webhook.refused")
def disable_webhook(
    *, actor: Actor, endpoint: WebhookEndpoint, idempotency_key: str | None = None, request_id: str = ""
) -> WebhookEndpoint:
    """Tell an endpoint nothing more, for good; what waits for it is dead. Disabling twice is no error."""
    if apply_first_time(actor=actor, key=idempotency_key, act=f"webhook.disabled {endpoint.uid}"):
        apply_disable_webhook(actor=actor, endpoint=endpoint, reason="disabled by a person", request_id=request_id)
    return endpoint.reload()


@service(refused="webhook.refused")
def rotate_secret(
    *,
    actor: Actor,
    endpoint: WebhookEndpoint,
    idempotency_key: str | None = None,
    request_id: str = "",
    at: datetime | None = None,
) -> NewSecret:
    """Give an endpoint a new secret; for 24 hours the old one signs beside it. Raises `WebhookDisabled`."""
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"webhook.secret_rotated {endpoint.uid}"):
        return NewSecret(endpoint.reload(), "")
    secret, until = new_secret(), (at or now()) + BOTH_SIGN_FOR
    moved_to = {"secret": secret, "previous_secret": endpoint.secret, "previous_until": until}
    # The secret is part of what is expected: of two at once, one would else sign by a secret that nobody was shown.
    if not WebhookEndpoint.claim(endpoint.pk, expected={"disabled_at": None, "secret": endpoint.secret}, moved_to=moved_to):
        raise WebhookDisabled("the webhook was disabled or rotated meanwhile; look at it again")
    audit.record(
        audit.Event(
            action="webhook.secret_rotated",
            actor=actor,
            target=("webhook", str(endpoint.uid)),
            new={"previous_signs_until": until},
            request_id=request_id,
        )
    )
    return NewSecret(endpoint.reload(), secret)


def new_secret() -> str:
    """Return a fresh secret in the form of Standard Webhooks."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def read_wish(body: bytes) -> dict[str, Any]:
    """Return `url`, `title` and `events` of a body. Raises `BodyTooLarge`, and `InputRefused` naming line and field."""
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"a registration has at most {MAX_BODY_BYTES} bytes")
    problems = Problems(BODY_NAME)
    try:
        given = parse(body.decode(), problems)
    except UnicodeDecodeError:
        problems.add("the body is not UTF-8 text", code="malformed", hint="send JSON in UTF-8")
    problems.raise_any()
    if not isinstance(given, dict):
        problems.add(f"a registration is an object, not {kind_of(given)}", code="malformed", hint='such as {"url": …}')
        problems.raise_any()
    for name in given:
        if name not in _MEMBERS:
            hint = closest(name, _MEMBERS, what="members")
            problems.add(f"there is no member {shown(name)}", field=name[:60], code="unknown_member", hint=hint)
    wish = {"url": given.get("url"), "title": given.get("title"), "events": given.get("events")}
    for name in ("url", "title"):
        if type(wish[name]) is not str:
            problems.add(f"{kind_of(wish[name])} is no `{name}`", field=name, hint="write a text")
    events = wish["events"]
    if not isinstance(events, list) or not all(type(each) is str for each in events):
        problems.add(f"{kind_of(events)} is no `events`", field="events", hint='write a list of words, or ["*"]')
    problems.raise_any()
    return wish


def _problems(wish: Wish) -> list[Problem]:
    problems = []
    if wish.refusal:
        problems.append(Problem("this address is not asked", field="url", code="address_refused", hint=wish.refusal))
    if not 0 < len(wish.title) <= MAX_TITLE or not wish.title.isprintable():
        problems.append(Problem("a title is needed", field="title", hint=f"write 1 to {MAX_TITLE} printable characters"))
    known = f"known: {', '.join(NoticeKind.values)}"
    if not wish.events:
        problems.append(Problem("no event is named", field="events", hint=f'name the events, or ["*"] for all; {known}'))
    elif EVERY_EVENT in wish.events and len(wish.events) > 1:
        problems.append(Problem("`*` stands alone", field="events", hint="name events, or write * for all of them"))
    unknown = (word for word in wish.events if word != EVERY_EVENT and word not in NoticeKind.values)
    return [*problems, *(Problem(f"`{word[:60]}` is no event", field="events", hint=known) for word in unknown)]
