"""Reads of notices and webhook endpoints."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from compliance.models import OutboxMessage, WebhookEndpoint


def find_notices(*, status: str = "", kind: str = "", channel: str = "") -> QuerySet[OutboxMessage]:
    """Return messages of the outbox, each with its endpoint; a filter left empty takes all."""
    chosen: dict[str, Any] = {name: word for name, word in (("status", status), ("kind", kind), ("channel", channel)) if word}
    return OutboxMessage.objects.select_related("endpoint").filter(**chosen)


def get_notice(*, uid: UUID) -> OutboxMessage | None:
    """Return one message with its endpoint."""
    return OutboxMessage.objects.select_related("endpoint").filter(uid=uid).first()


def find_webhooks() -> QuerySet[WebhookEndpoint]:
    """Return all endpoints, the disabled ones too, without their secrets."""
    return WebhookEndpoint.objects.defer("secret", "previous_secret")


def get_webhook(*, uid: UUID) -> WebhookEndpoint | None:
    """Return one endpoint."""
    return WebhookEndpoint.objects.filter(uid=uid).first()
