"""What the owner of the database rewrites under a verdict: it is found, told once, and carries nothing until it is judged anew."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.test import Client

from compliance import tasks
from compliance.models import LedgerEntry, OutboxMessage
from compliance.selectors.population import population_report
from compliance.selectors.replays import sampled_verdict_ids
from compliance.services.people import create_token
from compliance.vocabulary import Role
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import SubjectVersion
from evaluations.services.subjects import apply_register_subject, apply_register_subject_version
from policies import tasks as judging
from policies.models import FactsDocument, PolicyVersion, Standing, Verdict, VerdictMismatch
from policies.vocabulary import VerdictReplay
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.tampering import overwrite

Tamper = Callable[[psycopg.Connection, Verdict], None]


def swapped(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) >= 1, (old, content)
    return content.replace(old, new, 1)


def facts_byte(owner: psycopg.Connection, verdict: Verdict) -> None:
    content = bytes(verdict.facts.content)
    overwrite(owner, "policies_factsdocument", verdict.facts_id, {"content": swapped(content, b'"value":"91"', b'"value":"92"')})


def facts_emptied(owner: psycopg.Connection, verdict: Verdict) -> None:
    overwrite(owner, "policies_factsdocument", verdict.facts_id, {"content": b""})


def facts_garbled(owner: psycopg.Connection, verdict: Verdict) -> None:
    overwrite(owner, "policies_factsdocument", verdict.facts_id, {"content": b'{"format": []}'})


def judgement(owner: psycopg.Connection, verdict: Verdict) -> None:
    core = swapped(bytes(verdict.core), b'"measured":"91"', b'"measured":"99"')
    overwrite(owner, "policies_verdict", verdict.pk, {"core": core, "core_digest": digest_of(core)})


def judgement_garbled(owner: psycopg.Connection, verdict: Verdict) -> None:
    overwrite(owner, "policies_verdict", verdict.pk, {"core": b"\x00not json"})


def row(owner: psycopg.Connection, verdict: Verdict) -> None:
    overwrite(owner, "policies_verdict", verdict.pk, {"result": "stale"})


def instant(owner: psycopg.Connection, verdict: Verdict) -> None:
    overwrite(owner, "policies_verdict", verdict.pk, {"as_of": verdict.recorded_at.replace(year=2001)})


def all_of_it(owner: psycopg.Connection, verdict: Verdict) -> None:
    """Facts, judgement and digests, so that they fit: the log alone knows better."""
    content = swapped(bytes(verdict.facts.content), b'"value":"91"', b'"value":"92"')
    core = bytes(verdict.core).replace(b'"91"', b'"92"')
    overwrite(owner, "policies_factsdocument", verdict.facts_id, {"content": content, "digest": digest_of(content)})
    overwrite(owner, "policies_verdict", verdict.pk, {"core": core, "core_digest": digest_of(core)})


TAMPERED: dict[str, tuple[Tamper, set[str]]] = {
    "facts": (facts_byte, {"facts_document", "judgement"}),
    "facts emptied": (facts_emptied, {"facts_document", "judgement"}),
    "facts garbled": (facts_garbled, {"facts_document", "judgement"}),
    "judgement": (judgement, {"judgement", "entry"}),
    "judgement garbled": (judgement_garbled, {"judgement", "row"}),
    "row": (row, {"row"}),
    "instant": (instant, {"entry"}),
    "all of it": (all_of_it, {"entry"}),
}


@pytest.fixture
def land(committed_db) -> signing.Ground:
    return signing.ground()


def standing_verdict(version: SubjectVersion, policy_version: PolicyVersion | None = None) -> Verdict:
    standings = Standing.objects.select_related("verdict__facts", "verdict__policy_version__policy")
    if policy_version is not None:
        standings = standings.filter(policy_version=policy_version)
    return standings.get(subject_version=version).verdict


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_verdict_is_an_incident_and_carries_nothing_until_it_is_judged_anew(
    land: signing.Ground, owner_connection, settings, case: str
) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:1?from=gate@example.org"
    tamper, differs = TAMPERED[case]
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    verdict = standing_verdict(land.version)

    tamper(owner_connection(), verdict)
    assert tasks.replay_verdicts() == 0
    mismatch = VerdictMismatch.objects.get()
    assert (mismatch.verdict_id, mismatch.found_by) == (verdict.pk, "system_job:replay-verdicts")
    assert differs <= set(mismatch.differs)
    entry = LedgerEntry.objects.get(action="verdict.mismatched")
    assert entry.target_id == str(verdict.uid)
    assert json.loads(bytes(entry.content))["new"]["differs"] == mismatch.differs
    told = OutboxMessage.objects.filter(kind="verdict_mismatched")
    assert told.exists()
    (line,) = [line for line in population_report() if line.table == "policies_verdictmismatch"]
    assert (line.rows, line.events, line.differing) == (1, 1, 0)

    # Told once, however often it is found.
    before = told.count()
    tasks.replay_verdicts()
    assert (told.count(), LedgerEntry.objects.filter(action="verdict.mismatched").count()) == (before, 1)

    # Nothing rests on it: news that changes nothing does not lift that.
    if case != "judgement garbled":
        assert "verdict_overdue" in codes_of(ask_gate(token))
    assert not ask_gate(token).judgement.allowed
    assert judging.judge_due()["new"] == 1
    fresh = standing_verdict(land.version)
    assert fresh.pk != verdict.pk
    assert ask_gate(token).judgement.allowed
    tasks.replay_verdicts()
    assert VerdictMismatch.objects.count() == 1
    assert digest_of(bytes(fresh.facts.content)) == fresh.facts.digest
    assert FactsDocument.objects.filter(pk=fresh.facts_id).exists()


def test_a_tampered_policy_denies_until_its_text_is_back(land: signing.Ground, owner_connection) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    verdict = standing_verdict(land.version)
    text = bytes(verdict.policy_version.text)
    owner = owner_connection()
    overwrite(owner, "policies_policyversion", verdict.policy_version_id, {"text": text + b"\n"})
    tasks.replay_verdicts()
    assert set(VerdictMismatch.objects.get().differs) >= {"policy_text", "judgement"}
    # Nobody is judged by a text that nobody proposed, and by the other policies everybody still is.
    world.propose(name="other")
    assert judging.judge_due()["new"] == 1
    assert set(codes_of(ask_gate(token))) & {"verdict_overdue", "policy_unreadable"}
    overwrite(owner, "policies_policyversion", verdict.policy_version_id, {"text": text})
    assert not ask_gate(token).judgement.allowed
    assert judging.judge_due()["new"] == 1
    assert standing_verdict(land.version, verdict.policy_version).pk != verdict.pk


def test_a_judge_who_looked_before_does_not_lift_the_mark(land: signing.Ground, owner_connection) -> None:
    verdict = standing_verdict(land.version)
    facts_byte(owner_connection(), verdict)
    tasks.replay_verdicts()
    Standing.objects.get(verdict=verdict, due_at__lte=now())
    world.judge_all()
    assert not Standing.objects.filter(verdict=verdict).exists()


def test_the_sample_begins_with_what_stands_under_live_grants(land: signing.Ground) -> None:
    signing.granted(land)
    first = standing_verdict(land.version)
    with service_transaction("test"):
        for key in ("model-b", "model-c"):
            subject = apply_register_subject(actor=world.ACTOR, key=key, kind="model", candidate=True)
            apply_register_subject_version(actor=world.ACTOR, subject=subject, pin={"snapshot": key})
    world.judge_all()
    newest = list(Verdict.objects.order_by("-pk").values_list("pk", flat=True))
    assert newest[-1] == first.pk
    assert sampled_verdict_ids(1, at=now()) == [first.pk]
    assert sampled_verdict_ids(2, at=now())[0] == first.pk
    assert len(sampled_verdict_ids(2, at=now())) == 2
    assert sampled_verdict_ids(100, at=now())[0] == first.pk
    assert sorted(sampled_verdict_ids(100, at=now()), reverse=True) == newest


def test_in_time_every_verdict_has_its_turn_however_many_grants_live(land: signing.Ground) -> None:
    signing.granted(land)
    standing_verdict(land.version)
    with service_transaction("test"):
        for number in range(30):
            subject = apply_register_subject(actor=world.ACTOR, key=f"model-{number}", kind="model", candidate=True)
            apply_register_subject_version(actor=world.ACTOR, subject=subject, pin={"snapshot": number})
    world.judge_all()
    kept = set(Verdict.objects.values_list("pk", flat=True))
    size = 8
    round_of_days = (1 << max(kept).bit_length()) // (size // 2)
    seen: set[int] = set()
    for day in range(round_of_days):
        sample = sampled_verdict_ids(size, at=now() + timedelta(days=day))
        assert len(sample) == len(set(sample)) == size
        # The newest fill what is left over: they alone would never be all.
        seen |= set(sample)
    assert seen == kept


def test_the_task_goes_on_where_it_stopped(land: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[int]] = []
    monkeypatch.setattr(tasks, "REPLAY_SECONDS", 0.0)
    monkeypatch.setattr("compliance.services.replays.AT_ONCE", 1)
    monkeypatch.setattr(tasks.replay_verdicts, "delay", sent.append)
    ids = [verdict.pk for verdict in Verdict.objects.all()]
    assert tasks.replay_verdicts([*ids, *ids]) == 2 * len(ids) - 1
    assert sent == [[*ids, *ids][1:]]
    assert tasks.replay_verdicts(sent[0][-1:]) == 0


def command(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("verdict", "replay", *arguments, stdout=out, stderr=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_the_command_replays_what_it_is_told_to(land: signing.Ground, owner_connection) -> None:
    verdict = standing_verdict(land.version)
    assert command(str(verdict.uid)) == (
        0,
        f"{verdict.uid}  same  {verdict.policy_version.policy.name}@1 on model-a@1 in {verdict.domain}\n1 same\n",
    )
    everything = Verdict.objects.count()
    assert command("--all") == (0, f"{everything} same\n")
    assert command("--sample", "1") == (0, "1 same\n")
    code, told = command()
    assert (code, "--all or --sample N" in told) == (2, True)
    code, told = command("00000000-0000-4000-8000-000000000000")
    assert (code, "there is no verdict" in told) == (2, True)
    assert command("--sample", "0")[0] == 2
    judgement(owner_connection(), verdict)
    code, told = command("--all")
    assert code == 1
    assert f"{verdict.uid}  mismatched" in told
    assert "1 mismatched" in told
    assert "  judgement: the stored judgement is not what facts and policy give\n" in told
    assert LedgerEntry.objects.filter(action="verdict.mismatched").count() == 1


def test_the_api_replays_and_notes(land: signing.Ground, owner_connection) -> None:
    verdict = standing_verdict(land.version)
    secret = create_token(actor=world.ACTOR, name="reader", scopes=["read"], person=land.asker.person).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    path = f"/api/v1/verdicts/{verdict.uid}/replay"
    before = LedgerEntry.objects.count()
    done = client.post(path).json()
    assert (done["outcome"], done["same"], done["differs"], done["trouble"]) == ("same", True, [], "")
    assert done["core_digest"] == done["replayed_digest"] == verdict.core_digest
    assert done["replayed"] == json.loads(bytes(verdict.core))
    assert LedgerEntry.objects.count() == before
    facts_garbled(owner_connection(), verdict)
    done = client.post(path).json()
    assert (done["outcome"], done["same"], done["replayed"], done["replayed_digest"]) == ("mismatched", False, None, None)
    assert set(done["differs"]) == {"facts_document", "judgement"}
    assert done["trouble"]
    entry = LedgerEntry.objects.get(action="verdict.mismatched")
    assert entry.actor.startswith("service:")
    assert client.post("/api/v1/verdicts/00000000-0000-4000-8000-000000000000/replay").status_code == 404


def test_a_key_of_a_replay_is_good_for_the_same_replay_alone(land: signing.Ground) -> None:
    world.propose(name="other")
    world.judge_all()
    first, second = Verdict.objects.order_by("pk")[:2]
    secret = create_token(actor=world.ACTOR, name="reader", scopes=["read"], person=land.asker.person).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})

    def replay(verdict: Verdict, key: str) -> tuple[int, dict[str, object]]:
        answer = client.post(f"/api/v1/verdicts/{verdict.uid}/replay", headers={"Idempotency-Key": key})
        return answer.status_code, answer.json()

    status, told = replay(first, "night-1")
    assert (status, told["outcome"]) == (200, "same")
    assert replay(first, "night-1") == (status, told)
    status, told = replay(second, "night-1")
    assert (status, told["code"]) == (409, "idempotency_key_reused")
    assert replay(second, "night-2")[0] == 200
    assert replay(second, "no key")[0] == 400


def test_the_page_replays_by_a_button_and_shows_what_was_found(land: signing.Ground, owner_connection) -> None:
    auditor = signing.human("Au Ditor", Role.AUDITOR)
    auditor.is_staff = True
    client = Client()
    client.force_login(auditor)
    verdict = standing_verdict(land.version)
    page, act = f"/admin/policies/verdict/{verdict.pk}/change/", f"/admin/policies/verdict/{verdict.pk}/replay/"
    assert f'action="{act}"' in client.get(page).content.decode()
    assert client.get(act).status_code == 405
    assert "it comes out the same, byte for byte" in client.post(act, follow=True).content.decode()
    judgement_garbled(owner_connection(), verdict)
    shown = client.post(act, follow=True).content.decode()
    assert "It does not match: the stored judgement is not what facts and policy give" in shown
    assert "first found" in shown
    assert client.post("/admin/policies/verdict/999999/replay/").status_code == 404


def test_what_was_pruned_says_so_unless_it_stands(land: signing.Ground, owner_connection) -> None:
    old = standing_verdict(land.version)
    world.submit(
        world.submission("model-a", world.observation("95"), run={"status": "complete", "ended_at": "2026-11-02T00:00:00Z"}),
        "newer.json",
    )
    world.judge_all()
    assert standing_verdict(land.version).pk != old.pk
    facts_emptied(owner_connection(), old)
    code, told = command(str(old.uid))
    assert (code, VerdictReplay.PRUNED in told) == (0, True)
    assert not VerdictMismatch.objects.exists()
    overwrite(owner_connection(), "policies_factsdocument", old.facts_id, {"content": bytes(old.facts.content)})
