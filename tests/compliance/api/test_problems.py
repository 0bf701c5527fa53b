"""Every refusal is a problem document (RFC 9457), and nothing breaks into a traceback."""

import re
from typing import Any

import pytest
from django.db import OperationalError

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
