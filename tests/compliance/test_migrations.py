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
