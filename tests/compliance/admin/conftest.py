"""The console with one of everything behind it: made once a module, and for each test as if it were new."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
from django.test import Client

from tests.compliance.admin.world import World, build_world
from tests.support.undoing import undone


@pytest.fixture(autouse=True)
def _quick_hashes(settings) -> None:
    """What is tested here is who may sign in, not how slowly a password is hashed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="module")
def _module_world(django_db_setup: None, django_db_blocker) -> Iterator[World]:
    with django_db_blocker.unblock(), undone():
        yield build_world()


@pytest.fixture
def world(_module_world: World, db: None) -> World:
    return deepcopy(_module_world)


@pytest.fixture
def console(world: World) -> Client:
    """A client signed in as a staff person."""
    client = Client()
    client.force_login(world.user)
    return client
