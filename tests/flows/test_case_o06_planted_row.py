"""Case O-06 (d): a NaN written past every intake, with the constraint dropped, still does not pass."""

from compliance.deciding.codes import Code
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from policies.selectors.gate import ask_gate
from policies.services.systems import register_system
from tests.flows.planting import ask, insert_by_hand
from tests.support import signing, world
from tests.support.asking import ask_gate as put_question
from tests.support.asking import ask_token

CHECK = "CHECK (value > -1000000000000 AND value < 1000000000000 AND value = round(value, 6)) NOT VALID"


def test_with_the_constraint_dropped_the_rule_does_not_pass(committed_db, owner_connection) -> None:
    world.register("m")
    version = world.propose()
    world.submit(world.submission("m", world.observation("84")))
    assert ask(version) == {"m": "pass"}
    owner = owner_connection()
    owner.execute("ALTER TABLE evaluations_observation DROP CONSTRAINT observation_value_is_finite")
    try:
        insert_by_hand("NaN")
        moment = now()
        gate = ask_gate(version, as_of=moment, known_at=moment)
        assert (gate.rows[0].result, gate.cleared) == ("error", 0)
        judgement = gate.rows[0].judgement
        assert judgement is not None
        assert judgement.rules[0].reason == "value_not_finite"
        world.judge_all()
        assert version.verdicts.get().outcome == "fail"
        world.activate(version)
        register_system(actor=world.ACTOR, key="hr-prod", title="HR", domain="hr")
        answer = put_question(ask_token(signing.human("Rita Asker", Role.REQUESTER)), "m")
        (told,) = [reason.detail["reason"] for reason in answer.judgement.reasons if reason.code == Code.EVIDENCE_ERROR]
        assert (answer.judgement.allowed, told) == (False, "value_not_finite")
    finally:
        # Not checking the planted row, which goes when the tables are emptied.
        owner.execute(f"ALTER TABLE evaluations_observation ADD CONSTRAINT observation_value_is_finite {CHECK}")
