"""Disputes of evidence: whoever may read it may dispute it, auditors excepted, and what rests on it is denied at once."""

from compliance.services.administration import apply_refuse_reader
from compliance.services.idempotency import apply_first_time
from compliance.services.requests import person_behind
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.services import service
from evaluations.models import Evidence, Ruling
from evaluations.services.evidence import apply_rule_on_evidence
from evaluations.vocabulary import RulingKind


@service(refused="ruling.refused")
def file_dispute(
    *, actor: Actor, evidence: Evidence, reason: str, link: str = "", idempotency_key: str | None = None, request_id: str = ""
) -> Ruling:
    """Dispute evidence for a person. Raises `NotARequester` for a job, `ReaderAlone`, `InputRefused`, `IdempotencyKeyReused`.

    With a key, the same dispute again returns the ruling that the first one made.
    """
    person_behind(actor)
    apply_refuse_reader(actor)
    act = f"evidence.disputed {evidence.uid} {digest([reason, link])}"
    if not apply_first_time(actor=actor, key=idempotency_key, act=act):
        return Ruling.objects.filter(evidence=evidence, kind=RulingKind.DISPUTED, reason=reason).latest("id")
    return apply_rule_on_evidence(actor=actor, evidence=evidence, kind=RulingKind.DISPUTED, reason=reason, link=link)
