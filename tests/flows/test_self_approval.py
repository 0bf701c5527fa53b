"""O-10: the requester, who is superuser and holds every role, tries to sign her own request by every road there is."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import get_commands
from django.db import transaction
from django.test import Client
from django.urls import reverse

from compliance.models import Grant, LedgerEntry, Reauthentication, SignOff, User
from compliance.models.sign_offs import SignOffOutsideService
from compliance.services.people import create_person
from compliance.services.sign_offs import SelfSignOffRefused, TokenCannotSign, give_sign_off
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from tests.support import signing, world
from tests.support.cluster import Cluster
from tests.support.signing_in import give_totp


class Attempt:
    """The request, the requester with all her powers, and what the ledger has told of refusals."""

    def __init__(self) -> None:
        land = signing.ground()
        self.her: User = create_person(
            actor=world.ACTOR,
            name="Zoe Mighty",
            email="zoe@example.org",
            password=signing.PASSWORD,
            team=land.owner.person.team,
            roles=list(Role),
            is_superuser=True,
        )
        give_totp(self.her)
        self.request = signing.ask(land, account=self.her)
        self.client = Client()
        self.client.force_login(self.her)
        self.session = signing.prove(self.her, session=str(self.client.session.session_key))

    def row(self) -> SignOff:
        return SignOff(
            request=self.request,
            requester=self.request.requester,
            dossier=self.request.dossier,
            dossier_digest=self.request.dossier.digest,
            person=self.her.person,
            account=self.her,
            roles=["security"],
            meaning=Meaning.APPROVED,
            reason="I am sure",
            reauthentication=Reauthentication.objects.latest("id"),
        )

    @contextmanager
    def refused(self, times: int = 1) -> Iterator[None]:
        """Whatever happens inside signs nothing, and the ledger tells of so many refusals."""
        before = self._told()
        yield
        assert self._told() == before + times
        self.nothing_signed()

    def nothing_signed(self) -> None:
        assert not self.request.sign_offs.exists()
        assert not Grant.objects.exists()
        assert self.request.reload().status == "open"

    def _told(self) -> int:
        return LedgerEntry.objects.filter(action="sign_off.refused").count()


@pytest.fixture
def attempt(committed_db) -> Attempt:
    return Attempt()


def test_by_rest(attempt: Attempt) -> None:
    body = {"meaning": "approved", "reason": "I am sure", "digest": attempt.request.dossier.digest}
    shown = attempt.client.get(reverse("api-v1:request", args=[attempt.request.uid]))
    with attempt.refused():
        answer = attempt.client.post(
            reverse("api-v1:request-sign-offs", args=[attempt.request.uid]),
            json.dumps(body),
            content_type="application/json",
            headers={"If-Match": shown.headers["ETag"], "Idempotency-Key": "k"},
        )
        assert (answer.status_code, answer.json()["code"]) == (409, "self_sign_off_refused")


def test_by_the_page_of_the_console(attempt: Attempt) -> None:
    body = {"meaning": "approved", "reason": "I am sure", "digest": attempt.request.dossier.digest}
    with attempt.refused():
        answer = attempt.client.post(reverse("admin:compliance_signoffrequest_sign", args=[attempt.request.pk]), body)
        assert answer.status_code == 409


@pytest.mark.parametrize("action", ["approve_selected", "sign", "delete_selected"])
def test_by_an_action_on_many(attempt: Attempt, action: str) -> None:
    """The console offers none; one that is made up is refused."""
    with attempt.refused():
        answer = attempt.client.post(
            reverse("admin:compliance_signoffrequest_changelist"),
            {"action": action, "_selected_action": [str(attempt.request.pk)], "index": "0"},
        )
        assert answer.status_code == 403


def test_by_a_command(attempt: Attempt) -> None:
    """None signs; and what a shell could call takes nobody but a person, signed in herself."""
    ours = {name for name, app in get_commands().items() if app in ("compliance", "policies", "evaluations")}
    assert not [name for name in ours if "sign" in name.replace("assign", "") or "approve" in name]
    given = {
        "request": attempt.request,
        "account": attempt.her,
        "session": attempt.session,
        "meaning": "approved",
        "reason": "I am sure",
        "digest": attempt.request.dossier.digest,
    }
    with attempt.refused(), pytest.raises(TokenCannotSign):
        give_sign_off(actor=system_job("shell"), **given)
    with attempt.refused(), pytest.raises(SelfSignOffRefused):
        give_sign_off(actor=signing.actor_of(attempt.her), **given)


ORM_ROADS: Mapping[str, Callable[[SignOff], Any]] = {
    "save": lambda row: row.save(),
    "bulk_create": lambda row: SignOff.objects.bulk_create([row]),
    "create": lambda row: SignOff.objects.create(
        **{field.name: getattr(row, field.name) for field in SignOff._meta.fields if field.name != "id"}
    ),
    "update": lambda row: SignOff.objects.update(meaning="approved"),
    "through the request": lambda row: row.request.sign_offs.bulk_create([row]),
}


@pytest.mark.parametrize("road", ORM_ROADS)
@pytest.mark.parametrize("where", ["outside", "in a transaction", "as a service", "by the service's name"])
def test_by_a_row_of_the_orm(attempt: Attempt, road: str, where: str) -> None:
    begin = {
        "outside": nullcontext,
        "in a transaction": transaction.atomic,
        "as a service": lambda: service_transaction("anything"),
        "by the service's name": lambda: service_transaction("give_sign_off"),
    }
    row = attempt.row()
    with attempt.refused(), pytest.raises(SignOffOutsideService), begin[where]():
        ORM_ROADS[road](row)


INSERT = """
INSERT INTO compliance_signoff (uid, request_id, requester_id, dossier_id, dossier_digest, person_id, account_id, roles,
    meaning, reason, reauthentication_id, signed_at)
SELECT %(uid)s, asked.id, {requester}, asked.dossier_id, paper.digest, %(her)s, %(account)s, '{{security}}', 'approved', 'I am sure',
    (SELECT max(id) FROM compliance_reauthentication), now()
FROM compliance_signoffrequest asked JOIN compliance_dossier paper ON paper.id = asked.dossier_id
WHERE asked.id = %(request)s
"""


@pytest.mark.parametrize(
    ("requester", "asleep", "refusal"),
    [
        ("asked.requester_id", False, "the person had a part in what is signed"),
        # Even where the trigger sleeps the constraints hold: with the true requester, and with another one put in her place.
        ("asked.requester_id", True, "sign_off_is_not_by_the_requester"),
        ("(SELECT id FROM compliance_person WHERE id <> %(her)s LIMIT 1)", True, "sign_off_repeats_the_requester"),
    ],
)
def test_by_sql(
    attempt: Attempt,
    cluster: Cluster,
    runtime_connection,
    owner_connection,
    requester: str,
    asleep: bool,
    refusal: str,
) -> None:
    """The runtime role, past all of our code: refused by the database, and the statement stands in its log."""
    mark = uuid.uuid4()
    database: psycopg.Connection = runtime_connection(autocommit=False)
    owner: psycopg.Connection = owner_connection()
    log = Path(cluster.directory) / "postgres" / "postgres.log"
    try:
        if asleep:
            owner.execute("ALTER TABLE compliance_signoff DISABLE TRIGGER compliance_signoff_check")
        database.execute("SELECT set_config('writegate.service', 'give_sign_off', true)")
        with pytest.raises(psycopg.errors.IntegrityError, match=refusal):
            database.execute(
                INSERT.format(requester=requester),
                {"uid": mark, "her": attempt.her.person_id, "account": attempt.her.pk, "request": attempt.request.pk},
            )
    finally:
        database.rollback()
        owner.execute("ALTER TABLE compliance_signoff ENABLE TRIGGER compliance_signoff_check")
    attempt.nothing_signed()
    (level,) = owner.execute("SELECT current_setting('log_min_error_statement')").fetchone()
    assert level in ("error", "warning", "notice", "info", "log") or level.startswith("debug")
    if log.exists():
        # A server of our own: its log is at hand.
        text = log.read_text(errors="replace")
        assert refusal in text
        assert "INSERT INTO compliance_signoff" in text[text.index(refusal) :]


def test_by_sql_without_a_service(attempt: Attempt, runtime_connection) -> None:
    database: psycopg.Connection = runtime_connection()
    values = {"uid": uuid.uuid4(), "her": attempt.her.person_id, "account": attempt.her.pk, "request": attempt.request.pk}
    with pytest.raises(psycopg.Error, match="service"):
        database.execute(INSERT.format(requester="asked.requester_id"), values)
    attempt.nothing_signed()
