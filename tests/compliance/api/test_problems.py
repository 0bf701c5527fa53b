"""Every refusal is a problem document (RFC 9457), and nothing breaks into a traceback."""

import re
from typing import Any, ClassVar

import pytest
from django.db import OperationalError
from django.test import Client

from compliance.admin import home
from compliance.api import errors
from compliance.api.v1.subjects import SubjectList
from compliance.models import LedgerEntry
from evaluations.kernel.errors import DomainError, ErrorKind
from tests.compliance.api.world import Api, World, evidence_body, nobody

MEMBERS = {"type", "title", "status", "detail", "code", "request_id", "problems"}


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert set(body) == MEMBERS
    assert (body["status"], body["code"]) == (status, code)
    assert body["type"] == f"urn:problem-type:writegate:{code}"
    assert answer.headers["X-Request-ID"] == body["request_id"]
    return body


@pytest.mark.parametrize(
    "path", ["/nowhere", "/api/", "/api/v2/subjects", "/api/v1/nothing", "/api/v1/evidence/", "/%00", "/%ff"]
)
def test_unknown_paths_need_no_login_and_answer_problem_details(path: str) -> None:
    assert_problem(nobody().client.get(path), 404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "POST", "TRACE", "FOO"])
def test_methods_that_are_not_there_are_405(api: Api, method: str) -> None:
    answer = api.ask(method, "metrics")
    assert_problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
    assert nobody().ask(method, "metrics").status_code == 401


def test_what_the_frame_refuses_says_what_to_do_instead(api: Api) -> None:
    assert "Bearer wg_" in nobody().get("subjects").json()["detail"]
    assert api.ask("DELETE", "subjects").json()["detail"].startswith("DELETE is not served here; what is: GET, ")
    form = assert_problem(
        api.send(b"kind=source", content_type="application/x-www-form-urlencoded"), 415, "unsupported_media_type"
    )
    assert form["detail"].startswith("send the body as application/json")


class TestPages:
    """What a person in a browser is answered outside of every view."""

    HTML: ClassVar = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

    @pytest.mark.parametrize("path", ["/nowhere", "/admin/nowhere/", "/accounts/nowhere/"])
    def test_nothing_there_is_a_page_with_a_way_on(self, world: World, path: str) -> None:
        client = Client(headers=self.HTML)
        client.force_login(world.user)
        answer = client.get(path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert "There is nothing at this address, or nothing that you may see." in answer.content.decode()
        assert 'href="/admin/"' in answer.content.decode()
        assert answer.headers["Cache-Control"] == "no-store"

    @pytest.mark.parametrize("path", ["/api/v1/nowhere", "/ledger/nowhere", "/metrics/x"])
    def test_where_machines_ask_it_stays_a_problem(self, path: str) -> None:
        assert_problem(Client(headers=self.HTML).get(path), 404, "not_found")

    def test_a_form_that_is_too_old_says_that_nothing_was_changed(self) -> None:
        answer = Client(enforce_csrf_checks=True, headers=self.HTML).post("/accounts/login/", {"login": "a@b.c", "password": "x"})
        assert answer.status_code == 403
        assert "was not taken, and nothing was changed: load the page anew" in answer.content.decode()

    def test_a_form_under_an_unknown_address_names_the_variable_that_lists_them(self) -> None:
        client = Client(enforce_csrf_checks=True, headers={**self.HTML, "Origin": "https://elsewhere.example"})
        answer = client.post("/accounts/login/", {"login": "a@b.c", "password": "x"})
        assert answer.status_code == 403
        assert "WRITEGATE_ORIGINS" in answer.content.decode()

    def test_a_page_that_breaks_names_its_request_and_nothing_of_itself(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def break_down(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("secret words")

        client = Client(raise_request_exception=False, headers=self.HTML)
        client.force_login(world.user)
        monkeypatch.setattr(home, "shown_head", break_down)
        answer = client.get("/admin/")
        said = answer.content.decode()
        assert (answer.status_code, "secret words" in said) == (500, False)
        assert f"the log has it under request {answer.headers['X-Request-ID']}" in said


def test_head_answers_like_get_without_a_body(api: Api) -> None:
    answer = api.ask("HEAD", "subjects")
    assert (answer.status_code, answer.content) == (200, b"")


def test_what_accept_asks_for_changes_nothing(api: Api) -> None:
    assert api.get("subjects", Accept="text/html").headers["Content-Type"] == "application/json"
    assert_problem(api.get("subjects/none", Accept="text/html"), 404, "not_found")


def test_an_error_nobody_foresaw_shows_nothing_of_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(**_: Any) -> None:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(SubjectList, "find", staticmethod(break_down))
    answer = world.api(raise_request_exception=False).get("subjects")
    body = assert_problem(answer, 500, "internal_error")
    assert b"secret words" not in answer.content
    assert b"Traceback" not in answer.content
    assert body["request_id"] in body["detail"]


def test_a_database_that_does_not_answer_is_503(world: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> None:
        raise OperationalError("connection refused to 10.0.0.1")

    monkeypatch.setattr(SubjectList, "find", staticmethod(fail))
    answer = api.get("subjects")
    assert_problem(answer, 503, "database_unavailable")
    assert b"10.0.0.1" not in answer.content


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_of_refusal_has_its_status(api: Api, monkeypatch: pytest.MonkeyPatch, kind: ErrorKind) -> None:
    class Refused(DomainError):
        code = "refused_so"

    Refused.kind = kind

    def refuse(**_: Any) -> None:
        raise Refused("because of this")

    monkeypatch.setattr(SubjectList, "find", staticmethod(refuse))
    expected = {
        "invalid": 400,
        "unprocessable": 422,
        "not_found": 404,
        "forbidden": 403,
        "conflict": 409,
        "too_large": 413,
        "unavailable": 503,
    }
    body = assert_problem(api.get("subjects"), expected[kind.value], "refused_so")
    assert body["detail"] == "because of this"
    assert set(errors.STATUS) == set(ErrorKind)


def test_a_host_that_is_not_ours_is_400(world: World, api: Api) -> None:
    answer = api.client.get("/api/v1/subjects", headers=api.headers, SERVER_NAME="evil.example.org")
    assert_problem(answer, 400, "bad_request")
    assert b"evil" not in answer.content


def test_too_many_parameters_are_400(api: Api) -> None:
    query = "&".join(f"a{number}=1" for number in range(2000))
    assert api.client.get(f"/api/v1/subjects?{query}", headers=api.headers).status_code == 400


@pytest.mark.parametrize("given", ["abc-1._X", "0" * 64])
def test_a_plain_request_id_is_echoed_and_reaches_the_ledger(api: Api, given: str) -> None:
    answer = api.send(evidence_body("1"), **{"X-Request-ID": given})
    assert answer.headers["X-Request-ID"] == given
    entry = LedgerEntry.objects.filter(action="evidence.recorded").order_by("-id")[0]
    assert f'"request_id":"{given}"'.encode() in bytes(entry.content)


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "é", '<script>"', "a/b"])
def test_any_other_request_id_is_replaced(api: Api, given: str) -> None:
    answer = api.get("subjects", **{"X-Request-ID": given})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-ID"])


def test_no_answer_may_be_kept_by_a_cache(api: Api) -> None:
    for answer in (api.get("subjects"), api.get("subjects/none"), nobody().get("/nowhere")):
        assert answer.headers["Cache-Control"] == "no-store"
