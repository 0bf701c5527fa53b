"""Judging again from what a decision's body holds: the same facts, policies and instant give the same judgement, byte for byte."""

import logging
from datetime import datetime
from typing import NamedTuple

from compliance.deciding.codes import Code, Reason
from compliance.deciding.facts import FORMAT, SEMANTICS, Value
from compliance.deciding.judge import Judgement, Policies, judge

REPLACING = frozenset({Code.CANNOT_RECORD, Code.INTERNAL_ERROR, Code.FACTS_MOVED, Code.OUT_OF_SCOPE})
"""Reasons that no judgement gives: the answer was no for another cause than what the facts say."""


_ERROR = Judgement(False, (Reason(Code.INTERNAL_ERROR, {}),))

logger = logging.getLogger("compliance.decisions")


class UnknownSemantics(ValueError):
    """The answer was given under a meaning, or kept in a format, that this code does not hold."""


class Again(NamedTuple):
    """What judging again gives. `judged` is None where it ends in an error; `core` is what would be recorded, the replacement too."""

    judged: Judgement | None
    replaced_by: Code | None
    core: Value


def digests_of(body: Value) -> set[str]:
    """Return the digests of the policy texts that the judgement needs."""
    return {row["digest"] for row in body["facts"]["policies"] if "refused" not in row}


def replaced_by(body: Value) -> Code | None:
    """Return the reason that took the place of the judgement before it was recorded, None where the judgement stands."""
    first = next((reason["code"] for reason in body["judgement"]["reasons"]), "")
    return Code(first) if first in REPLACING else None


def judge_again(body: Value, policies: Policies, at: datetime, stamp: str) -> Again:
    """Judge the question of a body anew; where its answer was replaced, replace this one as it was then.

    `policies` are compiled by digest, `at` and `stamp` are the recorded instant. Raises `UnknownSemantics`.
    """
    made_under = body["judgement"]["semantics"]
    if body["format"] != FORMAT or made_under != SEMANTICS:
        raise UnknownSemantics(f"{body['format']}, semantics {made_under}; this code holds {FORMAT}, semantics {SEMANTICS}")
    code = replaced_by(body)
    judged: Judgement | None = None
    try:
        judged = judge(body["facts"], policies, at, stamp)
    except Exception:
        # As the gate itself does: whatever it was, the answer is no.
        logger.exception("judging a decision again ended in an error")
    given = _ERROR if judged is None else judged
    if code == Code.INTERNAL_ERROR:
        given = _ERROR
    elif code == Code.OUT_OF_SCOPE:
        given = Judgement(False, (Reason(code, {"system": body["facts"]["question"]["system"]}),))
    elif code is not None:
        given = given.replaced_by(code)
    return Again(judged, code, given.core())
