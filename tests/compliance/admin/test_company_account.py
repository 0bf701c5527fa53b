"""Signing in by the company's issuer: it opens an account that is there already, and makes none."""

import json
import socket
import subprocess
import sys

import pytest
from allauth.socialaccount.models import SocialAccount

from compliance.models import LedgerEntry, User
from compliance.selectors.population import population_report
from compliance.services.accounts import deactivate_account
from compliance.services.people import create_person
from evaluations.kernel.actor import person, system_job
from tests.compliance.admin.world import EMAIL, PASSWORD, build_person
from tests.support import cluster as clusters
from tests.support.process import ROOT, clean_environment


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def sign_in_as(committed_db: clusters.Database, tmp_path):
    """Run the story, each sign-in with what the issuer says of the person; returns what came of each."""

    def run(*claims: dict) -> list[dict]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.company_story", json.dumps(claims)],
            cwd=ROOT,
            env=clean_environment(
                WRITEGATE_DATA_DIR=str(tmp_path),
                WRITEGATE_OIDC_ISSUER=f"http://127.0.0.1:{free_port()}",
                WRITEGATE_OIDC_CLIENT_ID="writegate",
                WRITEGATE_OIDC_CLIENT_SECRET="made-up",
                DATABASE_URL=committed_db.roles.runtime_url,
                DATABASE_OWNER_URL=committed_db.roles.owner_url,
                DJANGO_SETTINGS_MODULE="compliance.settings",
            ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def said(email: str, *, verified: bool = True, sub: str = "1", **more: str) -> dict:
    return {"sub": sub, "email": email, "email_verified": verified, **more}


@pytest.mark.slow
def test_a_verified_address_opens_its_account_and_nothing_else_does(sign_in_as) -> None:
    ada = build_person()
    closed = build_person(email="closed@example.org")
    root = create_person(actor=system_job("test"), name="Root", email="root@example.org", roles=["administrator"])
    deactivate_account(actor=person(root.person_id), user=closed, reason="left")
    outcomes = sign_in_as(
        said(EMAIL.upper()),
        said(EMAIL),
        said(EMAIL, verified=False, sub="2"),
        said("stranger@example.org", sub="3"),
        said("closed@example.org", sub="4"),
        # Once known by her number, she is still known by her address alone: the company gave the number to somebody else.
        said("stranger@example.org", sub="1"),
        said("root@example.org", sub="5", process="connect"),
    )
    assert [outcome["in"] for outcome in outcomes] == [True, True, False, False, False, False, False]
    assert all(outcome["issuer"].endswith("/authorization_endpoint") for outcome in outcomes)
    assert User.objects.count() == 3, "nobody signs up"
    assert SocialAccount.objects.filter(user=ada, uid="1").count() == 1
    started = [json.loads(bytes(entry.content))["new"] for entry in LedgerEntry.objects.filter(action="session.started")]
    assert [item["methods"] for item in started] == [["socialaccount"]] * 2
    assert LedgerEntry.objects.filter(action="session.refused").count() == 5
    assert LedgerEntry.objects.filter(action="company_account.connected").count() == 1
    assert User.objects.get(pk=ada.pk).check_password(PASSWORD), "her own password stays"
    assert SocialAccount.objects.get().extra_data == {}, "nothing that the company says about her is kept"
    assert not [line for line in population_report() if line.differing]
