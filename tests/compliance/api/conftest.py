"""The registered world of the API's tests: made once a module, and for each test as if it were new."""

from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.compliance.api.world import Api, World, build_world
from tests.support import signing
from tests.support.undoing import undone


@pytest.fixture(scope="module")
def _module_world(django_db_setup: None, django_db_blocker) -> Iterator[World]:
    with django_db_blocker.unblock(), undone():
        yield build_world()


@pytest.fixture
def world(_module_world: World) -> Iterator[World]:
    with undone():
        yield deepcopy(_module_world)


@pytest.fixture
def api(world: World) -> Api:
    """A client with a token that may read and submit."""
    return world.api()


@pytest.fixture(scope="module")
def _module_land(django_db_setup: None, django_db_blocker) -> Iterator[signing.Ground]:
    with django_db_blocker.unblock(), undone():
        yield signing.ground()


@pytest.fixture
def land(_module_land: signing.Ground) -> Iterator[signing.Ground]:
    """Something to ask for, and the people round it; never beside `world`."""
    with undone():
        yield deepcopy(_module_land)
