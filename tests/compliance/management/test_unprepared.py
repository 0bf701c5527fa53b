"""A command on a database that nobody has prepared says what to do, instead of showing where it broke."""

import pytest

from tests.support.process import manage, short_directory


@pytest.mark.slow
def test_a_database_without_tables_is_named_with_the_way_out() -> None:
    with short_directory() as directory:
        done = manage("gate", WRITEGATE_DATA_DIR=str(directory / "data"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "CommandError: the database is not up to date: run `manage.py quickstart` first"
    assert "Traceback" not in done.stderr
