"""The whole story over HTTP, nothing patched: from a published number to a grant, its suspension, its renewal, and the proof."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from django.core.management import call_command

from compliance.management.visitor import Visitor, own_server
from compliance.models import Grant, GrantEvent, SignOffRequest
from compliance.services.people import create_token
from compliance.vocabulary import GrantStatus, RequestKind, RequestStatus, Role
from evaluations.kernel.clock import now
from policies.models import Verdict
from policies.services.systems import register_system
from tests.support import signing, world

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
ASK = "/admin/compliance/signoffrequest"


@pytest.fixture
def address(committed_db: None, run_tasks_inline: None) -> Iterator[str]:
    with own_server() as served:
        yield served


def enter(address: str, account: signing.User) -> Visitor:
    """Sign somebody in at the console; she adds an authenticator app there."""
    visitor = Visitor(address, email=account.email, password=signing.PASSWORD)
    visitor.sign_in()
    visitor.add_authenticator()
    return visitor


def publish(address: str, token: str, value: str, ended_at: str) -> None:
    """Hand in evidence as a pipeline does."""
    body = world.submission("model-a", world.observation(value), run={"status": "complete", "ended_at": ended_at})
    answer = requests.post(f"{address}/api/v1/evidence", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert answer.status_code == 201, answer.text


def sign_both(signers: tuple[Visitor, Visitor], request: SignOffRequest) -> None:
    page = f"{ASK}/{request.pk}/change/"
    for visitor in signers:
        visitor.prove(page)
        visitor.submit(page, having="meaning", meaning="approved", reason="read and agreed")
    assert request.reload().status == RequestStatus.COMPLETED


def test_from_evidence_to_grant_to_suspension_to_renewal_to_proof(address: str, tmp_path: Path) -> None:
    (version,) = world.register("model-a")
    system = register_system(actor=world.ACTOR, key="hr-prod", title="Workday production", domain="hr", owner="hr")
    signing.policy_in_force()
    asker = signing.human("Rita Asker", Role.REQUESTER, team="apps", second_factor=False)
    owner = signing.human("Olga Owner", Role.SYSTEM_OWNER, team="hr", second_factor=False)
    security = signing.human("Sven Security", Role.SECURITY, team="sec", second_factor=False)
    steward = signing.human("Edda Evidence", Role.EVIDENCE_STEWARD, second_factor=False)
    token = create_token(
        actor=world.ACTOR, name="ci", scopes=["submit_evidence"], person=steward.person, expires_at=now() + timedelta(days=1)
    ).secret

    # Evidence, and at once the verdict.
    publish(address, token, "91", "2026-11-01T00:00:00Z")
    assert Verdict.objects.filter(subject_version=version).latest("id").outcome == "pass"

    # A request, two signatures, a grant.
    asking = enter(address, asker)
    signers = (enter(address, owner), enter(address, security))
    asking.submit(
        f"{ASK}/ask/access/",
        having="subject_version",
        subject_version=version.pk,
        systems=[system.pk],
        actions="write",
        ends_at=f"{now() + timedelta(days=60):%Y-%m-%dT%H:%M}",
        reason="the nightly sync needs it",
    )
    request = SignOffRequest.objects.get(kind=RequestKind.GRANT)
    assert "Workday production" in signers[0].read("/admin/")
    sign_both(signers, request)
    grant = Grant.objects.get()
    assert grant.status == GrantStatus.ACTIVE

    # News below the bar: suspended within the same task run, once, and the console says why.
    publish(address, token, "53.9", "2026-11-10T00:00:00Z")
    assert grant.reload().status == GrantStatus.SUSPENDED
    assert list(GrantEvent.objects.filter(grant=grant).values_list("move", "cause")) == [
        ("made", "signed"),
        ("suspended", "verdict_failed"),
    ]
    page = signers[0].read(f"/admin/compliance/grant/{grant.pk}/change/")
    assert "suspended" in page
    assert "53.9" in page

    # Better news alone brings nothing back; a renewal that both sign does, in one instant.
    publish(address, token, "94", "2026-11-20T00:00:00Z")
    assert grant.reload().status == GrantStatus.SUSPENDED
    asking.submit(
        f"{ASK}/ask/renewal/{grant.pk}/",
        having="ends_at",
        ends_at=f"{now() + timedelta(days=60):%Y-%m-%dT%H:%M}",
        reason="the new run clears the bar again",
    )
    renewal = SignOffRequest.objects.get(kind=RequestKind.RENEWAL)
    sign_both(signers, renewal)
    successor = Grant.objects.get(renews=grant)
    assert (successor.status, grant.reload().status, grant.cause) == (GrantStatus.ACTIVE, GrantStatus.EXPIRED, "renewed")

    # The export tells it all, and verifies without us.
    file = tmp_path / "trail.zip"
    call_command("export_audit", "--out", str(file), stdout=io.StringIO())
    checked = subprocess.run(
        [sys.executable, "-m", "compliance.client", "verify", str(file)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    told = actions_in(file)
    wanted = [
        "evidence.recorded",
        "verdict.recorded",
        "request.filed",
        "sign_off.given",
        "sign_off.given",
        "grant.made",
        "request.completed",
        "verdict.recorded",
        "grant.suspended",
        "request.filed",
        "sign_off.given",
        "grant.expired",
        "grant.made",
        "request.completed",
    ]
    left = iter(told)
    assert all(action in left for action in wanted), told


def actions_in(file: Path) -> list[str]:
    """Return the actions of an export's entries, in the order of their indexes."""
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("entries.jsonl"))
        lines = archive.read(name).decode().splitlines()
    return [json.loads(line)["action"] for line in lines]
