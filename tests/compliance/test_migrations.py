"""Migrations over a database that is in use: what stands there stays."""

import pytest

from tests.support.process import manage, short_directory

pytestmark = pytest.mark.slow
BEFORE_SIGN_OFFS = ("compliance", "0005_ledger_append")
REGISTER = (
    "from compliance.services.people import create_person; from evaluations.kernel.actor import system_job; "
    "create_person(actor=system_job('test'), name='Ada', email='ada@example.org', password='correct horse battery')"
)
COUNT = "from compliance.models import User; print('accounts:', User.objects.filter(email='ada@example.org').count())"


def test_an_installation_with_accounts_moves_on_to_sign_offs() -> None:
    with short_directory() as directory:
        for arguments in (
            ("migrate", *BEFORE_SIGN_OFFS),
            ("migrate", "admin"),
            ("migrate", "sessions"),
            ("migrate", "policies", "0002_locks"),
            ("shell", "-c", REGISTER),
            ("migrate",),
        ):
            done = manage(*arguments, WRITEGATE_DATA_DIR=str(directory))
            assert done.returncode == 0, (arguments, done.stderr[-2000:])
        counted = manage("shell", "-c", COUNT, WRITEGATE_DATA_DIR=str(directory))
        assert "accounts: 1" in counted.stdout, counted.stderr


BEFORE_SIGNED_TRUST = (("compliance", "0021_offline_bundles"), ("evaluations", "0008_signed_definitions"))
TRUST = """
from django.db import connection
from evaluations.kernel.services import service_transaction
with service_transaction("assign_trust"), connection.cursor() as cursor:
    cursor.execute(
        "INSERT INTO evaluations_source (key, title, publisher, url, notes, registered_at) VALUES ('lab', 'Lab', '', '', '', now())"
    )
    cursor.execute(
        "INSERT INTO evaluations_trustassignment (source_id, tier, reason, assigned_by, recorded_at) "
        "SELECT id, 'vendor', 'of before', 'person:x', now() FROM evaluations_source"
    )
"""
TIERS = (
    "from django.db import connection; cursor = connection.cursor()\n"
    "cursor.execute('SELECT tier FROM evaluations_trustassignment'); print('tiers:', cursor.fetchall())"
)


def test_trust_of_before_signatures_stays_forward_and_back() -> None:
    with short_directory() as directory:
        settings = {"WRITEGATE_DATA_DIR": str(directory)}
        steps: list[tuple[tuple[str, ...], str]] = [
            *((("migrate", *target), "") for target in BEFORE_SIGNED_TRUST),
            (("migrate", "auth"), ""),
            (("shell", "-c", TRUST), ""),
            (("migrate",), ""),
            (("shell", "-c", TIERS), "tiers: [('vendor',)]"),
            (("shell", "-c", TRUST.replace("'lab'", "'other'")), "needs the signatures of its quorum"),
            *((("migrate", *target), "") for target in BEFORE_SIGNED_TRUST),
            (("shell", "-c", TIERS), "tiers: [('vendor',)]"),
            (("migrate",), ""),
        ]
        for arguments, told in steps:
            done = manage(*arguments, **settings)
            assert (done.returncode == 0) is (told != "needs the signatures of its quorum"), (arguments, done.stderr[-2000:])
            assert told in done.stdout + done.stderr, (arguments, done.stderr[-2000:])


DEFINITIONS = (
    "from django.db import connection; cursor = connection.cursor()\n"
    "cursor.execute(\"SELECT md5(string_agg(pg_get_functiondef(oid), '' ORDER BY proname)) FROM pg_proc "
    "WHERE proname LIKE 'writegate_read%%'\"); print('functions:', cursor.fetchone()[0])"
)


def test_what_decisions_read_by_is_put_back_as_it_was() -> None:
    with short_directory() as directory:
        settings = {"WRITEGATE_DATA_DIR": str(directory)}
        told = []
        for name in ("0022_signed_trust", "0023_deciding_probes", "0022_signed_trust"):
            moved = manage("migrate", "compliance", name, **settings)
            assert moved.returncode == 0, moved.stderr[-2000:]
            told.append(manage("shell", "-c", DEFINITIONS, **settings).stdout.rpartition("functions: ")[2].strip())
        assert told[0] == told[2] != told[1]
        assert len(told[0]) == 32
