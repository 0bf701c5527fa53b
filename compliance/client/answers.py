"""What a gate's answer means: allowed only where every part of it says so, to exactly what was asked. Bytes in, values out.

An answer allows where all of this holds, and denies in every other case:

- status 200, `application/json`, an object in UTF-8 without a member named twice, whose `decision` is exactly `true`;
- `context.evaluation_id` is a UUID, and `context.entry` has an `id`, a UUID, and a `leaf_hash`, base64 of 32 bytes;
- `context.valid_until` is a time with its offset that has not come;
- `context.subject`, `system` and `action` are what was asked, and the digest of the subject is the fingerprint that was given;
- an `X-Request-ID` that came back is the one that was sent.

`certain` is true where the gate itself decided. Whatever is not certain is denied.
"""

import base64
import binascii
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from compliance.client.http import Reply, parse_json
from compliance.client.outcome import plain

REQUEST_ID = "X-Request-ID"
SUBJECT_TYPES = ("agent", "model", "route", "alias", "subject")
NEXT_ACTIONS = ("request", "retry", "none")
MAX_REASONS = 100
DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")

_NUMBERED = re.compile(r"(.+)@([1-9][0-9]{0,8})\Z", re.ASCII)
_LEAF_HASH_BYTES = 32
_WORD = re.compile(r"[a-z][a-z0-9_]{0,79}\Z")


@dataclass(frozen=True, slots=True)
class Question:
    """May this subject do this at this system? `subject` is `key`, `key@number`, or an alias where `type` says so.

    `fingerprint` is the digest of the version that is about to run. `observe` marks the question of a team that rolls out. `approval`
    is that of a request that was signed: it changes no answer, and a denial says what became of it.
    """

    subject: str
    system: str
    action: str = "write"
    fingerprint: str | None = None
    observe: bool = False
    type: str = "agent"
    approval: Mapping[str, Any] | None = field(default=None, hash=False)

    def as_value(self) -> dict[str, Any]:
        """Return the question as the gate's protocol has it."""
        subject: dict[str, Any] = {"type": self.type, "id": self.subject}
        if self.fingerprint is not None:
            subject["properties"] = {"fingerprint": self.fingerprint}
        whole: dict[str, Any] = {
            "subject": subject,
            "action": {"name": self.action},
            "resource": {"type": "system", "id": self.system},
        }
        context: dict[str, Any] = {"observe": True} if self.observe else {}
        if self.approval is not None:
            context["approval"] = self.approval
        return {**whole, "context": context} if context else whole


class Reason(NamedTuple):
    """Why not: a code of a closed list, a sentence, and the figures behind it."""

    code: str
    message: str
    detail: Mapping[str, Any]


class Entry(NamedTuple):
    """The entry of the audit trail that tells of the answer."""

    id: str
    leaf_hash: str


class Named(NamedTuple):
    """The subject version that the gate took the question to be about."""

    key: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; true in a condition exactly where it allows. `raw` is the decision as it came, for what else stands in it.

    `reason` is the first reason's code, "" where it allows. Codes of an answer that is not `certain` are this module's and `gate`'s:
    `no_answer`, `refused`, `not_understood`, `mismatch`, `out_of_date`, or the server's `cannot_judge`.

    `next_action` of a denial is `request`, `retry` (in `retry_after` seconds) or `none`, "" where the gate did not say; until
    `requestable_until` people may be asked for what was denied, None where no request would help.
    """

    question: Question
    allowed: bool = False
    certain: bool = False
    reasons: tuple[Reason, ...] = ()
    evaluation_id: str = ""
    evaluated_at: str = ""
    valid_until: datetime | None = None
    entry: Entry | None = None
    subject: Named | None = None
    request_id: str = ""
    next_action: str = ""
    retry_after: int | None = None
    requestable_until: datetime | None = None
    raw: Any = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def reason(self) -> str:
        return self.reasons[0].code if self.reasons else ""


class Doubtful(Exception):
    """What came cannot be relied on: the code, and the sentence that says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def numbered_key(subject: str) -> str | None:
    """Return the key in `key@number`, None where no number is named."""
    found = _NUMBERED.match(subject)
    return found[1] if found else None


def cannot_tell(question: Question, code: str, message: str, **told: Any) -> Answer:
    """Return the answer where there is none: denied, and not certain."""
    return Answer(question, reasons=(Reason(code, message, {}),), **told)


def read_body(reply: Reply, request_id: str) -> Mapping[str, Any]:
    """Return the JSON object of a reply that decides. Raises `Doubtful` for every other reply."""
    echoed = reply.headers.get(REQUEST_ID.lower())
    if echoed is not None and echoed != request_id:
        raise Doubtful("mismatch", "the answer belongs to another request")
    if reply.status != 200:
        raise _no_decision(reply)
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Doubtful(
            "not_understood", f"the answer is `{plain(kind)[:80]}`, not application/json: is this a Writegate service?"
        )
    try:
        value = parse_json(reply.content)
    except ValueError as error:
        raise Doubtful("not_understood", "the answer is no JSON") from error
    if not isinstance(value, dict):
        raise Doubtful("not_understood", "the answer is no JSON object")
    return value


def judge(decision: Any, question: Question, *, at: datetime, request_id: str = "") -> Answer:
    """Return what one decision answers to a question at an instant. Never raises: what is odd denies."""
    read = Answer(question, request_id=request_id, raw=decision)
    try:
        if not isinstance(decision, dict) or not isinstance(decision.get("decision"), bool):
            raise Doubtful("not_understood", "the answer has no `decision` that is true or false")
        context = decision.get("context", {})
        if not isinstance(context, dict):
            raise Doubtful("not_understood", "the `context` of the answer is no object")
        read = _read(read, context)
        if decision["decision"] is True:
            _check_allow(read, context, at)
            return replace(read, allowed=True, certain=True, reasons=())
        _check_about(question, context)
    except Doubtful as doubt:
        return replace(read, reasons=(Reason(doubt.code, str(doubt), {}), *read.reasons))
    if _is_no_question(context):
        return read
    read = _with_next(read, context)
    return replace(read, certain=True, reasons=read.reasons or (Reason("no_reason", "the gate gave no reason", {}),))


def _read(answer: Answer, context: Mapping[str, Any]) -> Answer:
    """Return the answer with what can be read of a context, whatever it decides."""
    entry, subject = context.get("entry"), context.get("subject")
    return replace(
        answer,
        reasons=_reasons(context),
        evaluation_id=_uuid(context.get("evaluation_id")),
        evaluated_at=plain(context["evaluated_at"]) if isinstance(context.get("evaluated_at"), str) else "",
        valid_until=_instant(context.get("valid_until")),
        entry=_entry(entry) if isinstance(entry, dict) else None,
        subject=_named(subject) if isinstance(subject, dict) else None,
    )


def _with_next(answer: Answer, context: Mapping[str, Any]) -> Answer:
    """Return a denial with what the gate says of the way on, as far as that can be read."""
    action, wait, asking = (context.get(member) for member in ("next_action", "retry_after", "access_request"))
    until = _instant(asking.get("expires_at")) if isinstance(asking, dict) and answer.evaluation_id else None
    return replace(
        answer,
        next_action=action if action in NEXT_ACTIONS else "",
        retry_after=wait if type(wait) is int and wait >= 0 else None,
        requestable_until=until,
    )


def _check_allow(read: Answer, context: Mapping[str, Any], at: datetime) -> None:
    """Raise `Doubtful` unless a `true` is one that may be acted on."""
    question = read.question
    if not read.evaluation_id:
        raise Doubtful("not_understood", "the answer allows without an `evaluation_id`")
    if read.entry is None:
        raise Doubtful("not_understood", "the answer allows without its entry on the audit trail")
    if read.valid_until is None:
        raise Doubtful("not_understood", "the answer allows without saying until when")
    if read.valid_until <= at:
        raise Doubtful(
            "out_of_date", f"the answer was valid until {read.valid_until.isoformat()}, which is past on this machine's clock"
        )
    for member in ("system", "action"):
        if not isinstance(context.get(member), str):
            raise Doubtful("not_understood", f"the answer allows without naming the {member}")
    if read.subject is None:
        raise Doubtful("not_understood", "the answer allows without naming the subject's version")
    if context.get("reasons"):
        raise Doubtful("not_understood", "the answer allows, and gives reasons against it")
    _check_about(question, context)
    if question.fingerprint is not None and read.subject.digest != question.fingerprint:
        raise Doubtful(
            "mismatch", f"the answer is about `{plain(read.subject.digest)[:80]}`, not about the fingerprint that was given"
        )


def _check_about(question: Question, context: Mapping[str, Any]) -> None:
    """Raise `Doubtful` where a context names another system, action or subject than was asked about."""
    for member, asked in (("system", question.system), ("action", question.action)):
        if context.get(member) not in (None, asked):
            raise Doubtful(
                "mismatch", f"the answer is about the {member} `{plain(context[member])[:120]}`, not about `{plain(asked)}`"
            )
    subject = context.get("subject")
    if not isinstance(subject, dict) or question.type == "alias":
        return
    numbered = _NUMBERED.match(question.subject)
    wanted = [(question.subject, None), *([(numbered[1], int(numbered[2]))] if numbered else [])]
    key, version = subject.get("key"), subject.get("version")
    if key is not None and not any(key == name and (number is None or version in (None, number)) for name, number in wanted):
        named = plain(f"{key}@{version}")[:160]
        raise Doubtful("mismatch", f"the answer is about `{named}`, not about `{plain(question.subject)}`")


def _no_decision(reply: Reply) -> Doubtful:
    """Return what a reply says that is no 200: an error, never a decision."""
    value = reply.value
    context = value.get("context") if isinstance(value, dict) else None
    if reply.status == 503 and isinstance(context, dict) and isinstance(context.get("reason"), str):
        found = _reasons(context)
        code = context["reason"] if _WORD.match(context["reason"]) else "no_answer"
        return Doubtful(code, found[0].message if found else "the service cannot judge now")
    said = plain(reply.content[:400].decode("utf-8", "replace").strip()) if _is_text(reply) else ""
    sentence = f"the service answered with status {reply.status}" + (f": {said}" if said else "")
    return Doubtful("no_answer" if reply.is_trouble else "refused", sentence)


def _is_text(reply: Reply) -> bool:
    return reply.headers.get("content-type", "").lower().startswith("text/plain")


def _is_no_question(context: Mapping[str, Any]) -> bool:
    """True for an item of a batch that the gate could not read as a question."""
    return isinstance(context.get("error"), dict) and "evaluation_id" not in context


def _reasons(context: Mapping[str, Any]) -> tuple[Reason, ...]:
    """Return the reasons that a context states, as far as they are any; a lone `reason`, or an item's error, counts as one."""
    found = []
    stated = context.get("reasons")
    for one in (stated if isinstance(stated, Sequence) and not isinstance(stated, str) else [])[:MAX_REASONS]:
        if isinstance(one, dict) and isinstance(one.get("code"), str):
            detail = one.get("detail")
            found.append(Reason(plain(one["code"]), plain(one.get("message") or ""), detail if isinstance(detail, dict) else {}))
    error = context.get("error")
    if not found and isinstance(context.get("reason"), str):
        found.append(Reason(plain(context["reason"]), "", {}))
    if not found and isinstance(error, dict):
        found.append(Reason("refused", plain(error.get("message") or ""), {}))
    return tuple(found)


def _named(subject: Mapping[str, Any]) -> Named | None:
    key, version, digest = (subject.get(member) for member in Named._fields)
    # A boolean is an integer to Python, and no number of a version.
    whole = isinstance(key, str) and type(version) is int and isinstance(digest, str)
    return Named(key, version, digest) if whole else None  # type: ignore[arg-type]


def _entry(entry: Mapping[str, Any]) -> Entry | None:
    identifier, leaf_hash = _uuid(entry.get("id")), entry.get("leaf_hash")
    try:
        whole = isinstance(leaf_hash, str) and len(base64.b64decode(leaf_hash, validate=True)) == _LEAF_HASH_BYTES
    except (binascii.Error, ValueError):
        whole = False
    return Entry(identifier, str(leaf_hash)) if identifier and whole else None


def _uuid(text: Any) -> str:
    """Return a UUID as it is written, "" for what is none."""
    try:
        return text if isinstance(text, str) and str(uuid.UUID(text)) == text else ""
    except ValueError:
        return ""


def _instant(text: Any) -> datetime | None:
    """Return the instant that a text states with its offset, else None."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
