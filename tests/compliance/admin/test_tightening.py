"""Bindings in the console: what is tightened at a system and by whom, and asking for another, with old and new shown first."""

from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from compliance.models import SignOffRequest
from compliance.vocabulary import RequestKind, RequestStatus, Role
from policies.models import Binding, PolicyVersion
from policies.selectors.bindings import numbers_of
from policies.services.systems import register_system
from tests.compliance.admin.test_definitions import signed_in, signs, text_of
from tests.support import signing, world
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
PARAMS = {
    "  evidence:\n": "  params: {least: 80, most: 5}\n  evidence:\n",
    "at_least: 80": "at_least: {param: least}",
    "at_most: 5": "at_most: {param: most}",
}


@pytest.fixture
def policy(land: Ground) -> PolicyVersion:
    """A version in force with a floor of 80 and a ceiling of 5, in the place of the ground's own, and people to sign a binding."""
    for name in ("Paul", "Petra"):
        signing.human(f"{name} Approver", Role.POLICY_APPROVER)
    signing.human("Oda Owner", Role.SYSTEM_OWNER, team="hr")
    version = signing.fit_draft(signing.human("Alice Author", Role.POLICY_AUTHOR), bar=80, **PARAMS)
    world.activate(version)
    return version


def system_page(land: Ground) -> str:
    return reverse("admin:policies_system_change", args=[land.system.pk])


def ask_page(land: Ground, policy: PolicyVersion) -> str:
    return reverse("admin:compliance_signoffrequest_ask_binding", args=[land.system.pk, policy.policy_id])


def form(least: str = "", most: str = "", where: str = "system", **more: str) -> dict[str, str]:
    return {"param:least": least, "param:most": most, "where": where, "reason": "payroll", "key": "once", **more}


def asked() -> QuerySet[SignOffRequest]:
    """Return what the forms of these tests asked for."""
    return SignOffRequest.objects.filter(kind=RequestKind.BINDING, reason="payroll")


def seen_in(answer) -> str:
    return str(answer.context["form"]["seen"].value())


def test_the_page_of_a_system_leads_to_the_policies_that_can_be_tightened(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.owner)
    told = text_of(client.get(system_page(land)))
    assert "Every policy counts here with its own numbers" in told
    choose = reverse("admin:compliance_signoffrequest_ask_binding_at", args=[land.system.pk])
    assert f'href="{choose}"' in client.get(system_page(land)).content.decode()
    html = client.get(choose).content.decode()
    assert "least 80, most 5" in html
    assert f'href="{ask_page(land, policy)}"' in html
    told = text_of(client.get(ask_page(land, policy)))
    for part in ("may only go up, to 100", "may only go down, to 0", "at Workday production alone", "every system of the domain"):
        assert part in told


def test_old_and_new_are_shown_before_anything_is_asked_and_signatures_then_bind(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.owner)
    shown = client.post(ask_page(land, policy), form(least="95"))
    assert shown.status_code == 200
    assert "least 80 the policy's own → 95 80 → 95" in text_of(shown).replace("&#x27;", "'")
    assert "Ask for signatures" in shown.content.decode()
    assert not asked().exists()
    filed = client.post(ask_page(land, policy), form(least="95", seen=seen_in(shown)), follow=True)
    request = asked().get()
    assert filed.redirect_chain[-1][0] == reverse("admin:compliance_signoffrequest_change", args=[request.pk])
    assert "it is asked for" in filed.content.decode().lower()
    assert not Binding.objects.exists()
    for signer in ("Paul Approver", "Petra Approver", "Sven Security", "Oda Owner"):
        signs(signing.User.objects.get(email=f"{signer.lower().replace(' ', '.')}@example.org"), request)
    assert request.reload().status == RequestStatus.COMPLETED
    assert numbers_of(Binding.objects.get()) == {"least": 95}
    told = text_of(client.get(system_page(land)))
    for part in ("two-keys v2 least 80 → 95 this system Oda Owner", "binding: two-keys"):
        assert part in told
    other = text_of(signed_in(signing.human("Stan Stranger", Role.REQUESTER)).get(system_page(land)))
    assert "80 → 95" in other
    assert "one that you do not see" in other


def test_what_was_not_shown_is_not_asked_for(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.owner)
    seen = seen_in(client.post(ask_page(land, policy), form(least="95")))
    for changed in (form(least="96", seen=seen), form(least="95", where="domain", seen=seen)):
        answer = client.post(ask_page(land, policy), changed)
        assert answer.status_code == 422
        assert "Below is what changes now." in text_of(answer)
    world.bind(policy.policy, system=land.system, least=90)
    moved = client.post(ask_page(land, policy), form(least="95", seen=seen))
    assert "least 80 90 → 95 90 → 95" in text_of(moved)
    assert not asked().exists()
    assert client.post(ask_page(land, policy), form(least="95", seen=seen_in(moved))).status_code == 302


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"least": "75"}, "`least` is 75, looser than the policy's 80: it may only go up."),
        ({"most": "7"}, "`most` is 7, looser than the policy's 5: it may only go down."),
        ({"least": "101"}, "`least` is 101: the metric goes from 0 to 100."),
        ({"least": "a lot"}, "decimal"),
        ({}, "A binding without parameters tightens nothing"),
    ],
)
def test_what_is_looser_or_no_number_is_refused_in_the_policy_s_own_words(
    land: Ground, policy: PolicyVersion, given: dict[str, str], told: str
) -> None:
    answer = signed_in(land.owner).post(ask_page(land, policy), form(**given))
    assert answer.status_code == 422
    assert told in " ".join(str(problem) for problems in answer.context["form"].errors.values() for problem in problems)
    assert not asked().exists()


def test_whoever_may_not_ask_is_told_which_roles_may(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.asker)
    seen = seen_in(client.post(ask_page(land, policy), form(least="95")))
    answer = client.post(ask_page(land, policy), form(least="95", seen=seen))
    assert answer.status_code == 422
    assert "system_owner" in text_of(answer)
    assert not asked().exists()
    assert Client().get(ask_page(land, policy)).status_code == 302


def test_of_a_system_s_number_and_its_domain_s_the_stricter_counts_and_both_are_shown(
    land: Ground, policy: PolicyVersion
) -> None:
    world.bind(policy.policy, domain="hr", least=90, most=5)
    world.bind(policy.policy, system=land.system, least=85, most=3)
    client = signed_in(land.owner)
    told = text_of(client.get(system_page(land)))
    for part in ("least 80 → 90 the domain", "least 80 → 90; 85 is stated this system", "most 5 → 3 this system"):
        assert part in told
    assert 'value="85"' in client.get(ask_page(land, policy)).content.decode()
    dropped = text_of(client.post(ask_page(land, policy), form(least="95")))
    assert "least 80 85 → 95 90 → 95" in dropped
    assert "most 5 3 → the policy's own 3 → 5" in dropped.replace("&#x27;", "'")
    same = client.post(ask_page(land, policy), form(least="85", most="3"))
    assert "nothing would change" in text_of(same)


def test_signers_are_shown_what_a_binding_leaves_out(land: Ground, policy: PolicyVersion) -> None:
    world.bind(policy.policy, system=land.system, least=85, most=3)
    client = signed_in(land.owner)
    seen = seen_in(client.post(ask_page(land, policy), form(least="95")))
    told = text_of(client.post(ask_page(land, policy), form(least="95", seen=seen), follow=True)).replace("&#x27;", "'")
    assert "least 80 85 95" in told
    assert "most 5 3 the policy's own again" in told


def test_what_is_not_there_or_has_no_parameters_is_not_found(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.owner)
    for args in ((0, policy.policy_id), (land.system.pk, 0)):
        assert client.get(reverse("admin:compliance_signoffrequest_ask_binding", args=args)).status_code == 404
    assert client.get(reverse("admin:compliance_signoffrequest_ask_binding_at", args=[0])).status_code == 404


def test_many_bindings_take_as_many_queries_as_one(land: Ground, policy: PolicyVersion) -> None:
    client = signed_in(land.owner)

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get(system_page(land)).status_code == 200
        return len(found)

    world.bind(policy.policy, system=land.system, least=85)
    few = queries()
    for number in range(86, 96):
        world.bind(policy.policy, system=land.system, least=number, most=Decimal(3))
    other = register_system(actor=world.ACTOR, key="hr-test", title="Test", domain="hr", owner="hr")
    world.bind(policy.policy, system=other, least=99)
    world.bind(policy.policy, domain="hr", least=90)
    assert queries() == few
