"""O-16: the clock is read when it matters. The rows of these tests still say `open` and `active`, and nobody has swept."""

from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg
import pytest

from compliance.models import SignOff
from compliance.selectors.grants import live_grants_on, standing_of
from compliance.services.requests import RequestExpired
from compliance.services.sign_offs import complete_request
from compliance.vocabulary import Cause, EffectiveStatus, GrantStatus, RequestStatus
from evaluations.kernel.clock import now
from tests.support import signing


@pytest.fixture
def shift(superuser_connection) -> Callable[..., None]:
    """Move an instant of a row, which nobody but the cluster's superuser can."""
    superuser: psycopg.Connection = superuser_connection()
    superuser.execute("SET session_replication_role = replica")

    def move(table: str, column: str, pk: int, at: datetime) -> None:
        superuser.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", [at, pk])

    return move


def test_a_second_signature_after_the_end_is_refused_though_the_row_is_open(committed_db, shift) -> None:
    land = signing.ground()
    request = signing.ask(land)
    signing.sign(land.owner, request)
    shift("compliance_signoffrequest", "expires_at", request.pk, now() - timedelta(seconds=1))
    with pytest.raises(RequestExpired, match="file it anew"):
        signing.sign(land.security, request)
    with pytest.raises(RequestExpired):
        complete_request(actor=signing.actor_of(land.asker), request=request)
    assert request.reload().status == RequestStatus.OPEN
    assert SignOff.objects.filter(request=request).count() == 1


def test_a_grant_past_its_end_is_not_usable_though_the_row_is_active(committed_db, shift) -> None:
    grant = signing.granted(signing.ground())
    asked = {
        "subject_version_id": grant.subject_version_id,
        "system_id": grant.grant_systems.get().system_id,
        "action": "write",
    }
    assert live_grants_on(**asked, at=now()) == [grant]
    shift("compliance_grant", "starts_at", grant.pk, now() - timedelta(days=2))
    shift("compliance_grant", "ends_at", grant.pk, now() - timedelta(seconds=1))
    assert grant.reload().status == GrantStatus.ACTIVE
    standing = standing_of(grant, at=now())
    assert (standing.usable, standing.status, standing.cause) == (False, EffectiveStatus.EXPIRED, Cause.ENDED)
    assert live_grants_on(**asked, at=now()) == []
