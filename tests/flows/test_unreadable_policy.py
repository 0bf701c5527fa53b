"""The stored text of a policy in force is changed past every door: an incident, told once; it denies, and stops nothing else."""

import json

import pytest
from django.test import Client

from compliance import tasks
from compliance.models import LedgerEntry, OutboxMessage
from compliance.selectors.deciding import in_force
from compliance.selectors.metrics import read_gauges
from compliance.selectors.population import population_report
from compliance.services.drift import review_grants
from compliance.services.sign_offs import NotCleared
from compliance.vocabulary import GrantStatus, Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from policies.models import PolicyVersion, UnreadableVersion
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, codes_of
from tests.support.tampering import overwrite

TAMPERED: dict[str, tuple[bytes, bytes, bool, list[str]]] = {
    "another text": (b"at_least: 75", b"at_least: 15", False, ["policy_tampered"]),
    "a text that is none, digest and all": (b"at_least: 75", b"at_least: NaN", True, ["number"]),
}


@pytest.fixture
def land(committed_db) -> signing.Ground:
    return signing.ground()


@pytest.fixture
def other(land: signing.Ground) -> PolicyVersion:
    """A second policy in force over the same writes, which passes as well."""
    version = signing.policy_in_force("second", bar=75)
    world.judge_all()
    return version


def tamper(owner, version: PolicyVersion, case: str = "another text") -> None:
    old, new, digest_too, _ = TAMPERED[case]
    text = bytes(version.text).replace(old, new)
    assert text != bytes(version.text)
    overwrite(owner, "policies_policyversion", version.pk, {"text": text, **({"digest": digest_of(text)} if digest_too else {})})


def restore(owner, version: PolicyVersion) -> None:
    overwrite(owner, "policies_policyversion", version.pk, {"text": bytes(version.text), "digest": version.digest})


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("case", TAMPERED)
def test_it_is_an_incident_noted_and_told_once(
    land: signing.Ground, other: PolicyVersion, owner_connection, settings, case: str
) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:1?from=gate@example.org"
    approver = signing.human("Paula Approver", Role.POLICY_APPROVER)
    auditor = signing.human("Au Ditor", Role.AUDITOR)
    client = Client()
    client.force_login(auditor)
    page = f"/admin/policies/policyversion/{other.pk}/change/"
    assert tasks.watch_policies() == 0
    assert "cannot be read" not in shown(client, "/admin/") + shown(client, page)

    owner = owner_connection()
    tamper(owner, other, case)
    assert tasks.watch_policies() == 1
    found = UnreadableVersion.objects.get()
    assert (found.version_id, found.codes, found.found_by) == (other.pk, TAMPERED[case][3], "system_job:watch-policies")
    entry = LedgerEntry.objects.get(action="policy_version.found_unreadable")
    assert (entry.target_id, json.loads(bytes(entry.content))["new"]["codes"]) == ("second@1", found.codes)
    told = OutboxMessage.objects.filter(kind="policy_unreadable")
    people = {message.person_id for message in told}
    assert {land.security.person_id, approver.person_id} <= people
    assert {land.asker.person_id, land.owner.person_id, auditor.person_id}.isdisjoint(people)
    assert {message.event_type for message in told} == {"org.writegate.policy.unreadable.v1"}
    (line,) = [line for line in population_report() if line.table == "policies_unreadableversion"]
    assert (line.rows, line.events, line.differing) == (1, 1, 0)
    assert read_gauges(at=now()).unreadable == 1

    assert "A policy in force cannot be read: <a" in shown(client, "/admin/")
    assert "Found unreadable, newest first" in shown(client, page)
    before = told.count()
    assert tasks.watch_policies() == 0
    assert (told.count(), LedgerEntry.objects.filter(action="policy_version.found_unreadable").count()) == (before, 1)

    restore(owner, other)
    assert "cannot be read" not in shown(client, "/admin/")
    assert tasks.watch_policies() == 0
    assert "Found unreadable, newest first" in shown(client, page)


def test_the_gate_denies_until_the_text_is_back_and_no_longer(
    land: signing.Ground, other: PolicyVersion, owner_connection
) -> None:
    signing.granted(land)
    token = ask_token(land.asker)
    assert ask_gate(token).judgement.allowed
    owner = owner_connection()
    tamper(owner, other)
    # Another process, which has compiled nothing yet.
    in_force._kept.cache_clear()
    assert codes_of(ask_gate(token)) == ["policy_unreadable"]
    restore(owner, other)
    assert ask_gate(token).judgement.allowed


def test_dossiers_are_read_and_not_signed_and_grants_stay(land: signing.Ground, other: PolicyVersion, owner_connection) -> None:
    grant = signing.granted(land)
    request = signing.ask(land, days=30)
    client = Client()
    client.force_login(land.security)
    owner = owner_connection()
    tamper(owner, other)

    tasks.refresh_requests([land.version.pk], [])
    assert review_grants(actor=system_job("drift-check"), grant_ids=[grant.pk]).suspended == 0
    assert "which is in force, cannot be read" in shown(client, f"/admin/compliance/signoffrequest/{request.pk}/change/")
    with pytest.raises(NotCleared) as refused:
        signing.sign(land.security, request)
    assert [item["code"] for item in refused.value.facts["obstacles"]] == ["policy_unreadable"]
    restore(owner, other)
    tasks.refresh_requests([land.version.pk], [])
    signing.sign(land.owner, request)
    signing.sign(land.security, request)
    grant.refresh_from_db()
    assert grant.status == GrantStatus.ACTIVE
