"""One real log, exported once for all tests that only take exports apart."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from compliance.ledger.note import VerifierKey
from compliance.models import Checkpoint, SigningKey
from compliance.selectors.ledger import EntryFilter
from compliance.services.people import create_person
from compliance.services.sealing import rotate_signing_key, seal
from evaluations.kernel.actor import person
from tests.support import cluster as clusters
from tests.support.ledger import ACTOR, append, export, members_of

ENTRIES = 2_000


@dataclass(frozen=True)
class Exported:
    """Exports of one log of 2,000 entries, whose key was changed half-way; and what an auditor may hold of it."""

    whole: bytes
    with_csv: bytes
    part: bytes
    filtered: bytes
    keys: tuple[VerifierKey, ...]
    checkpoints: dict[int, bytes]

    @property
    def members(self) -> dict[str, bytes]:
        return members_of(self.whole)


@pytest.fixture(scope="session")
def exported(django_db_setup: None, django_db_blocker, test_database: clusters.Database, tmp_path_factory) -> Exported:
    directory: Path = tmp_path_factory.mktemp("exported")
    path, old_path = directory / "out.zip", settings.LEDGER_KEY_PATH
    with django_db_blocker.unblock():
        settings.LEDGER_KEY_PATH = directory / "ledger-key"
        try:
            made = _make(path)
        finally:
            settings.LEDGER_KEY_PATH = old_path
            connections.close_all()
            clusters.empty_tables(test_database)
    return made


def _make(path: Path) -> Exported:
    ada = person(create_person(actor=ACTOR, name="Ada Lovelace", email="ada@example.com", password="a long password").person_id)
    append(900)
    seal()
    append(100, start=900, actor=ada)
    rotate_signing_key(actor=ACTOR)
    seal()
    append(ENTRIES - 1_004, start=1_000)
    seal()
    found: dict[str, bytes] = {}
    for name, order in {
        "whole": {"to_index": ENTRIES - 1},
        "with_csv": {"to_index": ENTRIES - 1, "format": "csv"},
        "part": {"to_index": 1_499},
        "filtered": {
            "to_index": ENTRIES - 1,
            "format": "csv",
            "wanted": EntryFilter(actor=ada.reference),
            "consistent_with": (902,),
        },
    }.items():
        export(path, **order)
        found[name] = path.read_bytes()
    result = Exported(
        **found,
        keys=tuple(VerifierKey.parse(key.verifier_key) for key in SigningKey.objects.order_by("announced_index")),
        checkpoints={row.size: row.note.encode() for row in Checkpoint.objects.all()},
    )
    assert ENTRIES in result.checkpoints
    return result
