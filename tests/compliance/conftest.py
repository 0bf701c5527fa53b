"""What holds for everything that tests of this app do."""

from collections.abc import Iterator

import pytest

from tests.support.replaying import every_decision_replays


@pytest.fixture(autouse=True)
def _every_decision_replays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judge once more, when a test ends, whatever it had the gate decide."""
    if not request.node.get_closest_marker("django_db"):
        yield
        return
    # First the database, so that this ends before it does.
    request.getfixturevalue("db")
    yield
    every_decision_replays()
