"""Verdicts judged once more, from the facts document and the policy bytes that were kept."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from evaluations.kernel.canonical import digest, digest_of
from evaluations.kernel.errors import DomainError
from policies.language.facts import FactsUnreadable
from policies.language.replay import UnknownSemantics, replay
from policies.models import Standing, Verdict
from policies.vocabulary import Differing, VerdictReplay


class Replay(NamedTuple):
    """What came of it. `differs` holds words of `Differing`, none unless mismatched. `stored` and `replayed` are judgement cores as
    kept and as judged again, the latter empty where nothing could be judged; `trouble` says why, in a sentence.
    """

    outcome: VerdictReplay
    differs: tuple[Differing, ...]
    stored: bytes
    replayed: bytes
    trouble: str = ""

    @property
    def same(self) -> bool:
        return self.outcome == VerdictReplay.SAME


def replay_verdict(verdict: Verdict) -> Replay:
    """Judge again, as of the recorded instant, and compare bytes and digests; `verdict` comes with facts, policy and subject version.

    What is missing under a verdict that stands is no pruning: nobody may take that away.
    """
    facts, text, stored = bytes(verdict.facts.content), bytes(verdict.policy_version.text), bytes(verdict.core)
    if not (facts and text and stored) and not Standing.objects.filter(verdict=verdict).exists():
        return Replay(VerdictReplay.PRUNED, (), stored, b"")
    wrong: list[Differing] = []
    if digest_of(facts) != verdict.facts.digest:
        wrong.append(Differing.FACTS_DOCUMENT)
    if digest_of(text) != verdict.policy_version.digest:
        wrong.append(Differing.POLICY_TEXT)
    kept = digest_of(stored) == verdict.core_digest
    row = _row_agrees(verdict, stored)
    replayed, trouble = b"", ""
    try:
        replayed = replay(facts, text, as_of=verdict.as_of, semantics=verdict.semantics).core_bytes()
    except UnknownSemantics as error:
        trouble = str(error)
        if not wrong and kept and row:
            return Replay(VerdictReplay.UNKNOWN_SEMANTICS, (), stored, b"", trouble)
    except (FactsUnreadable, DomainError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        # Bytes that nobody wrote by this code can fail anywhere in it.
        trouble = str(error)
    if replayed != stored or not kept:
        wrong.append(Differing.JUDGEMENT)
    if not row:
        wrong.append(Differing.ROW)
    return Replay(VerdictReplay.MISMATCHED if wrong else VerdictReplay.SAME, tuple(wrong), stored, replayed, trouble)


def _row_agrees(verdict: Verdict, stored: bytes) -> bool:
    """True where the columns that answers are read from say what the core says."""
    core = core_of(stored)
    said = {
        "blocking": list(verdict.blocking),
        "domain": verdict.domain,
        "outcome": verdict.outcome,
        "policy_digest": verdict.policy_version.digest,
        "result": verdict.result,
        "semantics": verdict.semantics,
        "subject_version_digest": verdict.subject_version.digest,
        "waivable": list(verdict.waivable),
    }
    if any(core.get(name) != value for name, value in said.items()):
        return False
    try:
        return digest({name: Decimal(number) for name, number in core["params"].items()}) == verdict.params_digest
    except (LookupError, AttributeError, ArithmeticError, TypeError, ValueError):
        return False


def core_of(stored: bytes) -> Mapping[str, Any]:
    """Return a judgement core as a value, empty where the bytes are none."""
    try:
        found = json.loads(stored)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
