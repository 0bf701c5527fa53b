"""Judging again from what was kept: policy bytes, facts document and instant give the same judgement, byte for byte."""

from datetime import datetime

from policies.language.compiler import compile_policy
from policies.language.evaluator import judge
from policies.language.facts import from_document
from policies.language.judgement import Judgement
from policies.language.names import Names
from policies.language.results import SEMANTICS


class UnknownSemantics(ValueError):
    """The judgement was made under a meaning that this code does not hold."""


def replay(document: bytes, policy_text: bytes, *, as_of: datetime, semantics: int = SEMANTICS) -> Judgement:
    """Return the judgement that the kept bytes give.

    The policy is compiled against the metric definitions of the facts document, not those of today; other names were
    checked when it was published. Raises `FactsUnreadable`, `PolicyRefused`, `NoVerdict` or `UnknownSemantics`.
    """
    if semantics != SEMANTICS:
        raise UnknownSemantics(f"semantics {semantics}; this code holds {SEMANTICS}")
    facts = from_document(document)
    return judge(compile_policy(policy_text, Names.for_replay(facts.metrics)), facts, as_of=as_of)
