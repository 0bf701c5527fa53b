"""Offline bundles over the API: who gets whose, what the headers say, and that nothing goes out off the record."""

import io
import tarfile
from hashlib import sha256
from typing import Any

import pytest
import schemathesis
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.wsgi import get_wsgi_application
from django.db import connection

from compliance.client.offline import Bundle
from compliance.ledger.offline import MEDIA_TYPE
from compliance.models import Grant, LedgerEntry, OfflineBundle, ServiceToken
from compliance.services import offline
from compliance.services.sealing import keyring
from compliance.services.stopping import revoke_grant
from evaluations.kernel.services import service_transaction
from policies.services.systems import register_system
from tests.compliance.api.callers import as_person, as_token
from tests.compliance.api.world import Api
from tests.support import signing, world

JSON, ARCHIVE = "systems/hr-prod/bundle", "systems/hr-prod/bundle.tar.gz"


@pytest.fixture
def opa_key(settings: Any) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    settings.OPA_KEY = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def point(land: signing.Ground) -> Api:
    """An enforcement point of the ground's system."""
    return as_token(land.asker, "decide:hr-prod")


def get(api: Api, path: str, held: str = "") -> Any:
    headers = {**api.headers, **({"If-None-Match": held} if held else {})}
    return api.client.get(f"/api/v1/{path}", headers=headers)


def handed_out() -> int:
    return LedgerEntry.objects.filter(action="offline_bundle.handed_out").count()


def test_an_enforcement_point_gets_the_list_of_its_system(land: signing.Ground, point: Api) -> None:
    signing.granted(land)
    answer = get(point, JSON)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert (answer.headers["Cache-Control"], answer.headers["X-Content-Type-Options"]) == ("private, no-cache", "nosniff")
    bundle = Bundle.verified(answer.content, system="hr-prod", keys=[keyring().current.verifier])
    assert bundle.check("model-a", type="model")
    assert answer.headers["ETag"] == f'"{bundle.tag}"'


@pytest.mark.parametrize("path", [JSON, ARCHIVE])
@pytest.mark.usefixtures("opa_key")
def test_whoever_holds_the_newest_gets_no_other_and_leaves_no_entry(path: str, land: signing.Ground, point: Api) -> None:
    grant = signing.granted(land)
    first = get(point, path)
    assert (first.status_code, handed_out()) == (200, 1)
    for held in (first.headers["ETag"], f'"x", W/{first.headers["ETag"]}'):
        again = get(point, path, held)
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert handed_out() == 1
    assert get(point, path, '"another"').status_code == 200
    assert get(point, path).content == first.content, "the same bytes each time"
    revoke_grant(actor=signing.actor_of(land.security), grant=grant, reason="enough")
    after = get(point, path, first.headers["ETag"])
    assert after.status_code == 200
    assert after.headers["ETag"] != first.headers["ETag"]


def test_the_entry_says_who_got_which_bundle(land: signing.Ground, point: Api) -> None:
    answer = get(point, JSON)
    token = ServiceToken.objects.get(name="ci")
    entry = LedgerEntry.objects.get(action="offline_bundle.handed_out")
    bundle = Bundle.verified(answer.content, system="hr-prod", keys=[keyring().current.verifier])
    assert entry.actor == f"service:{token.pk}"
    assert f"sha256:{bundle.tag.partition('.')[0]}".encode() in bytes(entry.content)
    assert answer.headers["X-Request-ID"].encode() in bytes(entry.content)


@pytest.mark.usefixtures("opa_key")
def test_nobody_else_gets_it(land: signing.Ground) -> None:
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="hr")
    before = handed_out()
    for path in (JSON, ARCHIVE):
        for scopes in (("decide:it-prod",), ("read",), ("read:hr-prod",), ("request",)):
            refused = get(as_token(land.asker, *scopes), path)
            assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), (path, scopes)
        assert get(as_person(land.security), path).status_code == 403
        assert get(as_token(land.asker, "decide"), path).status_code == 200
    assert handed_out() == before + 2
    missing = get(as_token(land.asker, "decide"), "systems/none/bundle")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_without_a_key_there_is_no_form_for_opa(point: Api, settings: Any) -> None:
    settings.OPA_KEY = ""
    refused = get(point, ARCHIVE)
    assert (refused.status_code, refused.json()["code"]) == (409, "opa_key_missing")
    assert handed_out() == 0


@pytest.mark.usefixtures("opa_key")
def test_the_form_for_opa_is_a_gzipped_tar(point: Api) -> None:
    answer = get(point, ARCHIVE)
    assert answer.headers["Content-Type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:gz") as archive:
        assert archive.getnames() == [".manifest", ".signatures.json", "data.json", "policy.rego"]


def test_what_cannot_be_recorded_does_not_go_out(point: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("the log takes nothing")

    monkeypatch.setattr(offline.audit, "record", refuse)
    point.client.raise_request_exception = False
    assert get(point, JSON).status_code == 500


@pytest.mark.parametrize("path", [JSON, ARCHIVE])
def test_the_list_of_another_system_goes_out_for_none(path: str, land: signing.Ground, opa_key: None) -> None:
    """It is signed as this one is, and would be recorded as handed out for it."""
    signing.granted(land)
    point = as_token(land.asker, "decide")
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="hr")
    for key in ("hr-prod", "it-prod"):
        assert get(point, path.replace("hr-prod", key)).status_code == 200
    other, entries = OfflineBundle.objects.get(system__key="hr-prod"), handed_out()
    with service_transaction("store_bundle"):
        OfflineBundle.objects.filter(system__key="it-prod").update(
            payload=other.payload, signature=other.signature, digest=other.digest
        )
    answer = get(point, path.replace("hr-prod", "it-prod"))
    assert (answer.status_code, answer.json()["code"]) == (503, "offline_bundle_not_ours")
    assert handed_out() == entries


@pytest.mark.parametrize("path", [JSON, ARCHIVE])
@pytest.mark.parametrize("told", ["all", "the payload alone"])
def test_what_somebody_wrote_in_its_place_is_not_signed(
    path: str, told: str, land: signing.Ground, point: Api, opa_key: None
) -> None:
    """As raw SQL may, under the name of a service."""
    signing.granted(land)
    assert get(point, path).status_code == 200
    held, entries = OfflineBundle.objects.get(), handed_out()
    forged = bytes(held.payload).replace(b'"write"', b'"admin"')
    digest = f"sha256:{sha256(forged).hexdigest()}" if told == "all" else held.digest
    with service_transaction("store_bundle"):
        OfflineBundle.objects.update(payload=forged, digest=digest)
    answer = get(point, path)
    assert (answer.status_code, answer.json()["code"]) == (503, "offline_bundle_not_ours")
    assert answer.headers["Retry-After"] == "60"
    assert handed_out() == entries
    # What happens next has a new one made.
    revoke_grant(actor=signing.actor_of(land.security), grant=Grant.objects.get(), reason="enough")
    assert get(point, path).status_code == 200


def test_a_key_with_a_slash_is_a_system_too(land: signing.Ground) -> None:
    register_system(actor=world.ACTOR, key="eu/it-prod", title="IT", domain="hr", owner="hr")
    answer = get(as_token(land.asker, "decide:eu/it-prod"), "systems/eu/it-prod/bundle")
    assert Bundle.verified(answer.content, system="eu/it-prod", keys=[keyring().current.verifier]).statement.lines == ()


def test_it_is_as_the_schema_describes_it(land: signing.Ground, point: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    operation = described["/api/v1/systems/{key}/bundle"]["GET"]
    tag = ""
    for expected in (200, 304):
        headers = {**point.headers, **({"If-None-Match": tag} if tag else {})}
        answer = operation.Case(path_parameters={"key": "hr-prod"}).call(headers=headers)
        assert answer.status_code == expected
        operation.validate_response(answer)
        (tag,) = answer.headers["etag"]
