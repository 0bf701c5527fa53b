"""Every page of the console answers, and none of them writes."""

from functools import partial
from pathlib import Path

import pytest
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.test import Client, RequestFactory
from django.urls import reverse

from compliance.models import Grant, LedgerEntry, Person, User
from compliance.services.people import create_person
from compliance.vocabulary import Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.models import Document, Source
from tests.compliance.admin.world import World, add_intake, add_routes, add_waiver, build_person
from tests.support.asking import ask_gate

REGISTERED = sorted(admin.site._registry, key=lambda model: model._meta.label)
LABELS = [model._meta.label for model in REGISTERED]


@pytest.fixture
def world(world: World, tmp_path: Path) -> World:
    """The console's world, with a waiver, a decision, an upload, a refresh and routes too: so that every page has something to show."""
    add_waiver(world)
    add_routes(world)
    add_intake(world, tmp_path / "uploads")
    ask_gate(world.secret, "clears", "workday-prod")
    return world


def address(model, name: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


@pytest.mark.parametrize("model", REGISTERED, ids=LABELS)
def test_every_page_has_the_read_only_base(model) -> None:
    assert isinstance(admin.site._registry[model], ReadOnlyAdmin)


@pytest.mark.parametrize("model", REGISTERED, ids=LABELS)
def test_every_page_has_what_a_reader_needs(model) -> None:
    page = admin.site._registry[model]
    assert page.about
    assert page.search_fields
    assert page.ordering
    own = (type(page).describe is not ReadOnlyAdmin.describe, type(page).change_view is not ReadOnlyAdmin.change_view)
    assert any(own)


def test_nobody_may_write_not_even_an_administrator(world: World, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = create_person(
        actor=system_job("tests"), name="Root", email="root@example.org", is_superuser=True, roles=[Role.ADMINISTRATOR]
    )
    for model in REGISTERED:
        page: ModelAdmin = admin.site._registry[model]
        row = model._default_manager.first()
        assert not page.has_add_permission(request)
        assert not page.has_change_permission(request, row)
        assert not page.has_delete_permission(request, row)
        assert page.has_view_permission(request, row)
        # Access can be taken away from a list, and never given.
        assert set(page.get_actions(request)) <= ({"suspend"} if model is Grant else set())
        for attempt in (
            partial(page.save_model, request, row, None, change=True),
            partial(page.delete_model, request, row),
            partial(page.delete_queryset, request, model._default_manager.all()),
        ):
            with pytest.raises(TypeError, match="Nothing is added"):
                attempt()


@pytest.mark.slow
def test_every_list_and_every_record_answers(world: World, console: Client) -> None:
    for model in REGISTERED:
        assert console.get(address(model, "changelist")).status_code == 200, model
        rows = list(model._default_manager.all()[:3])
        assert rows, f"the world has no {model._meta.verbose_name}"
        for row in rows:
            answer = console.get(address(model, "change", row.pk))
            assert answer.status_code == 200, (model, row)
            assert b"action-select" not in answer.content
            assert b"_save" not in answer.content


@pytest.mark.slow
def test_every_list_can_be_searched_filtered_and_paged(world: World, console: Client) -> None:
    for model in REGISTERED:
        for query in ({"q": "a%_'\"\\"}, {"q": "2f0b"}, {"p": "2"}, {"p": "none"}, {"p": "9" * 30}, {"o": "1"}, {"o": "-2.1"}):
            answer = console.get(address(model, "changelist"), query)
            assert answer.status_code in {200, 302}, (model, query)
        page = admin.site._registry[model]
        for field in page.list_filter:
            name = field[0] if isinstance(field, tuple) else field
            if isinstance(name, str):
                lookup = f"{name}__id__exact" if isinstance(field, tuple) else f"{name}__exact"
                assert console.get(address(model, "changelist"), {lookup: "1"}).status_code in {200, 302}, (model, name)


def test_a_stranger_is_sent_to_the_login(world: World) -> None:
    client = Client()
    for model in REGISTERED:
        row = model._default_manager.first()
        for page in (address(model, "changelist"), address(model, "change", row.pk), address(model, "add")):
            answer = client.get(page)
            assert answer.status_code == 302
            assert answer["Location"].startswith(reverse("admin:login"))


def test_an_account_that_is_not_staff_sees_nothing(world: World) -> None:
    client = Client()
    client.force_login(build_person(email="guest@example.org", name="Guest", is_staff=False))
    for model in REGISTERED:
        assert client.get(address(model, "changelist")).status_code == 302
        assert client.get(address(model, "change", model._default_manager.first().pk)).status_code == 302


@pytest.mark.slow
def test_an_attempt_to_write_is_refused_with_the_reason(world: World, console: Client) -> None:
    for model in REGISTERED:
        row = model._default_manager.first()
        before = model._default_manager.count()
        for page in (
            address(model, "add"),
            address(model, "change", row.pk),
            address(model, "delete", row.pk),
            address(model, "changelist"),
        ):
            answer = console.post(
                page, {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes", "key": "x"}
            )
            assert answer.status_code == 403, page
            assert b"Nothing is added, changed or deleted here" in answer.content
        assert console.get(address(model, "add")).status_code == 403
        assert model._default_manager.count() == before


def test_a_record_that_is_not_there_is_not_found(world: World, console: Client) -> None:
    for model in REGISTERED:
        for wrong in ("0", "no-such", "00000000-0000-0000-0000-000000000000"):
            assert console.get(address(model, "change", wrong)).status_code == 404, (model, wrong)


def test_the_history_of_the_frame_leads_to_the_record(world: World, console: Client) -> None:
    source = Source.objects.first()
    assert console.get(address(Source, "history", source.pk))["Location"] == address(Source, "change", source.pk)


def test_a_document_comes_as_a_file_with_exactly_its_bytes(world: World, console: Client) -> None:
    document = Document.objects.get()
    answer = console.get(reverse("admin:evaluations_document_download", args=[document.pk]))
    content = b"".join(answer.streaming_content)
    assert content == b"".join(bytes(part.content) for part in document.parts.order_by("ordinal"))
    assert len(content) == int(answer["Content-Length"]) == document.size
    assert answer["Content-Disposition"] == 'attachment; filename="board results.csv"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Type"] == "application/octet-stream"
    assert "sandbox" in answer["Content-Security-Policy"]


def test_a_document_is_for_staff_alone(world: World) -> None:
    page = reverse("admin:evaluations_document_download", args=[Document.objects.get().pk])
    assert Client().get(page).status_code == 302


def test_a_token_page_shows_no_secret(world: World, console: Client) -> None:
    for page in (address(type(world.token), "changelist"), address(type(world.token), "change", world.token.pk)):
        text = console.get(page).content.decode()
        assert world.secret not in text
        assert world.token.token_digest.removeprefix("sha256:") not in text
        assert world.token.prefix in text


def test_no_page_shows_a_password_hash_or_a_name_s_salt(world: World, console: Client) -> None:
    text = console.get(address(Person, "change", world.user.person_id)).content.decode()
    assert "Ada Lovelace" in text
    assert User.objects.get(pk=world.user.pk).password not in text
    assert world.user.person.names.get().commitment.removeprefix("sha256:") not in text


def test_what_people_wrote_reaches_the_page_as_text(world: World, console: Client) -> None:
    text = console.get(reverse("admin:evaluations_aliasassignment_changelist")).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert(1)" not in text
    source = Source.objects.get(key="board")
    assert 'href="javascript:' not in console.get(address(Source, "change", source.pk)).content.decode()


def test_an_entry_is_shown_decoded_with_the_actor_s_name(world: World, console: Client) -> None:
    entry = LedgerEntry.objects.filter(action="trust.assigned").first()
    text = console.get(address(LedgerEntry, "change", entry.pk)).content.decode()
    assert "Ada Lovelace" in text
    assert "independent" in text or "archive" in text
    assert "agrees" in text
    assert "Ada Lovelace" in console.get(address(LedgerEntry, "changelist")).content.decode()


def test_a_record_leads_to_its_entries(world: World, console: Client) -> None:
    source = Source.objects.get(key="board")
    text = console.get(address(Source, "change", source.pk)).content.decode()
    trail = f"{address(LedgerEntry, 'changelist')}?target_kind=source&amp;target_id=board"
    assert trail in text
    listed = console.get(trail.replace("&amp;", "&"))
    assert listed.status_code == 200
    assert listed.context["cl"].result_count == LedgerEntry.objects.filter(target_kind="source", target_id="board").count() > 0
