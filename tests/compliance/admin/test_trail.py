"""The trail in the console: who may read it, and how it is searched."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.ledger.note import encode_hash
from compliance.models import LedgerEntry, RoleMembership, User
from compliance.services.people import create_person
from compliance.services.sealing import seal
from compliance.vocabulary import Role
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor, person, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Document
from tests.compliance.admin.world import World

LIST = reverse("admin:compliance_ledgerentry_changelist")
HOME = reverse("admin:index")


def page_of(entry: LedgerEntry) -> str:
    return reverse("admin:compliance_ledgerentry_change", args=[entry.pk])


def text_of(html: str) -> str:
    """Return the words of a page's own part, those of neighbouring elements apart."""
    return " ".join(strip_tags(html[html.index("<main") : html.rindex("</main>")].replace("<", " <")).split())


def read(console: Client, address: str, **query: object) -> str:
    answer = console.get(address, query)
    assert answer.status_code == 200, address
    return answer.content.decode()


def found(console: Client, **query: object) -> list[LedgerEntry]:
    answer = console.get(LIST, query)
    assert answer.status_code == 200, query
    return list(answer.context["cl"].result_list)


def record(actor: Actor = system_job("tests"), **event: object) -> LedgerEntry:  # noqa: B008 - an Actor is a value
    given = {"action": "bar.moved", "target": ("policy", "gate-for-tests"), **event}
    with service_transaction("tests"):
        audit.record(audit.Event(actor=actor, **given))
    return LedgerEntry.objects.first()


def count_queries(console: Client, address: str, **query: object) -> int:
    console.get(address, query)
    with CaptureQueriesContext(connection) as queries:
        assert console.get(address, query).status_code == 200
    return len(queries)


# --- who may read it --------------------------------------------------------------------------------------------------------


def trail_pages(world: World) -> list[str]:
    entry = LedgerEntry.objects.first().pk
    return [
        LIST,
        *(reverse(f"admin:compliance_ledgerentry_{name}") for name in ("verify", "population")),
        *(reverse(f"admin:compliance_ledgerentry_{name}", args=[entry]) for name in ("change", "proof", "history")),
        *(reverse(f"admin:compliance_auditexport_{name}") for name in ("changelist", "request")),
        *(
            reverse(f"admin:compliance_auditexport_{name}", args=[world.export.pk])
            for name in ("change", "progress", "download", "wake", "history")
        ),
    ]


def signed_in(email: str, *roles: Role, **options: object) -> Client:
    user = create_person(actor=system_job("tests"), name=email.partition("@")[0], email=email)
    with service_transaction("tests"):
        for role in roles:
            RoleMembership.objects.create(person=user.person, role=role, given_by="system_job:tests", **options)
    client = Client()
    client.force_login(user)
    return client


def test_staff_without_the_role_are_told_which_one_they_need(world: World) -> None:
    others = [role for role in Role if role not in {Role.AUDITOR, Role.ADMINISTRATOR}]
    client = signed_in("bob@example.org", *others)
    for page in trail_pages(world):
        for answer in (client.get(page), client.post(page)):
            assert answer.status_code == 403, page
            assert "This page needs the role auditor or administrator" in text_of(answer.content.decode()), page
    assert client.get(HOME).status_code == 200


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.ADMINISTRATOR])
def test_either_role_opens_it(world: World, role: Role) -> None:
    assert signed_in("carol@example.org", role).get(LIST).status_code == 200


def test_a_role_counts_while_it_is_held_and_no_longer(world: World) -> None:
    moment, hour = now(), timedelta(hours=1)
    past = signed_in("past@example.org", Role.AUDITOR, starts_at=moment - 2 * hour, ends_at=moment - hour)
    future = signed_in("future@example.org", Role.AUDITOR, starts_at=moment + hour)
    present = signed_in("present@example.org", Role.AUDITOR, starts_at=moment - hour, ends_at=moment + hour)
    assert [client.get(LIST).status_code for client in (past, future, present)] == [403, 403, 200]
    with service_transaction("tests"):
        RoleMembership.objects.filter(person__accounts__email="present@example.org").update(ends_at=now())
    assert present.get(LIST).status_code == 403


def test_being_a_superuser_is_no_role(world: World, rf: RequestFactory) -> None:
    client = signed_in("root@example.org")
    with service_transaction("tests"):
        User.objects.filter(email="root@example.org").update(is_superuser=True)
    assert client.get(LIST).status_code == 403


def test_no_side_door_lets_entries_out(world: World) -> None:
    client = signed_in("bob@example.org", Role.SECURITY)
    answer = client.get(
        reverse("admin:autocomplete"), {"app_label": "compliance", "model_name": "ledgerleaf", "field_name": "entry", "term": "a"}
    )
    assert answer.status_code == 403


def test_a_stranger_is_sent_to_the_login(world: World) -> None:
    for page in [*trail_pages(world), reverse("admin:compliance_ledgerentry_checkpoint")]:
        answer = Client().get(page)
        assert answer.status_code == 302
        assert answer["Location"].startswith(reverse("admin:login"))


# --- the list ---------------------------------------------------------------------------------------------------------------


def test_the_list_shows_index_and_leaf_hash_or_that_the_entry_waits(world: World, console: Client) -> None:
    html = read(console, LIST)
    waiting = LedgerEntry.objects.filter(leaf=None)
    assert waiting.count() == 2
    assert html.count(">waits<") == html.count("not sealed yet") == 2
    sealed = LedgerEntry.objects.exclude(leaf=None).first()
    whole = encode_hash(bytes(sealed.leaf.leaf_hash))
    assert f'title="{whole}">{whole[:10]}…' in html
    assert re.search(rf'href="{page_of(sealed)}[^"]*"[^>]*>{sealed.leaf.index}</a>', html)
    seal()
    assert "waits<" not in read(console, LIST)


def test_it_is_searched_by_actor_action_target_and_time(world: World, console: Client) -> None:
    ada = person(world.user.person_id).reference
    by_ada = LedgerEntry.objects.filter(actor=ada)
    assert found(console, actor="lovelace") == found(console, actor=ada) == list(by_ada[:50])
    assert found(console, actor="nobody at all") == []
    assert found(console, actor="seal") == list(LedgerEntry.objects.filter(actor="system_job:seal"))
    assert {entry.action for entry in found(console, action="alias.assigned")} == {"alias.assigned"}
    assert found(console, target_kind="source", target_id="board") == found(console, target_id="board")
    assert len(found(console, target_id="board")) == 2
    assert {entry.target_kind for entry in found(console, target_kind="policy")} == {"policy"}
    late = LedgerEntry.objects.first().recorded_at
    assert found(console, since=f"{late + timedelta(seconds=2):%Y-%m-%dT%H:%M:%S}") == []
    assert found(console, until=f"{late - timedelta(days=1):%Y-%m-%d}") == []
    assert (
        len(found(console, since=f"{late - timedelta(days=1):%Y-%m-%dT%H:%M}", until=f"{late + timedelta(days=1):%Y-%m-%d}"))
        == 50
    )
    both = found(console, actor="ada", action="trust.assigned", target_kind="source", target_id="paper")
    assert [(entry.actor, entry.action, entry.target_id) for entry in both] == [(ada, "trust.assigned", "paper")]


def test_one_line_finds_an_index_an_identifier_a_name_or_an_action(world: World, console: Client) -> None:
    entry = LedgerEntry.objects.get(action="evidence.disputed")
    assert found(console, q=str(entry.leaf.index)) == [entry]
    assert found(console, q=f" {entry.uid} ") == [entry]
    assert entry in found(console, q=entry.target_id)
    assert found(console, q=f"evidence:{entry.target_id}") == found(console, q=entry.target_id)
    assert {found_one.action for found_one in found(console, q="Assigned")} == {"trust.assigned", "alias.assigned"}
    document = Document.objects.get()
    assert {one.action for one in found(console, q=document.digest)} == {"document.captured"}
    assert all(one.actor == person(world.user.person_id).reference for one in found(console, q="Lovelace"))
    assert found(console, q="9" * 30) == found(console, q="no-such-thing") == []


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"until": "2026-13-01"}, {"actor": "x" * 300}, {"actor": "\x00"}])
def test_what_cannot_be_read_finds_nothing_and_says_so(world: World, console: Client, query: dict[str, str]) -> None:
    answer = console.get(LIST, query)
    assert answer.context["cl"].result_list == []
    assert b'class="errorlist"' in answer.content
    assert b"Nothing matches" in answer.content


@pytest.mark.slow
def test_hostile_searches_are_answered(world: World, console: Client) -> None:
    for value in ("a%_'\"\\", "<script>", "kind:", ":", "sha256:", "{}", "\ud7ff"):
        for field in ("q", "actor", "action", "target_kind", "target_id", "before", "p", "o"):
            assert console.get(LIST, {field: value}).status_code in {200, 302}, (field, value)
    assert "<script>x" not in read(console, LIST, q="<script>x", actor="<script>x", action="<script>x")


def test_pages_follow_a_cursor_that_new_entries_do_not_move(world: World, console: Client) -> None:
    first = console.get(LIST).context["cl"]
    assert len(first.result_list) == 50
    assert first.newest == ""
    rest = list(LedgerEntry.objects.filter(pk__lt=first.result_list[-1].pk))
    for place in range(5):
        record(target=("policy", str(place)))
    second = console.get(f"{LIST}{first.older}").context["cl"]
    assert second.result_list == rest
    assert second.older == ""
    assert console.get(f"{LIST}{second.newest}").context["cl"].result_list == list(LedgerEntry.objects.all()[:50])


def test_the_cursor_keeps_the_search(world: World, console: Client) -> None:
    for _ in range(60):
        record()
    first = console.get(LIST, {"action": "bar.moved"}).context["cl"]
    second = console.get(f"{LIST}{first.older}").context["cl"]
    assert len(first.result_list) == 50
    assert len(second.result_list) == 10
    assert {entry.action for entry in second.result_list} == {"bar.moved"}


def test_an_empty_search_says_so_and_leads_back(world: World, console: Client) -> None:
    html = read(console, LIST, target_kind="source", target_id="nowhere")
    assert "Nothing matches" in html
    assert 'href="?">Show everything' in html


def test_the_list_takes_the_same_few_queries_however_many_entries(world: World, console: Client) -> None:
    few = count_queries(console, LIST)
    with service_transaction("tests"):
        event = audit.Event(action="bar.moved", actor=person(world.user.person_id), target=("policy", "x"))
        audit.record(*[event] * 200)
    assert few == count_queries(console, LIST) == 8
    assert count_queries(console, LIST, actor="ada", action="trust.assigned", target_id="paper") == 11
