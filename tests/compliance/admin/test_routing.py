"""Routes in the console: what gateways serve, by which path each reaches what is not cleared, for whom, and reconciling it."""

import re
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from compliance.models import LedgerEntry, RoutingInventory, ServiceBeat, User
from compliance.services.routing import reconcile_routes
from compliance.vocabulary import Role
from evaluations.models import Subject, SubjectVersion
from evaluations.services.subjects import assign_alias
from policies.services.systems import register_system
from tests.compliance.admin.test_definitions import signed_in, text_of
from tests.support import routing, signing, world
from tests.support.undoing import undone

pytestmark = pytest.mark.django_db
LIST, RECONCILE = (reverse(f"admin:compliance_routinginventory_{word}") for word in ("changelist", "reconcile"))
GROUPS = {"steady": "lab/a", "hasty": ["lab/a", "lab/b"], "stranger": "lab/nobody", "any/*": "any/*"}
TO_HASTY = {"fallbacks": [{"steady": ["hasty"]}]}


@pytest.fixture(autouse=True)
def _mails(settings) -> None:
    settings.NOTICE_MAIL_URL = "mailto://127.0.0.1:9?from=gate@example.org"


@pytest.fixture(scope="module")
def _module_land(django_db_setup: None, django_db_blocker) -> Iterator[signing.Ground]:
    """The ground, whose own model is `lab/a` in every gateway and granted, beside `lab/b`, which is not."""
    with django_db_blocker.unblock(), undone():
        found = signing.ground("91")
        routing.models("a", "b")
        routing.grant_for(found, found.version)
        yield found


@pytest.fixture
def land(_module_land: signing.Ground, db: None) -> signing.Ground:
    return _module_land


def inventory(**router: object) -> RoutingInventory:
    return routing.hand_in(routing.gateway(GROUPS, **router), name="prod-gateway").inventory


def page(row: RoutingInventory, word: str = "change") -> str:
    return reverse(f"admin:compliance_routinginventory_{word}", args=[row.pk])


def administrator() -> User:
    return signing.human("Ada Admin", Role.ADMINISTRATOR)


def shown(client: Client, row: RoutingInventory, **query: str) -> dict[str, str]:
    """Return by name what a page tells of each route."""
    html = client.get(page(row), query).content.decode()
    article = r'<article class="wg-rule wg-policy">\s*<div class="wg-rule-head"><h4><code>(.*?)</code>(.*?)</article>'
    found = re.findall(article, html, re.S)
    symbols = r'<span class="material[^>]*>[^<]*</span>|<[^>]+>'
    return {name: " ".join(re.sub(symbols, " ", rest).split()) for name, rest in found}


def queries(client: Client, address: str, **query: str) -> int:
    with CaptureQueriesContext(connection) as found:
        assert client.get(address, query).status_code == 200
    return len(found)


def test_the_empty_list_says_how_an_inventory_is_handed_in(land: signing.Ground) -> None:
    answer = signed_in(land.security).get(LIST)
    html = answer.content.decode()
    for part in ("Nobody has handed in what a gateway serves.", "manage.py import_routes config.yaml", "/api/v1/routing"):
        assert part in html
    assert "Reconcile now" not in html
    assert f'href="{LIST}"' in html


def test_the_list_shows_what_is_in_effect_and_on_demand_what_was_replaced(land: signing.Ground) -> None:
    first, second = inventory(), inventory(**TO_HASTY)
    routing.hand_in(b"openrouter_routes:\n  desk: {model: lab/a}\n")
    client = signed_in(land.security)
    rows = {row.name: row for row in client.get(LIST).context["cl"].result_list}
    assert (rows["prod-gateway"].pk, set(rows)) == (second.pk, {"prod-gateway", "openrouter"})
    assert rows["prod-gateway"].shown_counts == (4, 1)
    html = client.get(LIST).content.decode()
    for part in ("LiteLLM", "OpenRouter", "4, of which 1 open", "in effect", "no path", "1 path, last"):
        assert part in html
    listed = [row.pk for row in client.get(LIST, {"effect": "replaced"}).context["cl"].result_list]
    assert listed == [first.pk]
    assert len(client.get(LIST, {"effect": "every"}).context["cl"].result_list) == 3
    assert "no longer" in client.get(LIST, {"effect": "replaced"}).content.decode()


def test_a_page_shows_what_answers_behind_each_name_and_for_what_all_of_it_is_granted(land: signing.Ground) -> None:
    row = inventory()
    told = shown(signed_in(land.security), row)
    assert list(told) == ["steady", "hasty", "stranger", "any/*"]
    assert "closed 1 model can answer Cleared for write on hr-prod." in told["steady"]
    assert "steady → lab/a" in told["steady"]
    assert "closed 2 models can answer Cleared for nothing." in told["hasty"]
    assert "model-b v1 nothing hasty → lab/b" in told["hasty"]
    assert "unknown model" in told["stranger"]
    assert "nobody has said whom" in told["stranger"]
    assert "Open: a wildcard serves whatever is asked for. By any/*. To close it, name each model." in told["any/*"]


def test_held_against_a_system_it_names_the_path_to_what_is_not_cleared_there(land: signing.Ground) -> None:
    row = inventory(**TO_HASTY)
    client = signed_in(land.security)
    told = shown(client, row, system="hr-prod")
    assert {name: text.split()[0] for name, text in told.items()} == dict.fromkeys(GROUPS, "not")
    assert "no grant steady → fallback → hasty → lab/b" in told["steady"]
    assert "0 of 4 cleared for write on Workday production" in text_of(client.get(page(row), {"system": "hr-prod"}))
    assert list(shown(client, row, system="hr-prod", show="open")) == ["any/*"]
    assert list(shown(client, row, q="STEA")) == ["steady"]
    assert shown(client, row, q="no such name") == {}
    assert list(shown(client, inventory(), system="hr-prod", show="not-cleared")) == ["hasty", "stranger", "any/*"]
    assert list(shown(client, inventory(), system="hr-prod", action="delete", show="not-cleared")) == list(GROUPS)


def test_what_is_granted_is_told_to_those_alone_who_may_know_it(land: signing.Ground) -> None:
    register_system(actor=world.ACTOR, key="crm", title="Customers", domain="customer_service", owner="sales")
    row = inventory(**TO_HASTY)
    asker, owner = signed_in(land.asker), signed_in(land.owner)
    told = text_of(asker.get(page(row)))
    assert "told to the team that owns it" in told
    assert "hr-prod" not in asker.get(page(row)).content.decode()
    assert "steady → fallback → hasty → lab/b" in told
    assert "hr-prod" not in asker.get(page(row), {"system": "crm"}).content.decode()
    assert 'class="wg-chip wg-fail' not in asker.get(page(row), {"system": "hr-prod", "q": "steady"}).content.decode()
    assert "write on hr-prod" in text_of(owner.get(page(row)))
    html = owner.get(page(row), {"system": "crm"}).content.decode()
    assert "Select a valid choice" in html
    assert "Customers" not in html


def test_what_people_were_told_of_is_shown_to_those_who_see_the_grant(land: signing.Ground) -> None:
    inventory()
    row = inventory(**TO_HASTY)
    assert "`steady`" not in text_of(signed_in(land.security).get(page(row)))
    assert "steady reaches steady → fallback → hasty → lab/b now" in text_of(signed_in(land.security).get(page(row)))
    stranger = signed_in(signing.human("Stan Stranger", Role.REQUESTER))
    assert "Of no path, as far as you may see the grants" in text_of(stranger.get(page(row)))
    assert "no path" in stranger.get(LIST).content.decode()


def test_the_cleared_part_comes_as_a_file_in_its_own_form(land: signing.Ground) -> None:
    first = inventory()
    asked = {"system": "hr-prod", "action": "write"}
    owner = signed_in(land.owner)
    assert f"{page(first, 'allowed')}?system=hr-prod&amp;action=write" in owner.get(page(first), asked).content.decode()
    answer = owner.get(page(first, "allowed"), asked)
    assert answer["Content-Type"].startswith("application/yaml")
    assert answer["Content-Disposition"] == 'attachment; filename="prod-gateway-hr-prod-write.yaml"'
    assert re.findall(r"model_name: (\S+)", answer.content.decode()) == ["steady"]
    assert owner.get(page(first, "allowed")).status_code == 404
    assert signed_in(land.asker).get(page(first, "allowed"), asked).status_code == 404
    assert Client().get(page(first, "allowed"), asked).status_code == 302
    inventory(**TO_HASTY)
    assert owner.get(page(first, "allowed"), asked).status_code == 404
    assert "Download what is cleared" not in owner.get(page(first), asked).content.decode()


def test_an_administrator_reconciles_and_is_told_what_came_of_it(land: signing.Ground) -> None:
    row = inventory()
    client = signed_in(administrator())
    assert "Reconcile now" in client.get(LIST).content.decode()
    assert f'name="back" value="{row.pk}"' in client.get(page(row)).content.decode()
    nothing = client.post(RECONCILE, {"back": row.pk}, follow=True)
    assert nothing.redirect_chain[-1][0] == page(row)
    assert "4 routes of every gateway were looked at. No route has a new version." in nothing.content.decode()
    other = SubjectVersion.objects.get(subject__key="model-b")
    assign_alias(actor=world.ACTOR, name_as_written="lab/nobody", subject_version=other)
    moved = client.post(RECONCILE, follow=True)
    assert moved.redirect_chain[-1][0] == LIST
    assert "New versions: stranger@1." in moved.content.decode()
    entry = LedgerEntry.objects.filter(action="subject_version.registered", target_id="stranger@1").get()
    assert entry.actor.startswith("person:")
    assert client.get(RECONCILE).status_code == 302


def test_when_it_was_reconciled_last_is_the_last_run_whoever_asked_for_it(land: signing.Ground) -> None:
    row = inventory()
    client = signed_in(land.security)
    assert f"{row.imported_at:%Y-%m-%d %H:%M:%S} UTC" in client.get(LIST).content.decode()
    reconcile_routes(actor=world.ACTOR)
    beat = ServiceBeat.objects.get(name="route-check")
    for address in (LIST, page(row)):
        assert f"{beat.beat_at:%Y-%m-%d %H:%M:%S} UTC" in client.get(address).content.decode()


def test_whoever_may_register_no_route_is_told_which_role_it_takes_and_that_is_recorded(land: signing.Ground) -> None:
    row = inventory()
    client = signed_in(land.security)
    assert "Reconcile now" not in client.get(page(row)).content.decode()
    answer = client.post(RECONCILE, {"back": row.pk})
    assert answer.status_code == 403
    assert "needs the role administrator" in text_of(answer)
    assert not ServiceBeat.objects.filter(name="route-check").exists()
    assert LedgerEntry.objects.filter(action="routing.refused").count() == 1
    assert Client().post(RECONCILE).status_code == 302


def test_a_route_leads_to_the_gateways_that_serve_it_and_an_entry_to_its_inventory(land: signing.Ground) -> None:
    row = inventory()
    client = signed_in(land.security)
    route = client.get(reverse("admin:evaluations_subject_change", args=[Subject.objects.get(key="steady").pk]))
    assert f'href="{page(row)}?q=steady">prod-gateway</a>' in route.content.decode()
    routing.hand_in(routing.gateway({"other": "lab/a"}), name="prod-gateway")
    gone = text_of(client.get(reverse("admin:evaluations_subject_change", args=[Subject.objects.get(key="steady").pk])))
    assert "No gateway whose inventory is in effect serves it." in gone
    model = client.get(reverse("admin:evaluations_subject_change", args=[land.version.subject_id]))
    assert "Gateways that serve it" not in model.content.decode()
    entry = LedgerEntry.objects.filter(action="routing.imported").first()
    auditor = signed_in(signing.human("Aude Auditor", Role.AUDITOR))
    told = auditor.get(reverse("admin:compliance_ledgerentry_change", args=[entry.pk])).content.decode()
    assert page(RoutingInventory.objects.get(uid=entry.target_id)) in told


def test_many_inventories_and_many_routes_take_as_many_queries_as_one(land: signing.Ground) -> None:
    client = signed_in(land.security)
    few = inventory()
    counts = queries(client, LIST), queries(client, page(few), system="hr-prod")
    groups = {f"route-{number}": ["lab/a", "lab/b", "lab/nobody"] for number in range(60)}
    many = routing.hand_in(routing.gateway(groups), name="wide").inventory
    for number in range(12):
        routing.hand_in(routing.gateway({"steady": "lab/a"}), name=f"gateway-{number}")
    assert (queries(client, LIST), queries(client, page(many), system="hr-prod")) == counts
    assert len(shown(client, many)) == 25
    assert list(shown(client, many, p="3")) == [f"route-{number}" for number in range(50, 60)]
    assert "Page 3 of 3" in text_of(client.get(page(many), {"p": "999", "system": "hr-prod"}))
