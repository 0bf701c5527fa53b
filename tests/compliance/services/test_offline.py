"""Offline bundles on a real database: what is on the list, what is left out, and when a new one is made."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from compliance.client.offline import Bundle, BundleRefused
from compliance.deciding.judge import GRACE_SECONDS
from compliance.ledger.keys import put_new_key_first
from compliance.ledger.note import parse_checkpoint, parse_note, verify_note
from compliance.ledger.offline import Line, read_instant, seal_statement
from compliance.models import Grant, LedgerEntry
from compliance.selectors.proposals import AskedWaiver
from compliance.services import decisions, offline
from compliance.services.accounts import deactivate_account
from compliance.services.drift import review_grants
from compliance.services.offline import BundleTooLarge, hand_out_bundle
from compliance.services.sealing import keyring, seal
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.services.waivers import revoke_waiver
from compliance.vocabulary import Meaning
from evaluations.kernel.clock import now
from evaluations.models import Evidence
from evaluations.services.agents import register_route
from evaluations.services.evidence import dispute_evidence
from evaluations.services.subjects import assign_alias, register_subject_version
from policies.services.systems import register_system, set_open_incident
from tests.support import grants, signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.crowds import crowd
from tests.support.offline import bundle_for, listed, named

pytestmark = pytest.mark.django_db
Clock = Callable[[timedelta], None]

WRITES = ["model-a@1 write"]
READS_MORE = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: more, title: More, profile: supplement}}
spec:
  appliesTo: {{actions: [write]{when}}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim}}
  rules: [{{id: refuses, evidence: refusal, at_least: 10}}]
  {forbid}
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 90, recertify_every_days: 30}}
"""


@pytest.fixture
def land() -> signing.Ground:
    return signing.ground()


@pytest.fixture
def token(land: signing.Ground) -> str:
    return ask_token(land.asker)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Move the clock that bundles and decisions read."""

    def move(by: timedelta) -> None:
        for module in (decisions, offline):
            monkeypatch.setattr(module, "now", lambda: now() + by)

    return move


def test_nobody_is_on_the_list_before_a_grant_and_whom_it_names_after_it(land: signing.Ground, token: str) -> None:
    assert named(listed(token, land.system)) == []
    grant = signing.granted(land)
    statement = listed(token, land.system)
    (line,) = statement.lines
    assert line == Line(
        subject="model-a",
        version=1,
        fingerprint=land.version.digest,
        kind="model",
        runs=True,
        names=("model-a",),
        action="write",
        grants=(str(grant.uid),),
        policies=(land.policy.digest,),
        break_glass=False,
        valid_until=line.valid_until,
    )
    assert read_instant(line.valid_until) == grant.recertify_by
    assert statement.policies == {land.policy.digest: ("two-keys", 1)}
    assert statement.expires_at - statement.issued_at == timedelta(seconds=300)


def test_it_is_made_under_a_checkpoint_of_the_log(land: signing.Ground, token: str) -> None:
    seal()
    statement = listed(token, land.system)
    note = parse_note(statement.checkpoint.encode())
    verify_note(note, [keyring().current.verifier])
    assert parse_checkpoint(note.text).size == LedgerEntry.objects.filter(leaf__isnull=False).count()


def test_one_system_is_on_its_own_list_alone(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    other = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="hr")
    assert named(listed(token, other)) == []
    assert named(listed(ask_token(land.asker, "decide:hr-prod"), land.system)) == WRITES


# --- what ends an allow leaves the list


def _revoked(land: signing.Ground, grant: Grant) -> None:
    revoke_grant(actor=signing.actor_of(land.security), grant=grant, reason="enough")


def _suspended(land: signing.Ground, grant: Grant) -> None:
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="wait")


def _drifted(land: signing.Ground, grant: Grant) -> None:
    world.submit(
        world.submission("model-a", world.observation("12"), run={"status": "complete", "ended_at": "2026-11-29T00:00:00Z"}), "b"
    )
    world.judge_all()
    # What the worker does a moment later: the grant itself is suspended, and stays so when the numbers are well again.
    review_grants(actor=world.ACTOR, subject_version_ids=[land.version.pk])
    assert grant.reload().status == "suspended"


def _disputed(land: signing.Ground, grant: Grant) -> None:
    dispute_evidence(actor=signing.actor_of(land.security), evidence=Evidence.objects.get(), reason="whose cases?")


def _signer_left(land: signing.Ground, grant: Grant) -> None:
    deactivate_account(actor=signing.actor_of(grants.administrator()), user=land.owner, reason="left")


def _another_version_runs(land: signing.Ground, grant: Grant) -> None:
    register_subject_version(actor=world.ACTOR, subject=land.version.subject, pin={"snapshot": "new"})


def _stricter_policy(land: signing.Ground, grant: Grant) -> None:
    world.activate(world.propose_text(signing.fit_text(bar=99)))


@pytest.mark.parametrize(
    "end", [_revoked, _suspended, _drifted, _disputed, _signer_left, _another_version_runs, _stricter_policy]
)
def test_what_ends_an_allow_leaves_the_next_list(
    end: Callable[[signing.Ground, Grant], None], land: signing.Ground, token: str
) -> None:
    grant = signing.granted(land)
    before = listed(token, land.system)
    assert named(before) == WRITES
    end(land, grant)
    after = listed(token, land.system)
    assert not ask_gate(token).judgement.allowed
    assert named(after) == []
    assert after.serial > before.serial


def test_an_open_incident_takes_everybody_from_the_list_and_its_end_brings_them_back(land: signing.Ground, token: str) -> None:
    world.activate(world.propose_text(signing.GUARDED))
    world.judge_all()
    signing.granted(land)
    assert named(listed(token, land.system)) == WRITES
    for is_open, expected in ((True, []), (False, WRITES)):
        set_open_incident(actor=world.ACTOR, system=land.system, is_open=is_open, reason="a drill")
        assert named(listed(token, land.system)) == expected


def test_what_begins_later_is_not_on_the_list_yet(land: signing.Ground, token: str) -> None:
    grants.starting(land)
    assert named(listed(token, land.system)) == []


# --- what cannot be decided without asking


@pytest.mark.parametrize(
    ("when", "forbid", "expected"),
    [
        ("""resource.domain == "hr" """, "", WRITES),
        ("""subject.kind == "model" && action.name == "write" """, "", WRITES),
        ("""now > timestamp("2020-01-01T00:00:00Z")""", "", []),
        ("""now > timestamp("2099-01-01T00:00:00Z")""", "", []),
        ("""requester.team == "apps" """, "", []),
        ("", "resource.open_incident == true", WRITES),
        ("", """now > timestamp("2099-01-01T00:00:00Z")""", []),
        ("", """"administrator" in requester.roles""", []),
    ],
)
def test_whom_a_policy_judges_by_the_moment_is_left_out(
    when: str, forbid: str, expected: list[str], land: signing.Ground, token: str
) -> None:
    text = READS_MORE.format(
        when=f", when: '{when}'" if when else "", forbid=f"forbid: [{{id: never, when: '{forbid}'}}]" if forbid else ""
    )
    world.activate(world.propose_text(text.encode()))
    world.judge_all()
    signing.granted(land)
    assert ask_gate(token).judgement.allowed
    assert named(listed(token, land.system)) == expected


def test_news_that_nobody_has_judged_ends_a_line_within_the_grace(land: signing.Ground, token: str, later: Clock) -> None:
    signing.granted(land)
    world.submit(world.submission("model-a", world.observation("92"), run={"status": "running"}), "news")
    land.version.subject.refresh_from_db()
    changed = land.version.subject.changed_at
    assert ask_gate(token).judgement.allowed
    (line,) = listed(token, land.system).lines
    assert read_instant(line.valid_until) == changed + timedelta(seconds=GRACE_SECONDS)
    later(timedelta(seconds=GRACE_SECONDS))
    assert codes_of(ask_gate(token)) == ["verdict_overdue"]
    assert named(listed(token, land.system)) == []


def test_a_waiver_is_on_it_as_long_as_it_stands(token: str, land: signing.Ground) -> None:
    world.activate(
        world.propose_text(signing.TWO_KEYS.format(name="two-keys", bar=95, age="unlimited", enforcement="soft").encode())
    )
    world.judge_all()
    asked = signing.ask(land, waivers=[AskedWaiver("two-keys", "refuses", "hr-prod", "the pilot is watched")])
    for account in (land.owner, land.security):
        signing.sign(account, asked, Meaning.ACCEPTED_RESIDUAL_RISK)
    (line,) = listed(token, land.system).lines
    waiver = asked.waivers.get()
    assert read_instant(line.valid_until) <= waiver.ends_at
    revoke_waiver(actor=signing.actor_of(land.security), waiver=waiver, reason="enough")
    assert named(listed(token, land.system)) == []


# --- who is on it, and under which names


def test_break_glass_is_on_it_and_says_so(land: signing.Ground, token: str) -> None:
    opened = grants.glass(land)
    (line,) = listed(token, land.system).lines
    assert (line.break_glass, line.policies, line.grants) == (True, (), (str(opened.grant.uid),))


def test_an_alias_is_on_it_while_it_means_the_version(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=land.version, reason="x")
    world.judge_all()
    assert list(listed(token, land.system).lines[0].names) == ["fast", "model-a"]
    assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=None, reason="x")
    world.judge_all()
    assert list(listed(token, land.system).lines[0].names) == ["model-a"]


def test_an_alias_that_is_to_move_soon_is_left_to_those_who_ask(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    for minutes, expected in ((4, ["model-a"]), (6, ["fast", "model-a"])):
        assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=land.version, reason="x")
        moves_at = now() + timedelta(minutes=minutes)
        assign_alias(actor=world.ACTOR, name_as_written="fast", subject_version=None, reason="x", effective_from=moves_at)
        world.judge_all()
        assert ask_gate(token, "fast", kind="alias").judgement.allowed
        assert list(listed(token, land.system).lines[0].names) == expected


def test_a_route_is_on_it_where_all_that_it_reaches_is(land: signing.Ground, token: str) -> None:
    register_route(actor=world.ACTOR, key="cheap", models=["model-a"])
    assert named(listed(token, land.system)) == []
    signing.granted(land)
    assert named(listed(token, land.system)) == ["cheap@1 write", *WRITES]


# --- when a new one is made


def test_the_same_bundle_goes_out_until_something_happens(land: signing.Ground, token: str, later: Clock) -> None:
    signing.granted(land)
    first = bundle_for(token, land.system)
    ask_gate(token)
    hand_out_bundle(actor=world.ACTOR, bundle=first, form="dsse")
    seal()
    assert bundle_for(token, land.system).serial == first.serial
    later(timedelta(seconds=149))
    assert bundle_for(token, land.system).serial == first.serial
    later(timedelta(seconds=151))
    again = bundle_for(token, land.system)
    assert (again.serial > first.serial, again.lines_digest) == (True, first.lines_digest)


def test_what_happens_elsewhere_has_it_judged_again_and_the_same_goes_out(land: signing.Ground, token: str) -> None:
    signing.granted(land)
    first = bundle_for(token, land.system)
    register_system(actor=world.ACTOR, key="third", title="Third", domain="hr", owner="hr")
    again = bundle_for(token, land.system)
    assert (again.serial, again.payload) == (first.serial, first.payload)
    assert LedgerEntry.objects.filter(action="offline_bundle.made").count() == 1


def test_a_clock_that_was_set_back_makes_a_new_one_with_a_higher_serial(land: signing.Ground, token: str, later: Clock) -> None:
    first = bundle_for(token, land.system)
    later(-timedelta(hours=2))
    assert bundle_for(token, land.system).serial == first.serial + 1


def test_making_and_handing_out_are_on_record(land: signing.Ground, token: str) -> None:
    bundle = bundle_for(token, land.system)
    hand_out_bundle(actor=world.ACTOR, bundle=bundle, form="opa", request_id="r-1")
    for action in ("offline_bundle.made", "offline_bundle.handed_out"):
        entry = LedgerEntry.objects.get(action=action)
        assert (entry.target_kind, entry.target_id) == ("system", "hr-prod")
        assert bundle.digest.encode() in bytes(entry.content)


def test_too_much_for_one_bundle_is_refused_whole(land: signing.Ground, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd(5, land.system, land.asker.person)
    monkeypatch.setattr(offline, "MOST_LINES", 4)
    with pytest.raises(BundleTooLarge):
        bundle_for(token, land.system)
    assert LedgerEntry.objects.filter(action="offline_bundle.refused").count() == 1
    monkeypatch.setattr(offline, "MOST_LINES", 5)
    monkeypatch.setattr(offline, "MOST_BYTES", 1_000)
    with pytest.raises(BundleTooLarge):
        bundle_for(token, land.system)
    monkeypatch.setattr(offline, "MOST_BYTES", 10_000)
    assert len(listed(token, land.system).lines) == 5


def test_making_one_takes_a_bounded_number_of_statements(
    land: signing.Ground, token: str, django_assert_max_num_queries: Any
) -> None:
    crowd(450, land.system, land.asker.person)
    seal()
    with django_assert_max_num_queries(40):
        assert len(listed(token, land.system).lines) == 450
    with django_assert_max_num_queries(3):
        bundle_for(token, land.system)


def test_the_log_s_next_key_signs_the_next_bundle(land: signing.Ground, token: str, settings: Any, tmp_path: Path) -> None:
    settings.LEDGER_KEY, settings.LEDGER_KEY_PATH = "", tmp_path / "key"
    bundle = bundle_for(token, land.system)
    old = keyring().current
    put_new_key_first(settings.LEDGER_KEY_PATH)
    new = keyring().current
    data = seal_statement(bytes(bundle.payload), new)
    for keys in ([old.verifier], [new.verifier]):
        with pytest.raises(BundleRefused):
            Bundle.verified(data, system="hr-prod", keys=keys)
    # Until the log is sealed by the new key, a client needs both: the checkpoint is under the old one.
    assert Bundle.verified(data, system="hr-prod", keys=[old.verifier, new.verifier]).statement.serial == bundle.serial


def test_pages_of_candidates_leave_nobody_out(land: signing.Ground, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "BATCH", 7)
    crowd(40, land.system, land.asker.person)
    signing.granted(land)
    expected = sorted([*(f"crowd-{number}@1 write" for number in range(40)), *WRITES])
    assert sorted(named(listed(token, land.system))) == expected
