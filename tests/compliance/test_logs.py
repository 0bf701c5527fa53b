"""Log lines carry what happened and no secrets."""

import json
import logging
import sys

import pytest

from compliance.logs import JsonFormatter, PlainFormatter, WithoutReadiness, without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "cannot reach postgresql://writegate_runtime:geheim@db:5432/writegate",
        "connection failed: host=db user=w password=geheim dbname=d",
        "connection failed: password='geheim' host=db",
        'header "Authorization: Bearer geheim"',
        "sent Authorization: Token geheim",
        'body {"token": "geheim", "x": 1}',
        "amqp://guest:geheim@mq//",
        "Not Found: /access/v1/wg_geheim4AXcM7-Q_w0uT9sE2kLpZ",
    ],
)
def test_secrets_are_taken_out(text: str) -> None:
    cleaned = without_secrets(text)
    assert "geheim" not in cleaned
    assert "***" in cleaned


@pytest.mark.parametrize(
    "text", ["the token expired", "password rules: 12 characters", "see https://example.org/a:b", "secret santa"]
)
def test_ordinary_sentences_stay(text: str) -> None:
    assert without_secrets(text) == text


def record(text: str, *arguments: object, error: bool = False, **extra: object) -> logging.LogRecord:
    trouble = None
    if error:
        try:
            raise ValueError("postgresql://u:geheim@h/d is bad")
        except ValueError:
            trouble = sys.exc_info()
    made = logging.LogRecord("compliance.test", logging.WARNING, __file__, 1, text, arguments, trouble)
    made.__dict__.update(extra)
    return made


def test_a_plain_line_has_time_level_logger_text_and_extras() -> None:
    line = PlainFormatter().format(record("judged %d", 3, request_id="r1"))
    assert line[8:] == " warning compliance.test: judged 3 request_id=r1"


def test_a_json_line_is_one_object_without_secrets() -> None:
    line = JsonFormatter().format(record("broke", error=True, request_id="r1"))
    assert "\n" not in line
    event = json.loads(line)
    assert event["level"] == "warning"
    assert event["logger"] == "compliance.test"
    assert event["text"] == "broke"
    assert event["request_id"] == "r1"
    assert "ValueError" in event["error"]
    assert "geheim" not in line


def test_only_djangos_line_about_readyz_is_dropped(rf) -> None:
    keep = WithoutReadiness().filter
    about = record("Service Unavailable", request=rf.get("/readyz"))
    about.name = "django.request"
    assert not keep(about)
    other = record("Service Unavailable", request=rf.get("/api/v1/policies"))
    other.name = "django.request"
    assert keep(other)
    assert keep(record("anything"))
