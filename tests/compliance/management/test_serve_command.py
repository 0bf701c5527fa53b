"""`serve` without serving: what it is told on the command line and in the environment, before anything starts."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compliance import connections, processes
from compliance.management.commands import serve

NAMES = ("WRITEGATE_BIND", "WRITEGATE_PORT", "WRITEGATE_WORKERS")
DEFAULTS = {"host": "127.0.0.1", "port": 8000, "worker_processes": 2}


class Told(Exception):
    """What the processes would be started with."""


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(**settings: Any) -> None:
        raise Told(settings)

    monkeypatch.setattr(processes, "services", told)
    monkeypatch.setattr(serve.Command, "_refuse_unready_database", lambda self: None)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def told(*arguments: str) -> dict[str, Any]:
    with pytest.raises(Told) as stopped:
        call_command("serve", "worker", *arguments)
    return stopped.value.args[0]


def file(tmp_path: Path, name: str, value: str) -> str:
    path = tmp_path / name
    path.write_text(f"{value}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("WRITEGATE_BIND", "0.0.0.0", "host", "0.0.0.0"),
        ("WRITEGATE_PORT", "8080", "port", 8080),
        ("WRITEGATE_WORKERS", "5", "worker_processes", 5),
    ],
)
def test_each_comes_from_the_environment_or_a_file_that_it_names_and_the_command_line_goes_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, field: str, expected: object
) -> None:
    assert told() == DEFAULTS
    monkeypatch.setenv(name, value)
    assert told() == {**DEFAULTS, field: expected}
    monkeypatch.setenv(name, "7")
    monkeypatch.setenv(f"{name}_FILE", file(tmp_path, name, value))
    assert told() == {**DEFAULTS, field: expected}
    assert told("--host", "::1", "--port", "9", "--workers", "1") == {"host": "::1", "port": 9, "worker_processes": 1}


@pytest.mark.parametrize("name", ["WRITEGATE_PORT", "WRITEGATE_WORKERS"])
def test_what_is_no_number_is_told_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for value in ("many", "0", "-1"):
        monkeypatch.setenv(name, value)
        with pytest.raises(CommandError, match=f"{name} must be a whole number above 0, not '{value}'"):
            call_command("serve", "worker")
    monkeypatch.setenv(f"{name}_FILE", file(tmp_path, name, "3"))
    assert 3 in told().values()


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "none"))
    with pytest.raises(CommandError, match=f"{name}_FILE names .*/none, which cannot be read"):
        call_command("serve", "worker")
    assert told("--host", "::1", "--port", "9", "--workers", "1")["port"] == 9


def test_the_data_directory_comes_from_a_file_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WRITEGATE_DATA_DIR", str(tmp_path / "one"))
    assert connections.data_directory() == tmp_path / "one"
    monkeypatch.setenv("WRITEGATE_DATA_DIR_FILE", file(tmp_path, "where", str(tmp_path / "two")))
    assert connections.data_directory() == tmp_path / "two"
