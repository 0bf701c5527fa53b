"""From an empty directory to the gate's answer by one command, and again."""

import pytest

from tests.support.process import manage, short_directory


@pytest.mark.slow
def test_an_empty_directory_becomes_an_answer_and_stays_as_it_is_when_it_is_run_again() -> None:
    with short_directory() as directory:
        data = {"WRITEGATE_DATA_DIR": str(directory / "data")}
        first = manage("quickstart", **data)
        again = manage("quickstart", "--with-corrections", **data)
        demo = manage("demo", **data)
    assert first.returncode == 0, first.stderr
    assert "founding: 24 new observations in 18 pieces of evidence" in first.stdout
    # The table is as wide as the terminal says.
    assert "The infeasible refusal rate is 53.9 % (n not stated, source `refusal-post`)" in " ".join(first.stdout.split())
    assert "0 of 6 cleared." in first.stdout
    assert "one-time password" in first.stdout
    assert again.returncode == 0, again.stderr
    assert "founding: 0 new observations" in again.stdout
    assert "corrections: 0 new observations, 4 disputes" in again.stdout
    assert "one-time password" not in again.stdout
    assert demo.returncode == 0, demo.stderr
