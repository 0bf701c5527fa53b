"""Proposing, signing and reading sources of one's own and the trust in them in the console."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import SignOffRequest, User
from compliance.vocabulary import RequestStatus, Role
from evaluations.models import Evidence, Source
from tests.compliance.admin.test_definitions import signed_in, signs, text_of
from tests.support import signing, world
from tests.support.definitions import SOURCE, ask_source, stewards
from tests.support.sources import scheduled

pytestmark = pytest.mark.django_db
SOURCES, ASK = reverse("admin:evaluations_source_changelist"), reverse("admin:compliance_signoffrequest_ask_source")
FORM = {"source": SOURCE["key"], **{name: text for name, text in SOURCE.items() if name != "key"}, "reason": "our own lab"}


@pytest.fixture
def people() -> list[User]:
    world.register("model-a")
    return stewards()


def page_of(client: Client, key: str) -> str:
    return text_of(client.get(reverse("admin:evaluations_source_change", args=[Source.objects.get(key=key).pk])))


def test_a_source_is_proposed_by_the_form_signed_on_its_page_and_told_with_its_signers(people: list[User]) -> None:
    client = signed_in(people[0])
    assert ASK in client.get(SOURCES).content.decode()
    filed = client.post(ASK, {**FORM, "key": "once"}, follow=True)
    request = SignOffRequest.objects.get()
    told = text_of(filed)
    for part in (
        "Shall the source acme-evals be trusted as secondary, until now not at all?",
        "Source acme-evals as secondary, trusted by nobody until now",
        "It is new",
        f"Address {SOURCE['url']}",
        "Until now nobody trusts it",
        "Evidence none yet",
    ):
        assert part in told
    assert f'href="{SOURCE["url"]}"' not in filed.content.decode()
    assert client.post(ASK, {**FORM, "key": "once"}).status_code == 302
    assert SignOffRequest.objects.count() == 1
    assert SOURCE["key"] in client.get(reverse("admin:compliance_signoffrequest_changelist")).content.decode()
    signs(people[1], request)
    assert request.reload().status == RequestStatus.COMPLETED
    told = page_of(signed_in(people[2]), SOURCE["key"])
    for part in ("Trust now secondary", "Proposed by Stella One", "Signed by Stella Two", "Because our own lab"):
        assert part in told
    assert "It came with the product: nobody signed it here." in page_of(client, "lab")


def test_another_trust_begins_at_the_one_that_stands_and_shows_whose_bar_lies_between(people: list[User]) -> None:
    text = world.ONE_RULE.format(name="asks-more", bar=80).replace("min_trust: archive", "min_trust: independent")
    world.propose_text(text.encode())
    world.submit(world.submission("model-a", world.observation("91")))
    client = signed_in(people[0])
    lab = Source.objects.get(key="lab")
    assert f"{ASK}?source=lab" in client.get(reverse("admin:evaluations_source_change", args=[lab.pk])).content.decode()
    html = client.get(ASK, {"source": "lab"}).content.decode()
    assert "Propose another trust in Lab" in html
    (chosen,) = re.findall(r'<input type="radio"[^>]*value="(\w+)"[^>]*checked', html)
    assert chosen == "independent"
    form = {"source": "lab", "tier": "archive", "reason": "it copied numbers", "key": "k"}
    told = text_of(client.post(ASK, form, follow=True))
    for part in ("It is registered already", "Trusted as archive", "Until now independent", "the two: asks-more", "dispute it"):
        assert part in told
    evidence = reverse("admin:evaluations_evidence_changelist")
    request = SignOffRequest.objects.get()
    html = client.get(reverse("admin:compliance_signoffrequest_change", args=[request.pk])).content.decode()
    assert f"{evidence}?source__id__exact={lab.pk}" in html
    assert Evidence.objects.filter(source=lab).exists()


def test_what_is_refused_is_said_beside_its_field_and_nothing_is_filed(people: list[User]) -> None:
    client = signed_in(people[0])
    answer = client.post(ASK, {**FORM, "source": "Acme", "url": "http://x", "key": "once"})
    assert answer.status_code == 422
    assert "U+0041 LATIN CAPITAL LETTER A" in answer.context["form"].errors["source"][0]
    assert "no https address" in answer.context["form"].errors["url"][0]
    answer = client.post(ASK, {**FORM, "tier": "gold", "key": "once"})
    assert answer.context["form"].errors["tier"]
    answer = client.post(ASK, {**FORM, "source": "lab", "key": "once"})
    assert "registered with another title" in text_of(answer)
    assert not SignOffRequest.objects.exists()


def test_whoever_stands_behind_a_source_sees_that_another_signs_its_higher_tier(people: list[User]) -> None:
    scheduled("https://example.org/board.json", actor=signing.actor_of(people[1]))
    request = ask_source(people[0], key="lab", title="", publisher="", url="", tier="reproduced")
    page = reverse("admin:compliance_signoffrequest_change", args=[request.pk])
    told = text_of(signed_in(people[1]).get(page))
    assert "Stella Two" in told
    assert "stands behind what the source has handed in" in told
    assert "I approve" not in told
    assert "I approve" in text_of(signed_in(people[2]).get(page))


def test_whoever_is_no_steward_is_told_so_and_sees_no_way_to_a_request_of_others(people: list[User]) -> None:
    request = ask_source(people[0])
    signing.sign(people[1], request)
    other = signed_in(signing.human("Otto Other", Role.POLICY_AUTHOR))
    answer = other.post(ASK, {**FORM, "source": "another", "key": "once"})
    assert (answer.status_code, "needs the role evidence_steward" in text_of(answer)) == (422, True)
    row = Source.objects.get(key=SOURCE["key"])
    html = other.get(reverse("admin:evaluations_source_change", args=[row.pk])).content.decode()
    assert "Stella Two" in html
    assert f"/signoffrequest/{request.pk}/" not in html


def test_the_empty_page_of_sources_says_how_one_is_added() -> None:
    reader = signed_in(signing.human("Rita Reader", Role.EVIDENCE_STEWARD))
    html = reader.get(SOURCES).content.decode()
    assert "An evidence steward proposes one" in html
    assert ASK in html
