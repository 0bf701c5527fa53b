"""How decisions are written: JSON, with their reasons."""

import base64
from datetime import datetime
from functools import lru_cache
from typing import Any

from compliance.api.authzen.denials import next_of, step_value
from compliance.deciding.codes import Code, Reason
from compliance.deciding.next_steps import STEPS
from compliance.services.recording import Decided
from evaluations.kernel.canonical import timestamp


def decision_of(answer: Decided, *, observed: bool) -> dict[str, Any]:
    """Return one answer as the protocol has it. What no record is kept of has neither `evaluation_id` nor `entry`."""
    found, question, subject = answer.judgement, answer.facts["question"], answer.facts["subject"]
    context: dict[str, Any] = {}
    if answer.uid is not None:
        context["evaluation_id"] = str(answer.uid)
    context["evaluated_at"] = _written(answer.at)
    if found.reasons:
        context["reason"] = found.reasons[0].code.value
        context |= next_of(answer)
    context["reasons"] = [reason.as_value() for reason in found.reasons]
    if subject is not None and not any(reason.code is Code.OUT_OF_SCOPE for reason in found.reasons):
        context["subject"] = {name: subject[name] for name in ("key", "version", "digest")}
    context |= {
        "system": question["system"],
        "action": question["action"],
        "policies": list(found.policies),
        "grants": list(found.grants),
        "evidence": list(found.evidence),
        "waived": list(found.waived),
    }
    if found.break_glass:
        context["break_glass"] = True
    if found.until:
        context["valid_until"] = found.until
    if observed:
        context["observed"] = True
    if answer.entry is not None:
        context["entry"] = {"id": str(answer.entry), "leaf_hash": base64.b64encode(answer.leaf_hash).decode("ascii")}
    return {"decision": found.allowed, "context": context}


@lru_cache(maxsize=16)
def _written(at: datetime) -> str:
    """Return the instant that all answers of a batch share."""
    return timestamp(at)


def error_item(message: str) -> dict[str, Any]:
    """Return what stands in the place of an item that is no question."""
    return {"decision": False, "context": {"error": {"status": 400, "message": message}}}


def cannot_judge() -> dict[str, Any]:
    """Return the denial that is given where there is no database to ask."""
    reason = Reason(Code.CANNOT_JUDGE, {})
    context = {"reason": reason.code.value, **step_value(STEPS[reason.code]), "reasons": [reason.as_value()]}
    return {"decision": False, "context": context}
