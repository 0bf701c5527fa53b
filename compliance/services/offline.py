"""Offline bundles: the list of what is allowed at a system, judged at one instant, for enforcement points that may lose the gate.

The judge of decisions says what is on it. A bundle is stored and handed out again for as long as nothing has happened that could move
it, up to half of its life; a revocation that is committed is in the next one. Every bundle that goes out has an entry first.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256

from django.conf import settings
from django.db import connection, transaction

from compliance.deciding.facts import Question
from compliance.deciding.judge import ALIAS, ANY_KIND, SYSTEM, Judgement
from compliance.deciding.offline import holds_until
from compliance.ledger.offline import (
    MOST_LINES,
    Cited,
    Line,
    Statement,
    is_signed,
    lines_digest,
    read_instant,
    sign_payload,
    write_instant,
    write_statement,
)
from compliance.models import OfflineBundle, ServiceToken
from compliance.selectors.deciding.candidates import Candidate, carried_routes, granted_subjects, kinds_of
from compliance.selectors.deciding.conformance import read_asked
from compliance.selectors.deciding.read import Asked, Caller
from compliance.selectors.ledger import last_checkpoint, leaf_count
from compliance.selectors.offline import granted_words, has_news, names_meaning, payload_of, stored_bundle
from compliance.services.decisions import TokenRefused, judge_asked
from compliance.services.sealing import keyring, seal
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import DIGEST_PREFIX, timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.dsse import MAX_ENVELOPE_BYTES
from evaluations.kernel.errors import DomainError, ErrorKind
from evaluations.kernel.services import record_refusal, service
from evaluations.services.pacing import session_lock
from policies.models import System

BATCH = 200
"""So many candidates are read and judged at a time."""
MOST_BYTES = MAX_ENVELOPE_BYTES // 4 * 3 - 4096
"""So long may a payload be: an envelope writes three bytes as four letters."""
MADE = "offline_bundle.made"
HANDED_OUT = "offline_bundle.handed_out"
REFUSED = "offline_bundle.refused"
WAIT_SECONDS, LOOK_AGAIN_SECONDS = 0.5, 0.05


class BundleTooLarge(DomainError):
    """More is allowed at the system than a bundle holds; nothing of it is left out silently."""

    code = "offline_bundle_too_large"
    kind = ErrorKind.CONFLICT


class BundleUnderWay(DomainError):
    """Somebody else's request makes the bundle at this moment; `wait` is in seconds."""

    code = "offline_bundle_under_way"
    kind = ErrorKind.UNAVAILABLE
    wait = 1


class BundleNotOurs(DomainError):
    """What lies in the bundle's place was not written by the gate: it is not signed anew, and a new one is made when its time comes."""

    code = "offline_bundle_not_ours"
    kind = ErrorKind.UNAVAILABLE
    wait = 60


class LogEmpty(DomainError):
    """Nothing is sealed yet that a bundle could be made under."""

    code = "log_empty"
    kind = ErrorKind.UNAVAILABLE
    wait = 2


def current_bundle(*, actor: Actor, token: ServiceToken, system: System, request_id: str = "") -> OfflineBundle:
    """Return the bundle of what is allowed at a system now: the stored one where it still says so, else one that is made for it.

    `token` may ask about the system. Raises `BundleTooLarge`, `BundleUnderWay`, `LogEmpty`, `TokenRefused`.
    """
    held = _still_right(system)
    if held is not None:
        return held
    if last_checkpoint() is None:
        seal(seconds=1)
    with _alone(system):
        # Whoever was here a moment ago may have made it.
        held = _still_right(system)
        if held is not None:
            return held
        try:
            return _make(actor, token, system, request_id)
        except BundleTooLarge as refusal:
            record_refusal(REFUSED, "current_bundle", actor, refusal, request_id)
            raise


@service(refused=REFUSED)
def hand_out_bundle(*, actor: Actor, bundle: OfflineBundle, form: str, request_id: str = "") -> bytes:
    """Return a bundle's payload, which may go out once this has recorded it. `form` is that of its bytes: `dsse` or `opa`.

    Raises `BundleUnderWay` where another bundle has taken its place, `BundleNotOurs` where somebody wrote into it past the gate.
    """
    found = payload_of(bundle)
    if found is None:
        raise BundleUnderWay("a newer bundle was made at this moment; ask again")
    payload, signature = found
    keys = keyring()
    trusted = [key.verifier for key in (keys.current, *keys.previous)]
    if _digest(payload) != bundle.digest or not is_signed(payload, signature, trusted) or _names(payload) != _stated(bundle):
        raise BundleNotOurs("what is stored as the bundle was not written there by the gate; ask the gate itself")
    audit.record(
        audit.Event(
            action=HANDED_OUT,
            actor=actor,
            target=("system", bundle.system.key),
            new={"expires_at": bundle.expires_at, "form": form, "serial": bundle.serial},
            digests={"bundle": bundle.digest},
            request_id=request_id,
        )
    )
    return payload


def _names(payload: bytes) -> Sequence[str | int]:
    """Return the system, serial and instants of a payload that is signed: another's, or an older one, is signed as well."""
    told = json.loads(payload)["predicate"]
    return [told[name] for name in ("system", "serial", "issued_at", "expires_at")]


def _stated(bundle: OfflineBundle) -> Sequence[str | int]:
    """Return the same as the row of a bundle states it."""
    return [bundle.system.key, bundle.serial, write_instant(bundle.issued_at), write_instant(bundle.expires_at)]


def _digest(payload: bytes) -> str:
    return f"{DIGEST_PREFIX}{sha256(payload).hexdigest()}"


def _still_right(system: System) -> OfflineBundle | None:
    held = stored_bundle(system)
    if held is None or not held.issued_at <= now() < held.refresh_at or has_news(since_size=held.seen_size):
        return None
    return held


@contextmanager
def _alone(system: System) -> Iterator[None]:
    """Be the only one who makes a system's bundle; wait a moment for somebody else. Raises `BundleUnderWay`."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        with session_lock(f"offline bundle {system.key}") as held:
            if held:
                yield
                return
        if time.monotonic() >= until:
            raise BundleUnderWay("the bundle is being made for somebody else; ask again in a second")
        time.sleep(LOOK_AGAIN_SECONDS)


@contextmanager
def _one_snapshot() -> Iterator[None]:
    """See one state of the database for the length of the block, however many statements read it."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _make(actor: Actor, token: ServiceToken, system: System, request_id: str) -> OfflineBundle:
    at = now()
    expires_at = at + timedelta(seconds=settings.OFFLINE_BUNDLE_SECONDS)
    with _one_snapshot():
        seen_size, checkpoint = leaf_count(), last_checkpoint()
        if checkpoint is None:
            raise LogEmpty("nothing is sealed yet; ask again in a few seconds")
        before = stored_bundle(system)
        lines, policies = _Listing(token, system, at, expires_at).list()
    digest = lines_digest(lines)
    if before is not None and before.lines_digest == digest and before.issued_at <= at < before.refresh_at:
        return keep_bundle(actor=actor, bundle=before, seen_size=seen_size)
    # A clock that was set back, or an older database that was restored, must not make a serial count anew.
    serial = max(before.serial + 1 if before is not None else 0, int(at.timestamp() * 1000))
    statement = Statement(system.key, serial, at, expires_at, checkpoint.note, policies, lines)
    payload = write_statement(statement)
    if len(payload) > MOST_BYTES:
        raise BundleTooLarge(f"what is allowed at `{system.key}` has {len(payload)} bytes: ask the gate itself")
    return store_bundle(
        actor=actor, system=system, statement=statement, payload=payload, seen_size=seen_size, request_id=request_id
    )


@service(refused=REFUSED)
def keep_bundle(*, actor: Actor, bundle: OfflineBundle, seen_size: int) -> OfflineBundle:
    """Note that a bundle was judged again and came out the same. No entry: nothing was changed."""
    OfflineBundle.objects.filter(pk=bundle.pk, serial=bundle.serial).update(seen_size=seen_size)
    bundle.seen_size = seen_size
    return bundle


@service(refused=REFUSED)
def store_bundle(
    *, actor: Actor, system: System, statement: Statement, payload: bytes, seen_size: int, request_id: str = ""
) -> OfflineBundle:
    """Store a bundle in the place of the one before it."""
    half = statement.issued_at + (statement.expires_at - statement.issued_at) / 2
    ends = [read_instant(line.valid_until) for line in statement.lines]
    bundle, _ = OfflineBundle.objects.update_or_create(
        system=system,
        defaults={
            "serial": statement.serial,
            "payload": payload,
            "signature": sign_payload(payload, keyring().current),
            "digest": _digest(payload),
            "lines": len(statement.lines),
            "lines_digest": lines_digest(statement.lines),
            "seen_size": seen_size,
            "issued_at": statement.issued_at,
            "refresh_at": min([half, *ends]),
            "expires_at": statement.expires_at,
        },
    )
    audit.record(
        audit.Event(
            action=MADE,
            actor=actor,
            target=("system", system.key),
            new={
                "expires_at": bundle.expires_at,
                "issued_at": bundle.issued_at,
                "lines": bundle.lines,
                "serial": bundle.serial,
            },
            digests={"bundle": bundle.digest},
            request_id=request_id,
        )
    )
    return bundle


class _Listing:
    """One list in the making: everything is judged at one instant, a batch at a time, and little is kept of each."""

    def __init__(self, token: ServiceToken, system: System, at: datetime, until: datetime) -> None:
        self._digest = token.token_digest
        self._system = system
        self._at, self._stamp, self._until = at, timestamp(at), until
        self._lines: list[Line] = []
        self._policies: dict[str, Cited] = {}

    def list(self) -> tuple[Sequence[Line], Mapping[str, Cited]]:
        """Return the lines in order, and the policies that they cite."""
        for action in granted_words(self._system):
            for more in (granted_subjects, carried_routes):
                after, ended = 0, False
                while not ended:
                    page = more(system=self._system.pk, action=action, kinds=kinds_of(ANY_KIND), after=after, most=BATCH)
                    after, ended = page.reached, page.ended
                    self._judge(action, page.found)
        self._lines.sort(key=lambda line: (line.subject, line.version, line.action))
        return self._lines, self._policies

    def _judge(self, action: str, candidates: Sequence[Candidate]) -> None:
        questions = [Question(ANY_KIND, f"{one.name}@{one.number}", action, self._system.key, SYSTEM) for one in candidates]
        held: dict[int, tuple[Asked, Judgement, str]] = {}
        for item, found in self._ask(questions):
            until = holds_until(item.facts, item.policies, found, self._stamp)
            if until and item.subject_version is not None:
                held[item.subject_version] = (item, found, until)
        if len(self._lines) + len(held) > MOST_LINES:
            raise BundleTooLarge(f"more than {MOST_LINES} subject versions may act at `{self._system.key}`: ask the gate itself")
        names = self._names(action, held)
        for version, (item, found, until) in held.items():
            self._lines.append(self._line(item, found, until, names.get(version, ())))

    def _names(self, action: str, held: Mapping[int, object]) -> Mapping[int, Sequence[str]]:
        """Return the aliases under which a question would be allowed too; each is asked as any caller would ask it."""
        meant = [
            (version, name)
            for version, names in names_meaning(held.keys(), at=self._at, until=self._until).items()
            for name in names
        ]
        found: dict[int, list[str]] = {}
        for first in range(0, len(meant), BATCH):
            batch = meant[first : first + BATCH]
            questions = [Question(ALIAS, name, action, self._system.key, SYSTEM) for _, name in batch]
            for (version, name), (item, judged) in zip(batch, self._ask(questions), strict=True):
                if judged.allowed and item.subject_version == version:
                    found.setdefault(version, []).append(name)
        return found

    def _ask(self, questions: Sequence[Question]) -> Iterator[tuple[Asked, Judgement]]:
        if not questions:
            return
        (caller,), asked = read_asked(questions, token_digests=[self._digest], at=self._at)
        if caller is None or not caller.live:
            raise TokenRefused("the token is unknown, expired or revoked")
        for item in asked:
            yield item, self._judged(item, caller)

    def _judged(self, item: Asked, caller: Caller) -> Judgement:
        return judge_asked(item, caller, self._at, self._stamp)

    def _line(self, item: Asked, found: Judgement, until: str, names: Sequence[str]) -> Line:
        subject = item.facts["subject"]
        cited = {row["digest"]: Cited(row["policy"], row["version"]) for row in found.policies}
        self._policies.update(cited)
        return Line(
            subject=subject["key"],
            version=subject["version"],
            fingerprint=subject["digest"],
            kind=subject["kind"],
            runs=subject["running"] == subject["version"],
            names=tuple(names),
            action=item.question.action,
            grants=found.grants,
            policies=tuple(cited),
            break_glass=found.break_glass,
            valid_until=until,
        )
