"""The profile `conformance`: policies that judge what a caller claims, so that the protocol can be certified without a grant.

Only where it is switched on, on a database that holds no grant, do facts bear its mark; without the mark nothing here is asked. What
it allows rests on nothing and ends at no instant, and so carries no `valid_until`: a client that asks before it writes denies it.
"""

import json
from collections.abc import Mapping
from datetime import datetime

from compliance.deciding.codes import Code, Reason
from compliance.deciding.facts import Value
from policies.language.compiled import CompiledPolicy
from policies.language.conditions import Answer, ask_values

MARK = "conformance"
PARTS = ("subject", "action", "resource")


def ask_conformance(facts: Value, policies: Mapping[str, CompiledPolicy], at: datetime) -> tuple[list[Reason], list[Value]]:
    """Return what speaks against, nothing where it is allowed, and the policies that applied.

    Each policy that applies must allow: its `when` is true and none of its `forbid` is true, or cannot be judged.
    """
    question = facts["question"]
    values = ask_values(
        {
            "subject": {"key": question["subject"], "kind": question["subject_type"]},
            "action": {"name": question["action"]},
            "resource": {"key": question["system"]},
            "now": at,
            "request": _properties(facts),
        }
    )
    against: list[Reason] = []
    rows: list[Value] = []
    for row in facts["policies"]:
        compiled = policies[row["digest"]]
        about = {"policy": row["policy"], "version": row["version"]}
        if compiled.applies_when is not None:
            said = compiled.applies_when.evaluate(values)
            if said.answer == Answer.FALSE:
                continue
            if said.answer == Answer.ERROR:
                against.append(Reason(Code.CONDITION_ERROR, {**about, "missing": said.missing}))
        rows.append({**about, "digest": row["digest"], "domain": row["domain"], "verdict": None, "outcome": None})
        for guardrail in compiled.forbid:
            said = guardrail.when.evaluate(values)
            if said.answer == Answer.TRUE:
                against.append(Reason(Code.FORBIDDEN_BY_GUARDRAIL, {**about, "guardrail": guardrail.id}))
            elif said.answer == Answer.ERROR:
                against.append(Reason(Code.GUARDRAIL_ERROR, {**about, "guardrail": guardrail.id, "missing": said.missing}))
    if not rows:
        against.append(Reason(Code.NO_POLICY, {"action": question["action"], "system": question["system"]}))
    return against, rows


def _properties(facts: Value) -> dict[str, Value]:
    """Return the properties of each part of the request: what is claimed, and what is registered where nothing is claimed."""
    claimed = json.loads(facts["question"].get("claims") or "{}")
    registered = {part: json.loads(text) for part, text in facts[MARK].items()}
    return {part: {"properties": {**registered.get(part, {}), **claimed.get(part, {})}} for part in PARTS}
