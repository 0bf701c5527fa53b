"""Who comes in: tokens and sessions, as they stand at the moment of asking."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import get_resolver
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from compliance.api.authentication import actor_of
from compliance.api.permissions import Administers
from compliance.models import RoleMembership, ServiceToken, User
from compliance.selectors import access
from compliance.services.accounts import set_password
from compliance.services.people import create_person, revoke_token
from compliance.services.tokens import note_token_use
from compliance.vocabulary import Role, Scope
from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence
from tests.compliance.api.world import Api, World, evidence_body, nobody, with_token


def signed_in(email: str, **options: object) -> Api:
    client = Client(**options)
    client.force_login(User.objects.get(email=email))
    return Api(client)


def person_with(*roles: Role, is_staff: bool = True, email: str = "bob@example.org") -> User:
    return create_person(actor=system_job("tests"), name="Bob", email=email, roles=roles, is_staff=is_staff)


def test_a_token_holds_until_it_is_revoked(world: World, api: Api) -> None:
    assert api.get("subjects").status_code == 200
    revoke_token(actor=world.actor, token=world.token)
    refused = api.get("subjects")
    assert (refused.status_code, refused.json()["code"]) == (401, "token_refused")
    assert refused.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_ends_at_its_end_and_with_its_persons_accounts(world: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = world.token.expires_at
    assert access.find_live_token(token_digest=world.token.token_digest, at=ends - timedelta(microseconds=1)) is not None
    assert access.find_live_token(token_digest=world.token.token_digest, at=ends) is None
    with service_transaction("tests"):
        User.objects.filter(pk=world.user.pk).update(is_active=False)
    assert api.get("subjects").status_code == 401


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer wg_", "Bearer wg_nobody-has-this", "bearer x y", "Bearer wg_é", "Bearer " + "wg_" + "x" * 9000],
)
def test_a_token_that_is_none_is_401_and_no_session_is_tried_after_it(world: World, header: str) -> None:
    person_with()
    client = signed_in("bob@example.org")
    assert client.get("subjects").status_code == 200
    assert client.get("subjects", Authorization=header).status_code == 401


def test_another_scheme_is_nobody(world: World) -> None:
    assert nobody().get("subjects", Authorization="Basic YTpi").json()["code"] == "not_authenticated"


def test_staff_read_by_session_and_others_do_not(world: World) -> None:
    person_with(email="staff@example.org")
    person_with(is_staff=False, email="guest@example.org")
    assert signed_in("staff@example.org").get("subjects").status_code == 200
    assert signed_in("guest@example.org").get("subjects").status_code == 403


@pytest.mark.parametrize(
    ("roles", "status"),
    [
        ((Role.EVIDENCE_STEWARD,), 201),
        ((Role.ADMINISTRATOR,), 201),
        ((Role.SECURITY, Role.AUDITOR, Role.POLICY_AUTHOR), 403),
        ((), 403),
    ],
)
def test_a_person_submits_evidence_by_her_role(world: World, roles: tuple[Role, ...], status: int) -> None:
    user = person_with(*roles)
    answer = signed_in("bob@example.org").send(evidence_body("1"))
    assert answer.status_code == status
    if status == 201:
        assert Evidence.objects.order_by("-id")[0].submitted_by == f"person:{user.person_id}"


def test_a_role_counts_only_while_it_is_held(world: World) -> None:
    user = person_with(Role.EVIDENCE_STEWARD)
    with service_transaction("tests"):
        RoleMembership.objects.filter(person=user.person).update(ends_at=now())
    assert signed_in("bob@example.org").send(evidence_body("1")).status_code == 403
    begins = now() + timedelta(hours=1)
    with service_transaction("tests"):
        RoleMembership.objects.create(person=user.person, role=Role.EVIDENCE_STEWARD, given_by="person:x", starts_at=begins)
    assert signed_in("bob@example.org").send(evidence_body("1")).status_code == 403


def test_a_one_time_password_opens_nothing_here(world: World) -> None:
    user = person_with()
    set_password(actor=world.actor, user=user, password="only for the first time", must_change_password=True)
    answer = signed_in("bob@example.org").get("subjects")
    assert answer.status_code == 403
    assert "choose a new one in the console" in answer.json()["detail"]


def test_a_session_needs_the_csrf_token_to_submit(world: World) -> None:
    person_with(Role.EVIDENCE_STEWARD)
    answer = signed_in("bob@example.org", enforce_csrf_checks=True).send(evidence_body("1"))
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert world.api(enforce_csrf_checks=True).send(evidence_body("1")).status_code == 201


def test_a_reading_token_submits_nothing(world: World) -> None:
    for scope in (Scope.READ, "submit_evidence:hr-prod", Scope.DECIDE):
        before = Evidence.objects.count()
        assert world.api_with(scope).send(evidence_body("1")).status_code == 403
        assert Evidence.objects.count() == before


def test_evidence_by_token_names_the_token_and_the_person_behind_it(world: World, api: Api) -> None:
    api.send(evidence_body("1"))
    assert Evidence.objects.order_by("-id")[0].submitted_by == f"service:{world.token.pk}"
    request = Request(APIRequestFactory().get("/"))
    request.user, request.auth = object(), world.token
    actor = actor_of(request)
    assert actor.on_behalf_of is not None
    assert actor.on_behalf_of.reference == f"person:{world.user.person_id}"


def test_a_use_is_noted_at_most_once_a_minute(world: World) -> None:
    token, first = world.token, now()
    assert note_token_use(token=token, at=first) is True
    token.refresh_from_db()
    assert token.last_used_at == first
    assert note_token_use(token=token, at=first + timedelta(seconds=59)) is False
    stale = ServiceToken.objects.get(pk=token.pk)
    stale.last_used_at = None  # as another process saw it before the first use
    assert note_token_use(token=stale, at=first + timedelta(seconds=30)) is False
    assert note_token_use(token=token, at=first + timedelta(seconds=60)) is True


def test_every_view_of_the_api_declares_the_scope_of_each_method() -> None:
    views = {}
    for pattern in get_resolver().url_patterns:
        if str(pattern.pattern) == "api/v1/":
            views = {each.name: each.callback.view_class for each in pattern.url_patterns}
    assert len(views) == 92
    for name, view in views.items():
        if Administers in view.permission_classes:
            continue  # by role alone, and closed to tokens
        methods = {method.upper() for method in ("get", "post", "put", "patch", "delete") if hasattr(view, method)}
        assert set(view.scopes) >= methods, name
        assert all(scope in Scope.values for scope in view.scopes.values()), name


def test_a_method_without_a_declared_scope_is_closed(world: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from compliance.api.v1.subjects import SubjectList

    monkeypatch.setattr(SubjectList, "scopes", {})
    assert api.get("subjects").status_code == 403


def test_only_the_schema_and_the_docs_are_open(world: World) -> None:
    for path in ("/api/schema/", "/api/docs/"):
        assert nobody().get(path).status_code == 200
        assert with_token("wg_wrong").get(path).status_code == 200
