"""The console with one of everything behind it."""

import pytest
from django.test import Client

from tests.compliance.admin.world import World, build_world


@pytest.fixture(autouse=True)
def _quick_hashes(settings) -> None:
    """What is tested here is who may sign in, not how slowly a password is hashed."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def world(db: None) -> World:
    return build_world()


@pytest.fixture
def console(world: World) -> Client:
    """A client signed in as a staff person."""
    client = Client()
    client.force_login(world.user)
    return client
