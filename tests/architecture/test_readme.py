"""The README stays true: its glossary names what is there, its map shows every room, and its commands exist."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands

from compliance.vocabulary import Role
from evaluations.kernel import actor

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OWN_APPS = ("evaluations", "policies", "compliance")
NOT_IN_THE_TABLE = {
    "WRITEGATE_DEBUG": "for work on the service itself",
    "WRITEGATE_EMBEDDED_USER": "its error message names it, where root starts the embedded server",
    "WRITEGATE_POSTGRES_BIN": "its error message names it, where no server came with the packages",
    "WRITEGATE_QUEUE": "for tests that share a broker",
    "WRITEGATE_STATIC_DIR": "the image sets it",
}
NOT_ROOMS = {"migrations", "templates", "static", "__pycache__"}
NOT_IN_THE_GLOSSARY = {
    "DocumentPart": "a piece of a document",
    "SubjectVersionMember": "a row of a closed set",
    "RoleMembership": "its words are in the closed list of roles",
    "PersonName": "where a person's name lies",
    "Team": "an everyday word",
    "ServiceToken": "an everyday word",
    "IdempotencyKey": "the HTTP field's own word",
    "ServiceBeat": "a sign of life",
    "HostPace": "when a host may be asked again",
    "LedgerPending": "the ledger's queue",
}


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def named_in_the_glossary() -> set[str]:
    rows = [line for line in section("Glossary").splitlines() if line.startswith("| **")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.rsplit("|", 2)[1])}


def test_every_word_of_the_glossary_is_in_the_code() -> None:
    there = {model.__name__ for model in apps.get_models()} | set(vars(actor))
    assert named_in_the_glossary() <= there


def test_every_table_is_in_the_glossary_or_says_why_not() -> None:
    tables = {model.__name__ for model in apps.get_models() if model._meta.app_label in OWN_APPS}
    assert tables - named_in_the_glossary() <= set(NOT_IN_THE_GLOSSARY)


@pytest.mark.parametrize("package", OWN_APPS)
def test_every_room_is_on_the_map(package: str) -> None:
    rooms = {path.name for path in (ROOT / package).iterdir() if path.is_dir()} - NOT_ROOMS
    shown = section("The map of the house").split(f"{package}/", 1)[1].split("\n```", 1)[0]
    shown = re.split(r"\n(?=\w+/ )", shown)[0]
    assert rooms <= set(re.findall(r"(\w+)/", shown)), package


def test_every_variable_that_the_service_reads_is_in_the_readme_or_says_why_not() -> None:
    files = [*(ROOT / "compliance").glob("*.py"), ROOT / "compliance" / "management" / "commands" / "serve.py"]
    read = {name for path in files for name in re.findall(r"\"(WRITEGATE_[A-Z_]*[A-Z])\"", path.read_text(encoding="utf-8"))}
    assert len(read) > 30
    named = set(re.findall(r"`(WRITEGATE_[A-Z_]*[A-Z])`", section("Running it for real")))
    assert read - named == set(NOT_IN_THE_TABLE)
    assert named - read <= {"WRITEGATE_SOURCE_KEY"}


def test_every_command_of_the_readme_exists() -> None:
    named = set(re.findall(r"manage\.py (\w+)", README))
    assert named
    assert named <= set(get_commands())


def test_every_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"`?make (\w+)", README)) - {"a", "both", "and"} <= targets


def test_the_roles_given_to_the_lower_floors_are_the_closed_list(settings) -> None:
    assert tuple(settings.POLICY_ROLES) == tuple(Role.values)
