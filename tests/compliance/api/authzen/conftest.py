"""The doors of AuthZEN: on real grants, and on the fixture of the certification."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from compliance.api.authzen import limits
from compliance.vocabulary import Role
from tests.compliance.api.authzen.doors import Doors
from tests.support import signing, world
from tests.support.asking import ask_token
from tests.support.undoing import undone

FIXTURE = world.FIXTURES / "conformance"


@pytest.fixture(autouse=True)
def _fresh_limits() -> Iterator[None]:
    """Buckets are a process's own, and a test asks more wrongly than an hour of a real caller."""
    limits.questions.cache_clear()
    limits.failures.cache_clear()
    yield
    limits.questions.cache_clear()
    limits.failures.cache_clear()


@pytest.fixture(scope="module")
def _module_granted(django_db_setup: None, django_db_blocker) -> Iterator[tuple[signing.Ground, str]]:
    with django_db_blocker.unblock(), undone():
        land = signing.ground()
        signing.granted(land)
        yield land, ask_token(land.asker)


@pytest.fixture
def granted(_module_granted: tuple[signing.Ground, str]) -> Iterator[signing.Ground]:
    """A subject with a grant for one system."""
    with undone():
        yield deepcopy(_module_granted[0])


@pytest.fixture
def doors(granted: signing.Ground, _module_granted: tuple[signing.Ground, str]) -> Doors:
    """Somebody who may ask about every system, beside `granted`."""
    return Doors(_module_granted[1])


@pytest.fixture(scope="module")
def _module_certified(django_db_setup: None, django_db_blocker) -> Iterator[str]:
    with django_db_blocker.unblock(), undone():
        world.activate(world.propose_text((FIXTURE / "policy.yaml").read_bytes()))
        yield ask_token(signing.human("Cora Certifier", Role.REQUESTER))


@pytest.fixture
def certified(_module_certified: str, settings: Any) -> Iterator[Doors]:
    """Somebody who asks a database without a grant, on which the certification's policy is in force."""
    settings.CONFORMANCE = True
    settings.CONFORMANCE_ATTRIBUTES = str(FIXTURE / "attributes.json")
    with undone():
        yield Doors(_module_certified)
