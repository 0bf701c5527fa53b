"""`decide()` on a real database: what it allows, what it refuses and why, and what it leaves on record."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from compliance.models import Decision, LedgerEntry, User
from compliance.selectors.population import population_report
from compliance.selectors.proposals import AskedWaiver
from compliance.services import decisions
from compliance.services.accounts import deactivate_account
from compliance.services.decisions import ScopeMissing, TokenRefused
from compliance.services.people import create_token, revoke_token, token_digest
from compliance.services.recording import Decided
from compliance.services.roles import give_role
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.services.waivers import revoke_waiver
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.clock import now
from evaluations.models import Evidence
from evaluations.services.agents import register_agent, register_route
from evaluations.services.evidence import dispute_evidence
from evaluations.services.subjects import assign_alias, register_subject_version
from policies.services.systems import register_system, set_open_incident
from tests.support import grants, signing, world
from tests.support.asking import ask_gate, ask_token, codes_of

pytestmark = pytest.mark.django_db

DIGEST = "sha256:" + "ab" * 32
Clock = Callable[[timedelta], None]


@pytest.fixture
def land() -> signing.Ground:
    return signing.ground()


@pytest.fixture
def token(land: signing.Ground) -> str:
    return ask_token(land.asker)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Move the clock that decisions read."""

    def move(by: timedelta) -> None:
        monkeypatch.setattr(decisions, "now", lambda: now() + by)

    return move


def why(answer: Decided, code: str) -> dict[str, object]:
    """Return what an answer says about one of its reasons."""
    (found,) = [reason.detail for reason in answer.judgement.reasons if reason.code == code]
    return dict(found)


def test_an_allow_rests_on_a_grant_and_is_on_record(land: signing.Ground, token: str) -> None:
    assert codes_of(ask_gate(token)) == ["no_grant"]
    grant = signing.granted(land)
    answer = ask_gate(token)
    assert answer.judgement.allowed, codes_of(answer)
    assert (answer.judgement.grants, len(answer.judgement.evidence)) == ((str(grant.uid),), 1)
    assert datetime.fromisoformat(answer.judgement.until) == grant.recertify_by
    row = Decision.objects.get(uid=answer.uid)
    assert (row.allowed, row.grant, row.system, row.subject_version) == (True, grant, land.system, land.version)
    entry = LedgerEntry.objects.get(uid=answer.entry)
    assert (entry.action, entry.target_id) == ("decision.made", str(row.uid))
    assert digest_of(bytes(row.body.content)) == row.body.digest
    assert canonical_bytes(answer.facts) in bytes(row.body.content)


def test_a_denial_is_on_record_too(land: signing.Ground, token: str) -> None:
    answer = ask_gate(token, "nobody")
    row = Decision.objects.get(uid=answer.uid)
    assert (row.allowed, row.codes, row.grant, row.subject) == (False, ["unknown_subject", "no_grant"], None, "nobody")
    assert LedgerEntry.objects.filter(uid=answer.entry).exists()


@pytest.mark.parametrize(
    ("subject", "system", "first"),
    [
        ("model-a0", "hr-prod", "unknown_subject"),
        ("model-a-mini", "hr-prod", "unknown_subject"),
        ("model-\u0430", "hr-prod", "unknown_subject"),
        ("model\u2011a", "hr-prod", "unknown_subject"),
        ("model-a\x00", "hr-prod", "unknown_subject"),
        ("model-a@2", "hr-prod", "unknown_subject"),
        ("model-a@99999999999", "hr-prod", "unknown_subject"),
        ("MODEL-A", "hr-prod", "unknown_subject"),
        ("model-a", "hr-prod-2", "no_grant"),
        ("model-a", "hr-prod/../itsm", "unknown_system"),
        ("model-a", "HR-PROD", "unknown_system"),
        ("model-a", "", "unknown_system"),
        ("", "hr-prod", "unknown_subject"),
    ],
)
def test_cases_o08_and_o09_a_neighbour_has_no_grant(
    land: signing.Ground, token: str, subject: str, system: str, first: str
) -> None:
    register_system(actor=world.ACTOR, key="hr-prod-2", title="The other one", domain="hr", owner="hr")
    signing.granted(land)
    answer = ask_gate(token, subject, system)
    assert not answer.judgement.allowed
    assert (codes_of(answer)[0], "no_grant" in codes_of(answer)) == (first, True)


def test_it_answers_for_the_version_whose_fingerprint_was_given(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    assert ask_gate(token, fingerprint=land.version.digest).judgement.allowed
    assert codes_of(ask_gate(token, fingerprint=DIGEST)) == ["unknown_fingerprint", "no_grant"]
    assert codes_of(ask_gate(token, kind="agent"))[0] == "other_kind"
    assert ask_gate(token, "model-a@1", kind="subject").judgement.allowed


def test_another_version_that_runs_ends_what_was_signed_before(land: signing.Ground, token: str) -> None:
    grant = signing.granted(land)
    subject = land.version.subject
    newer = register_subject_version(actor=world.ACTOR, subject=subject, pin={"snapshot": "other"})
    assert "no_grant" in codes_of(ask_gate(token))
    for asked in ({"subject": "model-a@1"}, {"fingerprint": land.version.digest}):
        answer = ask_gate(token, **asked)
        assert codes_of(answer)[0] == "subject_changed"
        assert why(answer, "subject_changed")["running"] == f"model-a@{newer.number}"
    assert grant.reload().status == "active", "the gate waits for no review"


def test_a_grant_s_end_and_certification_are_read_from_the_clock(land: signing.Ground, token: str, later: Clock) -> None:
    grant = signing.granted(land, days=60)
    end = grant.ends_at - now()
    later(timedelta(days=30, seconds=5))
    assert codes_of(ask_gate(token)) == ["recertification_missed"]
    later(end - timedelta(seconds=5))
    assert codes_of(ask_gate(token)) == ["recertification_missed"]
    later(end + timedelta(seconds=1))
    answer = ask_gate(token)
    assert (codes_of(answer), grant.reload().status) == (["grant_expired"], "active"), "case O-16"
    later(-timedelta(hours=1))
    assert codes_of(ask_gate(token)) == ["grant_not_begun"], "a clock that was set back"


def test_a_grant_that_has_not_begun_is_none_yet(land: signing.Ground, token: str, later: Clock) -> None:
    grants.starting(land)
    assert codes_of(ask_gate(token)) == ["grant_not_begun"]
    later(timedelta(days=4))
    assert codes_of(ask_gate(token)) == ["grant_not_begun"], "its signers are looked at again first"


def test_a_stopped_or_revoked_grant_says_so(land: signing.Ground, token: str) -> None:
    grant = signing.granted(land)
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="something is odd")
    assert why(ask_gate(token), "grant_suspended")["cause"] == "taken_back"
    revoke_grant(actor=signing.actor_of(land.security), grant=grant.reload(), reason="for good")
    assert codes_of(ask_gate(token)) == ["grant_revoked"]


def test_a_signer_whose_account_is_closed_no_longer_carries_it(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.owner, reason="has left")
    answer = ask_gate(token)
    assert codes_of(answer) == ["signer_no_longer_eligible"]
    assert why(answer, "signer_no_longer_eligible")["people"] == [str(land.owner.person_id)]


def test_what_is_listed_stands_in_one_order_however_it_was_found(land: signing.Ground, token: str) -> None:
    revoke_grant(actor=signing.actor_of(land.security), grant=signing.granted(land), reason="for good")
    signing.granted(land)
    administrator = signing.actor_of(grants.administrator())
    give_role(actor=administrator, person=land.asker.person, role=Role.AUDITOR)
    for signer in (land.owner, land.security):
        deactivate_account(actor=administrator, user=signer, reason="has left")
    active, revoked = ask_gate(token).facts["subject"]["grants"]
    assert (active["status"], revoked["status"]) == ("active", "revoked")
    assert active["gone"] == sorted(str(signer.person_id) for signer in (land.owner, land.security))
    assert active["requester"]["roles"] == sorted([Role.AUDITOR, Role.REQUESTER])


def test_an_action_that_was_not_granted_is_refused(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    assert codes_of(ask_gate(token, action="delete")) == ["action_not_granted", "no_policy"]


# --- verdicts


def test_news_is_waited_for_a_minute_and_a_ruling_not_at_all(land: signing.Ground, token: str, later: Clock) -> None:
    signing.granted(land)
    run = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
    imported = world.submit(world.submission("model-a", world.observation("71"), run=run))
    assert imported.observations == 1
    assert ask_gate(token).judgement.allowed
    later(timedelta(seconds=61))
    assert codes_of(ask_gate(token)) == ["verdict_overdue"]
    later(timedelta())
    world.judge_all()
    answer = ask_gate(token)
    assert codes_of(answer) == ["evidence_insufficient"]
    detail = why(answer, "evidence_insufficient")
    assert (detail["rule"], detail["measured"], detail["bar"]) == ("refuses", "71", "80")
    assert answer.judgement.policies[0]["outcome"] == "fail"


def test_case_o20_a_dispute_binds_at_once(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    world.judge_all()
    dispute_evidence(actor=world.ACTOR, evidence=Evidence.objects.get(), reason="it leaked")
    assert codes_of(ask_gate(token)) == ["verdict_overdue"]
    world.judge_all()
    assert codes_of(ask_gate(token)) == ["evidence_contested"]


def test_case_o01_missing_evidence_is_told_beside_the_missing_grant(land: signing.Ground, token: str) -> None:
    world.register("model-b")
    world.judge_all()
    answer = ask_gate(token, "model-b")
    assert codes_of(answer) == ["no_grant", "evidence_missing"]
    assert why(answer, "evidence_missing")["reason"] == "no_evidence"


def test_what_was_never_judged_is_no_verdict(land: signing.Ground, token: str) -> None:
    world.register("model-b")
    assert codes_of(ask_gate(token, "model-b")) == ["no_grant", "no_verdict"]


def test_a_waiver_covers_its_rule_until_it_ends(token_of: Callable[[User], str], later: Clock) -> None:
    land = signing.ground("78", enforcement="soft")
    request = signing.ask(land, waivers=[AskedWaiver("two-keys", "refuses", "hr-prod", "a person looks at each write")])
    for signer in (land.owner, land.security):
        signing.sign(signer, request, Meaning.ACCEPTED_RESIDUAL_RISK)
    token = token_of(land.asker)
    answer = ask_gate(token)
    assert answer.judgement.allowed
    (waived,) = answer.judgement.waived
    assert (waived["policy"], waived["rule"]) == ("two-keys", "refuses")
    waiver = land.version.waivers.get()
    revoke_waiver(actor=signing.actor_of(land.owner), waiver=waiver, reason="nobody looks any more")
    answer = ask_gate(token)
    assert why(answer, "evidence_insufficient")["waivable"] is True


@pytest.fixture
def token_of() -> Callable[[User], str]:
    return ask_token


# --- policies


def test_a_guardrail_is_asked_at_the_moment_of_use(land: signing.Ground, token: str) -> None:
    world.activate(world.propose_text(signing.GUARDED))
    world.judge_all()
    signing.granted(land, days=30)
    assert ask_gate(token).judgement.allowed
    set_open_incident(actor=world.ACTOR, system=land.system, is_open=True, reason="payroll is down")
    assert why(ask_gate(token), "forbidden_by_guardrail")["guardrail"] == "open-incident"


def test_what_cannot_be_judged_denies(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    text = signing.GUARDED.replace(b'resource.domain == "hr"', b'subject.provider == "acme"').replace(
        b"resource.open_incident == true", b'subject.provider == "other"'
    )
    world.activate(world.propose_text(text))
    world.judge_all()
    assert codes_of(ask_gate(token)) == ["condition_error", "guardrail_error"]


def test_supplements_alone_are_no_policy(land: signing.Ground, token: str) -> None:
    world.activate(world.propose_text(signing.GUARDED.replace(b"[write]", b"[archive]")))
    assert codes_of(ask_gate(token, action="archive")) == ["no_grant", "no_policy", "no_verdict"]


# --- names and routes


def test_case_o22_a_name_that_moves_takes_its_yes_along(land: signing.Ground, token: str) -> None:
    assign_alias(actor=world.ACTOR, name_as_written="hr-bot", subject_version=land.version)
    world.judge_all()
    signing.granted(land)
    assert ask_gate(token, "hr-bot", kind="alias").judgement.allowed
    (other,) = world.register("model-b")
    assign_alias(actor=world.ACTOR, name_as_written="hr-bot", subject_version=other)
    answer = ask_gate(token, "hr-bot", kind="alias")
    assert codes_of(answer)[0] == "alias_now_points_to"
    assert why(answer, "alias_now_points_to") == {"alias": "hr-bot", "now": "model-b@1", "before": "model-a@1"}
    world.judge_all()
    assert ask_gate(token).judgement.allowed, "the snapshot keeps its grant"
    assign_alias(actor=world.ACTOR, name_as_written="hr-bot", subject_version=land.version)
    assert codes_of(ask_gate(token, "hr-bot", kind="alias")) == ["alias_now_points_to", "verdict_overdue"]
    world.judge_all()
    assert ask_gate(token, "hr-bot", kind="subject").judgement.allowed
    assign_alias(actor=world.ACTOR, name_as_written="hr-bot", subject_version=None)
    assert codes_of(ask_gate(token, "hr-bot", kind="alias")) == ["alias_withdrawn", "no_grant"]


def test_case_o21_every_member_of_a_route_needs_its_own_grant(land: signing.Ground, token: str) -> None:
    others = world.register("model-b", "model-c")
    for key in ("model-b", "model-c"):
        world.submit(world.submission(key, world.observation("93")))
    names = ["model-a", "model-b", "model-c"]
    register_route(actor=world.ACTOR, key="r", models=names)
    register_route(actor=world.ACTOR, key="open-r", models=names, closed=False)
    world.judge_all()
    signing.granted(land)
    answer = ask_gate(token, "r", kind="route")
    assert codes_of(answer) == ["route_reaches_unapproved"]
    assert [member["subject"] for member in why(answer, "route_reaches_unapproved")["members"]] == ["model-b", "model-c"]
    for version in others:
        signing.granted(land._replace(version=version))
    answer = ask_gate(token, "r", kind="route")
    assert (answer.judgement.allowed, len(answer.judgement.grants)) == (True, 3)
    assert codes_of(ask_gate(token, "open-r", kind="route")) == ["route_not_closed", "no_grant"]
    assert codes_of(ask_gate(token, "unknown-r", kind="route"))[0] == "unknown_subject"


def test_an_agent_has_a_grant_of_its_own(land: signing.Ground, token: str) -> None:
    agent = register_agent(
        actor=world.ACTOR,
        key="hr-agent",
        models=["model-a"],
        prompt_digest=DIGEST,
        tool_manifest_digest=DIGEST,
        harness={"name": "h", "version": "1"},
    )
    world.judge_all()
    signing.granted(land)
    assert codes_of(ask_gate(token, "hr-agent", kind="agent")) == ["no_grant"]
    signing.granted(land._replace(version=agent.version))
    assert ask_gate(token, "hr-agent", kind="agent", fingerprint=agent.version.digest).judgement.allowed


def test_break_glass_goes_round_the_policies_and_says_so(land: signing.Ground, token: str) -> None:
    set_open_incident(actor=world.ACTOR, system=land.system, is_open=True, reason="payroll is down")
    opened = grants.glass(land)
    answer = ask_gate(token)
    assert (answer.judgement.allowed, answer.judgement.break_glass) == (True, True)
    assert answer.judgement.grants == (str(opened.grant.uid),)
    deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.security, reason="stolen laptop")
    assert "signer_no_longer_eligible" in codes_of(ask_gate(token))


# --- who asks


def test_who_may_not_ask_is_told_nothing(land: signing.Ground, later: Clock) -> None:
    signing.granted(land)
    for secret in ("wg_unknown", "", "x" * 10_000):
        with pytest.raises(TokenRefused):
            ask_gate(secret)
    with pytest.raises(ScopeMissing):
        ask_gate(ask_token(land.asker, "read"))
    assert codes_of(ask_gate(ask_token(land.asker, "decide:other"))) == ["out_of_scope"]
    assert ask_gate(ask_token(land.asker, "decide:hr-prod")).judgement.allowed
    made = create_token(actor=world.ACTOR, name="pipeline", scopes=["decide"], person=land.asker.person)
    assert ask_gate(made.secret).judgement.allowed
    later(timedelta(days=91))
    with pytest.raises(TokenRefused):
        ask_gate(made.secret)
    later(timedelta())
    revoke_token(actor=world.ACTOR, token=made.token)
    with pytest.raises(TokenRefused):
        ask_gate(made.secret)
    other = ask_token(land.asker)
    deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.asker, reason="has left")
    with pytest.raises(TokenRefused):
        ask_gate(other)
    assert token_digest(other).startswith("sha256:")


def test_an_answer_written_by_hand_has_no_entry_and_is_named(land: signing.Ground, token: str) -> None:
    grant = signing.granted(land)
    honest = Decision.objects.get(uid=ask_gate(token).uid)
    forged = Decision.objects.create(
        allowed=True,
        subject="model-a",
        action="write",
        resource="hr-prod",
        subject_version=land.version,
        system=land.system,
        grant=grant,
        body=honest.body,
        entry=honest.entry,
        at=now(),
    )
    (line,) = [line for line in population_report() if line.table == "compliance_decision"]
    assert (line.rows, line.events, line.examples) == (2, 1, (str(forged.uid),))
