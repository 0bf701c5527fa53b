"""Decisions read back: who sees which, what each says in words, how many there were a day, and judging once more."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compliance.deciding import replay
from compliance.deciding.codes import Code
from compliance.models import Decision, User
from compliance.selectors import decisions as selector
from compliance.selectors.decisions import decisions_by_day, explain, find_decision, find_decisions, replay_decision
from compliance.selectors.sight import Sight, sight_of
from compliance.services import decisions, recording
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import ReplayOutcome, Role
from evaluations.kernel.clock import now
from policies.models import PolicyVersion
from policies.services.systems import register_system
from tests.compliance.api.authzen.doors import CERTIFIED, Doors
from tests.support import grants, signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.replaying import every_decision_replays

pytestmark = pytest.mark.django_db
CERTIFICATION = world.FIXTURES / "conformance"


@pytest.fixture
def token(land: signing.Ground) -> str:
    return ask_token(land.asker)


def sees(account: User, *systems: str) -> Sight:
    return sight_of(account.person_id, at=now(), systems=systems or None)


def row_of(answer: recording.Decided) -> Any:
    return Decision.objects.select_related("body").get(uid=answer.uid)


# --- who sees which


def test_a_team_sees_its_systems_and_readers_of_all_see_everything(land: signing.Ground, token: str) -> None:
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    for system in ("hr-prod", "it-prod", "nowhere"):
        ask_gate(token, system=system)

    def seen(sight: Sight) -> list[str]:
        return [row.resource for row in find_decisions(sight)]

    everything = ["nowhere", "it-prod", "hr-prod"]
    assert seen(sees(land.owner)) == ["hr-prod"]
    assert seen(sees(signing.human("Ivan", Role.SYSTEM_OWNER, team="it"))) == ["it-prod"]
    assert seen(sees(land.asker)) == [], "whose token asked is no matter"
    for role in (Role.AUDITOR, Role.ADMINISTRATOR, Role.SECURITY):
        assert seen(sees(signing.human(f"The {role}", role))) == everything
    assert seen(sees(land.security, "it-prod")) == ["it-prod"], "a token that is narrowed"
    assert seen(sees(land.owner, "it-prod")) == []
    row = Decision.objects.get(resource="it-prod")
    assert find_decision(sees(land.owner), uid=row.uid) is None
    assert find_decision(sees(land.security), uid=row.uid) == row


def test_each_filter_keeps_what_it_names(land: signing.Ground, token: str) -> None:
    denied = ask_gate(token)
    grant = signing.granted(land)
    allowed = ask_gate(token, kind="subject")
    numbered = ask_gate(token, "model-a@1")
    elsewhere = ask_gate(token, system="nowhere")
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    stopped = ask_gate(token)
    everybody = sees(land.security)

    def found(**wanted: Any) -> list[Any]:
        return [row.uid for row in find_decisions(everybody, **wanted)]

    every = [stopped.uid, elsewhere.uid, numbered.uid, allowed.uid, denied.uid]
    assert found() == every
    assert found(system="nowhere") == [elsewhere.uid]
    assert found(system="hr-prod") == [uid for uid in every if uid != elsewhere.uid]
    assert found(subject="model-a@1") == [numbered.uid]
    assert found(subject="model-a") == every, "by its key, however it was called"
    assert found(grant=grant.uid) == [stopped.uid, numbered.uid, allowed.uid]
    assert found(code="grant_suspended") == [stopped.uid]
    assert found(allowed=True) == [numbered.uid, allowed.uid]
    assert found(allowed=False, code="no_grant") == [elsewhere.uid, denied.uid]
    assert found(observed=True) == []
    at = row_of(numbered).at
    assert found(since=at) == every[:3]
    assert found(until=at) == every[3:]


def test_a_grant_is_named_to_whoever_sees_it(land: signing.Ground, token: str) -> None:
    grant = signing.granted(land)
    uid = ask_gate(token).uid
    assert find_decision(sees(land.owner), uid=uid).seen_grant == grant.uid
    other = signing.granted(
        land, systems=[register_system(actor=world.ACTOR, key="x", title="X", domain="hr", owner="hr"), land.system]
    )
    assert find_decision(sees(land.security, "hr-prod"), uid=ask_gate(token).uid).seen_grant is None, (
        "it reaches another system too"
    )
    assert other.status == "active"


# --- in words


def test_it_is_explained_from_its_body(land: signing.Ground, token: str) -> None:
    denied = explain(row_of(ask_gate(token)))
    assert denied.sentence == "`model-a` was not allowed to `write` on `hr-prod`: there is no grant for this."
    assert [reason["code"] for reason in denied.reasons] == ["no_grant"]
    assert (denied.valid_until, denied.replaced_by) == (None, None)
    grant = signing.granted(land)
    allowed = explain(row_of(ask_gate(token)))
    assert allowed.sentence.startswith("`model-a` was allowed to `write` on `hr-prod`: a grant stood")
    assert (list(allowed.grants), len(allowed.evidence), allowed.reasons) == ([str(grant.uid)], 1, [])
    assert allowed.valid_until
    assert allowed.policies[0]["outcome"] == "pass"
    grants.glass(land)
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    assert "break-glass" in explain(row_of(ask_gate(token))).sentence


# --- once more


def test_what_took_the_place_of_a_judgement_is_told_beside_what_the_facts_give(
    land: signing.Ground, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing.granted(land)
    scoped = replay_decision(row_of(ask_gate(ask_token(land.asker, "decide:other"))))
    assert (scoped.outcome, scoped.replaced_by) == (ReplayOutcome.SAME, "out_of_scope")
    assert scoped.judged is not None
    assert scoped.judged["allowed"], "what the facts gave"

    record = recording.Recorder.record
    with monkeypatch.context() as patch:
        # Each time it is looked at, what it rests on has moved.
        patch.setattr(
            recording.Recorder, "record", lambda self, judged, *, held: None if held else record(self, judged, held=held)
        )
        moved = ask_gate(token)
    assert codes_of(moved) == ["facts_moved"]
    again = replay_decision(row_of(moved))
    assert (again.same, again.replaced_by) == (True, "facts_moved")
    assert again.judged is not None
    assert again.judged["allowed"]

    def breaks(*_: object) -> None:
        raise KeyError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(decisions, "judge", breaks)
        broken = ask_gate(token)
    assert codes_of(broken) == ["internal_error"]
    whole = replay_decision(row_of(broken))
    assert (whole.same, whole.replaced_by, whole.judged is not None) == (True, "internal_error", True)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "judge", breaks)
        still = replay_decision(row_of(broken))
    assert (still.same, still.judged) == (True, None), "it still ends in an error"


def test_a_judge_who_means_otherwise_is_found_out(land: signing.Ground, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of(ask_gate(token))
    with monkeypatch.context() as patch:
        patch.setattr(replay, "judge", lambda *_: replay.Judgement(True, ()))
        done = replay_decision(row)
        assert (done.outcome, done.same) == (ReplayOutcome.DIFFERS, False)
        with pytest.raises(AssertionError, match="no_grant"):
            every_decision_replays()
    with monkeypatch.context() as patch:
        patch.setattr(replay, "SEMANTICS", 2)
        done = replay_decision(row)
    assert (done.outcome, done.replayed) == (ReplayOutcome.UNKNOWN_SEMANTICS, b"")
    with monkeypatch.context() as patch:
        patch.setattr(selector.PolicyVersion.objects, "filter", lambda **_: PolicyVersion.objects.none())
        done = replay_decision(row)
    assert (done.outcome, done.replayed, done.judged) == (ReplayOutcome.PRUNED, b"", None)


def test_judging_again_reads_nothing_of_today(land: signing.Ground, token: str) -> None:
    grant = signing.granted(land)
    allowed = row_of(ask_gate(token))
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    world.activate(
        world.propose_text(signing.TWO_KEYS.format(name="two-keys", bar=99, age="unlimited", enforcement="hard").encode())
    )
    world.judge_all()
    assert Code.GRANT_SUSPENDED.value in codes_of(ask_gate(token))
    with CaptureQueriesContext(connection) as queries:
        assert replay_decision(allowed).same
    tables = " ".join(query["sql"] for query in queries)
    assert "policies_policyversion" in tables
    assert "compliance_grant" not in tables
    assert "policies_standing" not in tables


# --- counted


def test_days_are_counted_in_utc_and_cut_where_there_is_too_much(
    land: signing.Ground, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = signing.granted(land)
    at = now()
    for days, allowed in ((5, 1), (1, 1), (0, 2)):
        with monkeypatch.context() as patch:
            patch.setattr(decisions, "now", lambda days=days: now() - timedelta(days=days))
            for _ in range(allowed):
                ask_gate(token)
    ask_gate(token, action="delete")
    everybody = sees(land.security)
    found = decisions_by_day(everybody, grant, days=7, at=now())
    assert [(day.allowed, day.denied) for day in found.days][-1] == (2, 1)
    assert (len(found.days), found.counted_from) == (7, None)
    # In a grant's past it had not begun: those are denials that name it.
    assert sum(day.denied for day in found.days) == 3
    assert sum(day.denied for day in decisions_by_day(everybody, grant, days=3, at=at).days) == 2
    assert sum(day.allowed for day in decisions_by_day(sees(land.asker), grant, days=7, at=at).days) == 0
    monkeypatch.setattr(selector, "MOST_COUNTED", 3)
    cut = decisions_by_day(everybody, grant, days=7, at=now())
    assert sum(day.allowed + day.denied for day in cut.days) == 3
    assert cut.counted_from is not None
    assert cut.counted_from >= at


def test_an_allow_of_the_conformance_profile_says_that_it_clears_nobody(settings: Any) -> None:
    settings.CONFORMANCE = True
    settings.CONFORMANCE_ATTRIBUTES = str(CERTIFICATION / "attributes.json")
    world.activate(world.propose_text((CERTIFICATION / "policy.yaml").read_bytes()))
    auditor = signing.human("Ada Auditor", Role.AUDITOR)
    assert Doors(ask_token(auditor)).decide(CERTIFIED)
    row = find_decisions(sees(auditor)).get()
    assert (row.allowed, row.conformance, row.system) == (True, True, None)
    assert explain(row).sentence.endswith("the conformance profile answered, which rests on nothing and clears nobody.")
    assert replay_decision(row).same
