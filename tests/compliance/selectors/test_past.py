"""What a text would have changed in the past: verdicts from their facts, decisions from their bodies."""

from datetime import UTC, datetime

import pytest

from compliance.selectors.past import past_decisions, past_verdicts
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from policies.language.compiled import CompiledPolicy
from policies.selectors.policies import compile_version
from policies.vocabulary import Change
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token

pytestmark = pytest.mark.django_db

ALWAYS = datetime(2020, 1, 1, tzinfo=UTC)


def text(bar: object, **changes: str) -> CompiledPolicy:
    """Propose the ground's policy with another bar and other words, and return it."""
    written = signing.TWO_KEYS.format(name="two-keys", bar=bar, age="unlimited", enforcement="hard")
    for old, new in changes.items():
        written = written.replace(old, new)
    return compile_version(world.propose_text(written.encode()))


@pytest.fixture
def land() -> signing.Ground:
    """A grant that rests on 91 % under a bar of 80, used once, and refused once since the evidence was found too low."""
    land = signing.ground("91")
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    return land


class TestVerdicts:
    def test_each_is_judged_again_on_what_it_was_judged_on(self, land) -> None:
        stricter = past_verdicts(text(95), since=ALWAYS)
        assert [(row.subject, row.before, row.after) for row in stricter.newly_refused] == [("model-a@1", "pass", "fail")]
        assert past_verdicts(text(85), since=ALWAYS).counts[Change.UNCHANGED] == 1
        assert past_verdicts(text(95), since=now()).newly_refused == []

    def test_clauses_may_have_other_names(self, land) -> None:
        renamed = text(95, **{"refusal: {metric": "declines: {metric", "evidence: refusal": "evidence: declines",
                              "facts: {refusal": "facts: {declines"})  # fmt: skip
        assert len(past_verdicts(renamed, since=ALWAYS).newly_refused) == 1

    def test_what_the_old_text_did_not_read_is_read_as_it_was_known_then(self, land) -> None:
        over = text(5, infeasible_refusal_rate="over_refusal_rate", at_least="at_most")
        assert len(past_verdicts(over, since=ALWAYS).newly_refused) == 1
        harmless = world.observation("1", metric="over_refusal_rate")
        world.submit(world.submission("model-a", harmless), "later.json")  # recorded after the verdict: it changes nothing
        assert len(past_verdicts(over, since=ALWAYS).newly_refused) == 1

    def test_by_domain_the_record_of_a_text_that_asked_by_none_tells_nothing(self, land) -> None:
        by_domain = text(80, **{"statistic: point": "slice: resource.domain, statistic: point"})
        found = past_verdicts(by_domain, since=ALWAYS)
        assert (found.untold, found.counts[Change.NEWLY_REFUSED]) == (1, 0)


class TestDecisions:
    def test_an_answer_that_the_text_would_have_denied_is_found(self, land) -> None:
        found = past_decisions(text(95), since=ALWAYS)
        assert [(row.subject, row.place, row.before, row.after) for row in found.newly_refused] == [
            ("model-a", "hr-prod", "pass", "fail")
        ]
        assert past_decisions(text(85), since=ALWAYS).counts[Change.UNCHANGED] == 1

    def test_a_denial_for_another_cause_stays_one(self, land) -> None:
        assert not ask_gate(ask_token(signing.human("Anna Other", Role.REQUESTER)), action="delete").judgement.allowed
        assert past_decisions(text(10), since=ALWAYS).newly_permitted == []
