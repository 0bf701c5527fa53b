"""Who writes policies: drafts are saved and proposed by people who hold a role for it, or by their tokens."""

from compliance.selectors.access import holds_any_role
from compliance.services.idempotency import apply_first_time
from compliance.services.requests import MAY_ASK, person_behind
from compliance.vocabulary import RequestKind
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError, ErrorKind
from evaluations.kernel.services import service
from policies.models import PolicyDraft, PolicyVersion
from policies.services.drafts import apply_propose_draft, apply_save_draft

AUTHORS = MAY_ASK[RequestKind.ACTIVATION]
"""Whoever may ask that a version comes into force may write one."""


class NotAnAuthor(DomainError):
    """Who writes holds none of the roles that may, or is no person and acts for none."""

    code = "not_an_author"
    kind = ErrorKind.FORBIDDEN


@service(refused="policy_draft.refused")
def save_draft(
    *,
    actor: Actor,
    policy: str,
    text: bytes,
    replaces: str = "",
    idempotency_key: str | None = None,
    request_id: str = "",
) -> PolicyDraft:
    """Save a text as the draft of a policy; see `apply_save_draft`. Raises `NotAnAuthor` too."""
    _require_author(actor)
    digest = digest_of(text)
    if not apply_first_time(actor=actor, key=idempotency_key, act=f"policy_draft.saved {policy} {digest} {replaces}"):
        return PolicyDraft.objects.filter(policy_name=policy, digest=digest).latest("id")
    return apply_save_draft(actor=actor, policy=policy, text=text, replaces=replaces, request_id=request_id)


@service(refused="policy_version.refused")
def propose_draft(*, actor: Actor, draft: PolicyDraft, idempotency_key: str | None = None, request_id: str = "") -> PolicyVersion:
    """Propose a draft as the next version of its policy; see `apply_propose_draft`. Raises `NotAnAuthor` too."""
    _require_author(actor)
    apply_first_time(actor=actor, key=idempotency_key, act=f"policy_draft.proposed {draft.uid}")
    return apply_propose_draft(actor=actor, draft=draft)


def _require_author(actor: Actor) -> None:
    if not holds_any_role(person_id=person_behind(actor), roles=AUTHORS, at=now()):
        raise NotAnAuthor(f"writing policies needs the role {' or '.join(AUTHORS)}")
