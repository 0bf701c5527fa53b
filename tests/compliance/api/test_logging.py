"""What requests leave in the log: nothing of a token, nothing of an ordinary answer, one line of an answer that nobody recorded."""

import logging
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from compliance.api.authzen import views
from compliance.logs import JsonFormatter, PlainFormatter
from compliance.services import decisions
from compliance.services.people import create_token, revoke_token
from compliance.services.recording import Recorder
from tests.support import signing, world
from tests.support.asking import ask_token
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db

EVALUATION = "/access/v1/evaluation"
QUESTION = {
    "subject": {"type": "model", "id": "model-a"},
    "action": {"name": "write"},
    "resource": {"type": "system", "id": "hr-prod"},
}


@pytest.fixture
def land() -> Ground:
    return signing.ground()


def ask(secret: str, path: str = EVALUATION, scheme: str = "Bearer") -> Any:
    headers = {"Authorization": f"{scheme} {secret}"}
    return Client(raise_request_exception=False).post(path, QUESTION, content_type="application/json", headers=headers)


def written(caplog: pytest.LogCaptureFixture) -> str:
    """Return every line as both formatters write it."""
    return "\n".join(formatter.format(record) for record in caplog.records for formatter in (PlainFormatter(), JsonFormatter()))


@pytest.mark.slow
def test_no_token_reaches_the_log_whatever_becomes_of_its_request(
    land: Ground, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    good = ask_token(land.asker)
    gone = create_token(actor=world.ACTOR, name="gone", scopes=["decide"], person=land.asker.person)
    revoke_token(actor=world.ACTOR, token=gone.token)
    unknown = f"wg_{'x' * 43}"
    others = ask_token(land.asker, "register")
    secrets = (good, gone.secret, unknown, others)
    for secret in secrets:
        for scheme in ("Bearer", "bearer", "Basic", secret):
            ask(secret, scheme=scheme)
            Client().get("/api/v1/decisions", headers={"Authorization": f"{scheme} {secret}"})
            Client().get("/metrics", headers={"Authorization": f"{scheme} {secret}"})
        # An address that somebody put together wrongly, and a token where the id of a request belongs.
        ask(secret, f"/access/v1/{secret}")
        Client().get(f"/api/v1/{secret}")
        Client().get("/api/v1/decisions", {"token": secret})

    def breaks(**given: Any) -> None:
        raise RuntimeError(f"broken by {given}")

    with monkeypatch.context() as patch:
        patch.setattr(views, "decide", breaks)
        assert ask(good).status_code == 500
    log = written(caplog)
    assert "broken by" in log
    for secret in secrets:
        assert secret not in log


def test_an_ordinary_answer_leaves_no_line(land: Ground, caplog: pytest.LogCaptureFixture) -> None:
    token = ask_token(land.asker)
    with caplog.at_level(logging.INFO):
        assert ask(token).json()["decision"] is False
        signing.granted(land)
        caplog.clear()
        assert ask(token).json()["decision"] is True
    assert caplog.records == []


def test_an_answer_that_could_not_be_recorded_leaves_one(
    land: Ground, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing.granted(land)
    token = ask_token(land.asker)

    def refuses(*_: object, **__: object) -> None:
        raise DatabaseError("the table takes nothing")

    monkeypatch.setattr(Recorder, "record", refuses)
    monkeypatch.setattr(decisions, "_answers", lambda: True)
    caplog.clear()
    answer = ask(token).json()
    assert (answer["decision"], answer["context"]["reason"]) == (False, "cannot_record")
    (line,) = [record for record in caplog.records if record.name.startswith("compliance")]
    assert (line.levelname, line.name) == ("ERROR", "compliance.decisions")
