"""Tables of the compliance app."""

from compliance.models.beats import ServiceBeat
from compliance.models.decisions import Decision, DecisionBody
from compliance.models.drift import DriftNotice, GrantReview
from compliance.models.exports import AuditExport
from compliance.models.grants import Grant, GrantEvent, GrantSystem, Waiver, WaiverRevocation
from compliance.models.idempotency import IdempotencyKey
from compliance.models.ledger import Checkpoint, LedgerEntry, LedgerLeaf, LedgerPending, LedgerTile, SigningKey
from compliance.models.offline import OfflineBundle
from compliance.models.outbox import OutboxMessage, WebhookEndpoint
from compliance.models.people import Person, PersonName, RoleMembership, ServiceToken, Team, User
from compliance.models.routing import RoutingInventory
from compliance.models.sign_offs import (
    Dossier,
    QuorumFactor,
    RequestComment,
    RequestSystem,
    Seat,
    SignOff,
    SignOffRequest,
)
from compliance.models.signing_in import Reauthentication, SigningHold
from compliance.models.uploads import Upload

__all__ = [
    "AuditExport",
    "Checkpoint",
    "Decision",
    "DecisionBody",
    "Dossier",
    "DriftNotice",
    "Grant",
    "GrantEvent",
    "GrantReview",
    "GrantSystem",
    "IdempotencyKey",
    "LedgerEntry",
    "LedgerLeaf",
    "LedgerPending",
    "LedgerTile",
    "OfflineBundle",
    "OutboxMessage",
    "Person",
    "PersonName",
    "QuorumFactor",
    "Reauthentication",
    "RequestComment",
    "RequestSystem",
    "RoleMembership",
    "RoutingInventory",
    "Seat",
    "ServiceBeat",
    "ServiceToken",
    "SignOff",
    "SignOffRequest",
    "SigningHold",
    "SigningKey",
    "Team",
    "Upload",
    "User",
    "Waiver",
    "WaiverRevocation",
    "WebhookEndpoint",
]
