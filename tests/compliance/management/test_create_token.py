"""`manage.py create_token`: the secret once, and a word about a system that is not there."""

import pytest
from django.core.management import call_command

from compliance.models import ServiceToken
from compliance.services.people import create_person, token_digest
from evaluations.kernel.actor import system_job
from policies.services.systems import register_system

ACTOR = system_job("test")

pytestmark = pytest.mark.django_db


def test_a_scope_for_a_system_that_is_not_registered_is_told_and_made(capsys: pytest.CaptureFixture[str]) -> None:
    create_person(actor=ACTOR, name="Ada", email="ada@example.org", is_superuser=True)
    register_system(actor=ACTOR, key="hr-prod", title="HR", domain="hr", environment="production", reversible=True, owner="")
    call_command("create_token", "deploy", "--scope", "read", "decide:hr-prod", "decide:hr-prdo")
    out, err = capsys.readouterr()
    assert err == "No system `hr-prdo` is registered yet: until one is, the token does nothing there.\n"
    assert ServiceToken.objects.get().token_digest == token_digest(out.split()[-1])
