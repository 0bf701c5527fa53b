"""Exports ordered over the API: the body of an order read strictly, and a key that makes a retry harmless."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from compliance.models import AuditExport
from compliance.selectors.entries import READERS
from compliance.selectors.ledger import EntryFilter
from compliance.services.exports import apply_request_export
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from compliance.services.sealing import seal
from compliance.vocabulary import ExportFormat
from evaluations.importers.base import Problems
from evaluations.importers.fields import NumberText, closest, shown
from evaluations.importers.jsontext import kind_of, parse
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import DomainError, ErrorKind
from evaluations.kernel.services import service

MAX_ORDER_BYTES = 64 * 1024
MAX_HELD = 100
MAX_INDEX = 2**53
BODY_NAME = "request-body.json"

_REFERENCE = "audit_export "
_MEMBERS = ("format", "to_index", "filters", "with_names", "consistent_with")


class OrderTooLarge(DomainError):
    """The body of an order is larger than any order."""

    code = "too_large"
    kind = ErrorKind.TOO_LARGE


def accept_order(*, actor: Actor, body: bytes, idempotency_key: str | None = None, request_id: str = "") -> AuditExport:
    """Seal what waits, then record the order in a body; an empty body orders everything. Errors are those of `order_export`."""
    seal()
    return order_export(actor=actor, body=body, idempotency_key=idempotency_key, request_id=request_id)


@service(refused="audit_export.refused")
def order_export(*, actor: Actor, body: bytes, idempotency_key: str | None = None, request_id: str = "") -> AuditExport:
    """Record the order in a body. With a key, the same body again gets the export that the first request made, as it now stands.

    Raises `IdempotencyKeyReused`, `OrderTooLarge`, and `InputRefused` naming line and field; a refused order leaves its key unused.
    """
    if idempotency_key is None:
        return apply_request_export(actor=actor, request_id=request_id, **read_order(body))
    claim = {"caller": actor.reference, "key": idempotency_key, "request_digest": digest_of(body)}
    known = apply_claim_key(**claim)
    if known is not None:
        if not known.startswith(_REFERENCE):
            raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
        return AuditExport.objects.select_related("checkpoint").get(uid=UUID(known.removeprefix(_REFERENCE)))
    job = apply_request_export(actor=actor, request_id=request_id, **read_order(body))
    apply_use_key(**claim, reference=f"{_REFERENCE}{job.uid}")
    return job


def read_order(body: bytes) -> dict[str, Any]:
    """Return the arguments of `request_export` that a body states. Whether the log can serve them is judged there."""
    if len(body) > MAX_ORDER_BYTES:
        raise OrderTooLarge(f"an order has at most {MAX_ORDER_BYTES} bytes")
    problems = Problems(BODY_NAME)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        problems.add("the body is not UTF-8 text", code="malformed", hint="send JSON in UTF-8")
    problems.raise_any()
    given = parse(text, problems) if text.strip() else {}
    if not isinstance(given, dict):
        problems.add(f"an order is an object, not {kind_of(given)}", code="malformed", hint='such as {"format": "jsonl"}')
        problems.raise_any()
    order = _Order(given, problems).read()
    problems.raise_any()
    return order


class _Order:
    """Reads the members of one order, keeping every problem."""

    def __init__(self, given: Mapping[str, Any], problems: Problems) -> None:
        self.given = given
        self.problems = problems

    def read(self) -> dict[str, Any]:
        self._refuse_unknown(self.given, _MEMBERS, "")
        order: dict[str, Any] = {}
        if (chosen := self.given.get("format")) is not None:
            order["format"] = self._one_of(chosen)
        if (index := self.given.get("to_index")) is not None:
            order["to_index"] = self._number(index, "to_index")
        if (names := self.given.get("with_names")) is not None:
            if not isinstance(names, bool):
                self._wrong("with_names", names, "write true or false")
            order["with_names"] = names
        if (held := self.given.get("consistent_with")) is not None:
            order["consistent_with"] = self._held(held)
        if (filters := self.given.get("filters")) is not None:
            order["wanted"] = self._filter(filters)
        return order

    def _one_of(self, chosen: Any) -> Any:
        if not isinstance(chosen, str) or chosen not in ExportFormat.values:
            self._wrong("format", chosen, f"write one of {', '.join(ExportFormat.values)}")
        return chosen

    def _number(self, value: Any, field: str) -> int:
        if isinstance(value, NumberText) and value.isascii() and value.isdigit() and len(value) <= 16 and int(value) <= MAX_INDEX:
            return int(value)
        self._wrong(field, value, f"write a whole number from 0 to {MAX_INDEX}")
        return 0

    def _held(self, sizes: Any) -> list[int]:
        if not isinstance(sizes, list) or len(sizes) > MAX_HELD:
            self._wrong("consistent_with", sizes, f"write a list of at most {MAX_HELD} sizes of checkpoints")
            return []
        return [self._number(size, f"consistent_with[{place}]") for place, size in enumerate(sizes)]

    def _filter(self, filters: Any) -> EntryFilter:
        if not isinstance(filters, dict):
            self._wrong("filters", filters, "write an object")
            return EntryFilter()
        self._refuse_unknown(filters, READERS, "filters.")
        values: dict[str, Any] = {}
        for word, read in READERS.items():
            text = filters.get(word)
            if text is None:
                continue
            if not isinstance(text, str) or isinstance(text, NumberText):
                self._wrong(f"filters.{word}", text, "write a text")
                continue
            try:
                values[word] = read(text)
            except ValueError as fault:
                self._wrong(f"filters.{word}", text, str(fault))
        return EntryFilter(**values)

    def _refuse_unknown(self, given: Mapping[str, Any], known: Any, place: str) -> None:
        for name in given:
            if name not in known:
                hint = closest(name, known, what="members")
                self.problems.add(
                    f"there is no member {shown(name)}", field=f"{place}{name[:60]}", code="unknown_member", hint=hint
                )

    def _wrong(self, field: str, value: Any, hint: str) -> None:
        self.problems.add(f"{kind_of(value)} is no `{field.rpartition('.')[2]}`", field=field, hint=hint)
