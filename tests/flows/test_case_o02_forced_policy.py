"""Case O-02 (d): a policy that requires nothing was forced into the table by hand. The gate answers, and the answer is no."""

import pytest

from evaluations.kernel.canonical import digest_of
from policies.models import PolicyVersion
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, codes_of


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("swap", "code"),
    [
        (("rules: [{id: refuses, evidence: refusal, at_least: 80}]", "rules: []"), "policy_has_no_requirements"),
        (("at_least: 80", "at_least: NaN"), "policy_unreadable"),
    ],
)
def test_case_o02_a_policy_by_hand_that_requires_nothing_denies(swap: tuple[str, str], code: str) -> None:
    land = signing.ground()
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    good = world.propose(name="forced")
    text = bytes(good.text).decode().replace(*swap).encode()
    assert text != bytes(good.text)

    values = {
        "policy": good.policy,
        "number": 2,
        "title": "Forced",
        "text": text,
        "digest": digest_of(text),
        "resolved": b"{}",
        "resolved_digest": digest_of(b"{}"),
        "semantics": 1,
        "proposed_by": "nobody:by-hand",
    }
    world.activate(PolicyVersion.objects.create(**values))
    answer = ask_gate(token)
    assert codes_of(answer) == [code]
