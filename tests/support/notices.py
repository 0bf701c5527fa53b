"""Notices queued for tests, and the wires they go over."""

from compliance.models import LedgerEntry, OutboxMessage, User, WebhookEndpoint
from compliance.services.outbox import apply_notify
from compliance.services.people import create_person
from compliance.services.webhooks import open_webhook
from compliance.vocabulary import NoticeKind
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from tests.support.sinks import HttpSink

ACTOR = system_job("test")


def register(sink: HttpSink, path: str = "/hook") -> WebhookEndpoint:
    return open_webhook(actor=ACTOR, url=sink.url(path), title="Pager", events=["*"]).endpoint


def person(email: str = "ada@example.org") -> User:
    return create_person(actor=ACTOR, name="Ada", email=email)


def notify(*people: User, cause: str = "1", title: str = "The grant is suspended") -> list[OutboxMessage]:
    with service_transaction("test"):
        apply_notify(
            kind=NoticeKind.GRANT_SUSPENDED,
            subject_ref=("grant", "g-1"),
            title=title,
            lines=["A result fell."],
            link="/admin/",
            data={"grant": "g-1"},
            people=[each.person_id for each in people],
            cause=cause,
        )
    return list(OutboxMessage.objects.order_by("id"))


def entries(action: str) -> int:
    return LedgerEntry.objects.filter(action=action).count()


def only() -> OutboxMessage:
    return OutboxMessage.objects.get()
