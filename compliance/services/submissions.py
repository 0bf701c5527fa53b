"""Evidence handed in over the API: one body, one document, and a key that makes a retry harmless."""

import re
from io import BytesIO
from typing import NamedTuple

from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from evaluations.importers import writegate_json
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.services import service
from evaluations.models import Document
from evaluations.services.evidence import Imported, apply_import_files

MAX_BYTES = 20 * 1024 * 1024
BODY_NAME = "request-body.json"
"""The name under which a body is kept as a document, and which problems with it name as their file."""

_REFERENCE = re.compile(r"(sha256:[0-9a-f]{64}) ([0-9]+) ([0-9]+) ([0-9]+)\Z")


class Submission(NamedTuple):
    """What a body made. `evidence` and `observations` count what was recorded, `repeated` evidence that had been there already.

    `replayed` is true for the answer to a retry, which repeats the first answer and recorded nothing.
    """

    document: Document
    evidence: int
    observations: int
    repeated: int
    replayed: bool = False


@service(refused="evidence.refused")
def submit_evidence(*, actor: Actor, body: bytes, idempotency_key: str | None = None, request_id: str = "") -> Submission:
    """Record the evidence in a body of our JSON format; the body's very bytes become the document.

    With a key, the same body again gets the first answer, whoever of several retries comes first. Raises `IdempotencyKeyReused`
    for another body under a used key, and `InputRefused` naming line and field; a refused body leaves its key unused.
    """
    if idempotency_key is None:
        return _record(actor, body, request_id)
    claim = {"caller": actor.reference, "key": idempotency_key, "request_digest": digest_of(body)}
    known = apply_claim_key(**claim)
    if known is not None:
        return _recall(known)
    submission = _record(actor, body, request_id)
    reference = f"{submission.document.digest} {submission.evidence} {submission.observations} {submission.repeated}"
    apply_use_key(**claim, reference=reference)
    return submission


def _record(actor: Actor, body: bytes, request_id: str) -> Submission:
    done: Imported = apply_import_files(
        actor=actor,
        files={BODY_NAME: BytesIO(body)},
        format_name=writegate_json.NAME,
        max_bytes=MAX_BYTES,
        request_id=request_id,
    )[0]
    return Submission(done.document, done.evidence, done.observations, done.repeated)


def _recall(reference: str) -> Submission:
    match = _REFERENCE.match(reference)
    if match is None:
        raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
    document = Document.objects.get(digest=match[1])
    return Submission(document, int(match[2]), int(match[3]), int(match[4]), replayed=True)
