"""What holds for everything that tests of this app do."""

from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.support import signing
from tests.support.replaying import every_decision_replays
from tests.support.undoing import undone


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


@pytest.fixture(scope="module")
def _module_land(django_db_setup: None, django_db_blocker) -> Iterator[signing.Ground]:
    with django_db_blocker.unblock(), undone():
        yield signing.ground()


@pytest.fixture
def land(_module_land: signing.Ground, db: None) -> signing.Ground:
    """Something to ask for, and the people round it: made once a module, and for each test as if it were new."""
    return deepcopy(_module_land)
