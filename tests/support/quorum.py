"""The least that the database takes for a completed request: for tests of what lies below the services that collect signatures."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from compliance.models import (
    Dossier,
    Person,
    QuorumFactor,
    RequestSystem,
    RoleMembership,
    Seat,
    SignOff,
    SignOffRequest,
    User,
)
from compliance.models.signing_in import Reauthentication, session_digest
from compliance.selectors.dossiers.build import build_dossier
from compliance.vocabulary import Meaning, RequestKind, Role
from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from policies.models import System


def signed_request(
    kind: RequestKind,
    *,
    proposal: bytes = canonical_bytes({}),
    systems: Sequence[System] = (),
    whole: bool = False,
    **about: Any,
) -> uuid.UUID:
    """Record a request of this kind about something, signed by one made-up person, and return its id.

    `whole` gives it the dossier of its kind, which its pages show; else the dossier is as good as empty.
    """
    moment = now()
    with service_transaction("test"):
        requester, signer = Person.objects.create(), Person.objects.create()
        account = User.objects.create(email=f"{signer.pk}@example.org", person=signer, password="!")
        RoleMembership.objects.create(person=signer, role=Role.POLICY_APPROVER, given_by="system_job:tests")
        request = SignOffRequest.objects.create(
            kind=kind,
            requester=requester,
            requested_by=f"person:{requester.pk}",
            reason="for a test",
            proposal=proposal,
            expires_at=moment + timedelta(days=3650),
            **about,
        )
        RequestSystem.objects.bulk_create(RequestSystem(request=request, system=system) for system in systems)
        content = build_dossier(request, at=moment).content if whole else canonical_bytes({"request": str(request.uid)})
        dossier = Dossier(request=request, number=1, content=content, digest=digest_of(content))
        dossier.save()
        SignOffRequest.objects.filter(pk=request.pk).update(dossier=dossier)
        factor = QuorumFactor(dossier=dossier, ordinal=0, factor="approvers", role=Role.POLICY_APPROVER, approve=1)
        factor.save()
        shown = Reauthentication(person=signer, user=account, session_digest=session_digest("test"), method="totp")
        shown.save()
        sign_off = SignOff(
            request=request,
            requester=requester,
            dossier=dossier,
            dossier_digest=dossier.digest,
            person=signer,
            account=account,
            roles=[Role.POLICY_APPROVER],
            meaning=Meaning.APPROVED,
            reason="for a test",
            reauthentication=shown,
        )
        # Past the service, and so past `save`: what the database takes is all that counts here.
        sign_off.save_base(force_insert=True)
        Seat(dossier=dossier, factor=factor, number=1, sign_off=sign_off, person=signer).save()
    return request.uid
