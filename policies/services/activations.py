"""Activations: which version is in force. Written only in the transaction in which a request's signatures become complete."""

from uuid import UUID

from django.db import transaction

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import DomainError, ErrorKind
from policies.models import Policy, PolicyActivation, PolicyVersion
from policies.selectors.policies import version_in_force
from policies.signals import policies_changed


class VersionAlreadyInForce(DomainError):
    """The version that should come into force is in force."""

    code = "version_already_in_force"
    kind = ErrorKind.CONFLICT


def apply_activate_policy_version(
    *, actor: Actor, version: PolicyVersion, sign_off_request: UUID, request_id: str = ""
) -> PolicyActivation:
    """Make a version the one in force, inside an open service transaction; what stands is judged anew after commit.

    `sign_off_request` is the id of the completed request whose signatures carry it; the database holds it to its quorum. Raises
    `VersionAlreadyInForce`.
    """
    # The row lock orders activations of one policy: the one with the highest id is in force.
    policy = Policy.objects.select_for_update().get(pk=version.policy_id)
    before = version_in_force(policy)
    if before is not None and before.pk == version.pk:
        raise VersionAlreadyInForce(f"`{policy.name}@{version.number}` is in force already; nothing is left to activate")
    activation = PolicyActivation(policy=policy, version=version, activated_by=actor.reference, sign_off_request=sign_off_request)
    activation.save()
    apply_announce_change(actor=actor, policy=policy)
    audit.record(
        audit.Event(
            action="policy_version.activated",
            actor=actor,
            target=("policy_version", f"{policy.name}@{version.number}"),
            old=None if before is None else {"in_force": f"{policy.name}@{before.number}"},
            new={"in_force": f"{policy.name}@{version.number}", "sign_off_request": str(sign_off_request)},
            digests={"policy": version.digest, "resolved": version.resolved_digest},
            request_id=request_id,
        )
    )
    return activation


def apply_announce_change(*, actor: Actor, policy: Policy) -> None:
    """Announce after commit that what a policy demands has changed."""
    asked_by = actor.asked_by

    def announce() -> None:
        policies_changed.send_robust(
            sender=Policy, policy_ids=[policy.pk], on_behalf_of=asked_by.as_value() if asked_by else None
        )

    transaction.on_commit(announce, robust=True)
