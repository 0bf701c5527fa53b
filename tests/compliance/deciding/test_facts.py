"""The bytes under a decision's digests are the canonical ones, whatever encoder writes them."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.deciding.facts import plain_bytes
from compliance.ledger.encoding import entry_bytes
from compliance.models import Decision, LedgerEntry
from evaluations.kernel.canonical import canonical_bytes
from tests.support import signing
from tests.support.asking import ask_gate, ask_token

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_bytes_are_canonical(value: object) -> None:
    assert plain_bytes(value) == canonical_bytes(value)


@pytest.mark.django_db
def test_a_decision_s_entry_is_laid_out_as_every_other() -> None:
    land = signing.ground()
    answer = ask_gate(ask_token(land.asker), "m\u00f6del-\U0001f600")
    entry = LedgerEntry.objects.get(uid=answer.entry)
    held = json.loads(bytes(entry.content))
    again = entry_bytes(
        entry_id=str(answer.entry),
        at=datetime.fromisoformat(held["at"]).astimezone(UTC),
        action="decision.made",
        actor=held["actor"],
        target=("decision", str(answer.uid)),
        old=None,
        new=held["new"],
        digests=held["digests"],
        request_id="",
    )
    assert again == bytes(entry.content)
    assert held["digests"]["decision"] == Decision.objects.get().body.digest
    assert "name_commitment" in held["actor"]["on_behalf_of"]
