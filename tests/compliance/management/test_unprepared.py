"""A command on what nobody has prepared says what to do, instead of showing where it broke."""

from pathlib import Path

import pytest

from tests.support.process import manage, short_directory


@pytest.mark.slow
def test_a_database_without_tables_is_named_with_the_way_out() -> None:
    with short_directory() as directory:
        done = manage("gate", WRITEGATE_DATA_DIR=str(directory / "data"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "CommandError: the database is not up to date: run `manage.py quickstart` first"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "environment", "said"),
    [
        ("help", {"WRITEGATE_PORT": "soon"}, "error: WRITEGATE_PORT must be a whole number above 0, not 'soon'"),
        ("help", {"WRITEGATE_BEHIND_PROXY": "perhaps"}, "error: WRITEGATE_BEHIND_PROXY must be 1 or 0, not 'perhaps'"),
        ("gate", {"WRITEGATE_DATA_DIR": "/proc/none"}, "error: the data directory /proc/none cannot be made: "),
    ],
)
def test_a_variable_that_cannot_be_right_is_named_in_one_line(
    command: str, environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    done = manage(command, **{"WRITEGATE_DATA_DIR": str(tmp_path), **environment})
    assert done.returncode == 1
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
