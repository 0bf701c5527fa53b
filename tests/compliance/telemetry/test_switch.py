"""Telemetry is on where OpenTelemetry's variables ask for it; where they do not, nothing of it is loaded, and nothing is in the way."""

import subprocess
import sys

import pytest

from compliance.telemetry import is_asked_for, problem_of
from tests.support.process import ROOT, clean_environment

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
LOOK = """\
import logging, sys
logging.basicConfig(format="%(message)s")
import django
django.setup()
from celery.signals import before_task_publish, task_prerun
from compliance import wsgi
print(type(wsgi.application).__name__, "opentelemetry" in sys.modules, len(task_prerun.receivers))
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_SERVICE_NAME": "gate"}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_it_is_asked_for_by_the_standard_variables(environment: dict[str, str], expected: object) -> None:
    assert is_asked_for(environment) is expected
    assert not (expected and problem_of(environment))


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_what_cannot_be_done_is_named(environment: dict[str, str], named: str) -> None:
    assert named in problem_of({**ENDPOINT, **environment})


def look(before: str = "", **environment: str) -> tuple[str, str]:
    """Load the web application in a process of its own; return what it is, and what was logged."""
    done = subprocess.run(
        [sys.executable, "-c", before + LOOK],
        cwd=ROOT,
        env={
            **{name: text for name, text in clean_environment().items() if not name.startswith("OTEL_")},
            "DJANGO_SETTINGS_MODULE": "compliance.settings",
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
            "WRITEGATE_SECRET_KEY": "made-up-for-tests",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_switched_off_the_application_is_the_very_same_and_nothing_is_loaded() -> None:
    assert look() == ("LeanApplication False 0", "")
    assert look(OTEL_SERVICE_NAME="gate", OTEL_TRACES_EXPORTER="none") == ("LeanApplication False 0", "")


@pytest.mark.slow
def test_switched_on_it_goes_round_the_application() -> None:
    assert look(**ENDPOINT)[0] == "TracedApplication True 1"


@pytest.mark.slow
def test_without_the_extra_it_says_so_and_serves() -> None:
    missing = "import sys; sys.modules['opentelemetry'] = None\n"
    found, said = look(missing, **ENDPOINT)
    assert found.startswith("LeanApplication")
    assert "no spans are made: the extra `telemetry` is not installed" in said


@pytest.mark.slow
def test_a_variable_that_the_sdk_cannot_read_stops_nothing() -> None:
    found, said = look(OTEL_BSP_MAX_QUEUE_SIZE="10", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="20", **ENDPOINT)
    assert found.startswith("LeanApplication")
    assert "no spans are made" in said
