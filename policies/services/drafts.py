"""Drafts of policies: saved text by text, each by whoever wrote it, until one is proposed."""

from django.db import connection

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import DomainError, ErrorKind, InputRefused, Problem
from evaluations.kernel.names import check_key
from policies.language.compiler import PolicyRefused
from policies.language.document import MAX_BYTES
from policies.models import PolicyDraft, PolicyVersion
from policies.selectors.drafts import open_draft, problems_of_draft
from policies.services.policies import apply_propose_policy_version


class DraftChanged(DomainError):
    """Somebody saved another draft meanwhile."""

    code = "draft_changed"
    kind = ErrorKind.CONFLICT


def apply_save_draft(*, actor: Actor, policy: str, text: bytes, replaces: str, request_id: str = "") -> PolicyDraft:
    """Keep a text as the draft of a policy, inside an open service transaction; the same bytes again return the draft that is there.

    `replaces` is the digest of the draft that was edited, "" where there is none: so nobody overwrites what she has not seen. The text
    need not compile. Raises `InputRefused` for a name or a size that cannot be, `DraftChanged`.
    """
    check_key(policy, field="name")
    if not text.strip() or len(text) > MAX_BYTES:
        raise InputRefused([Problem(f"a draft has 1 to {MAX_BYTES} bytes", field="text")])
    _hold(policy)
    before = open_draft(policy)
    own = digest_of(text)
    if before is not None and before.digest == own:
        return before
    if (before.digest if before else "") != replaces:
        stands = f"the draft of `{policy}` is `{before.digest}`" if before else f"`{policy}` has no draft"
        raise DraftChanged(f"{stands}, not the one that was edited: read it, and save what it should become")
    draft = PolicyDraft(policy_name=policy, text=text, digest=own, edited_by=actor.reference)
    draft.save()
    audit.record(
        audit.Event(
            action="policy_draft.saved",
            actor=actor,
            target=("policy_draft", str(draft.uid)),
            new={"policy": policy},
            digests={"text": own, **({"before": before.digest} if before else {})},
            request_id=request_id,
        )
    )
    return draft


def apply_propose_draft(*, actor: Actor, draft: PolicyDraft) -> PolicyVersion:
    """Store a policy's draft as its next version, inside an open service transaction. Its bytes never change from then on.

    A draft that was proposed returns its version. Raises `DraftChanged` where a newer one was saved, else `PolicyRefused`.
    """
    _hold(draft.policy_name)
    version = PolicyVersion.objects.filter(policy__name=draft.policy_name, digest=draft.digest).first()
    if version is not None:
        return version
    present = open_draft(draft.policy_name)
    if present is None or present.pk != draft.pk:
        raise DraftChanged(f"another draft of `{draft.policy_name}` was saved since: read it, and propose that one")
    problems = problems_of_draft(draft)
    if problems:
        raise PolicyRefused(problems)
    return apply_propose_policy_version(actor=actor, text=bytes(draft.text))


def _hold(policy: str) -> None:
    """Let one act after the other go on with the draft of a policy, which may have no row to lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 2))", [f"policy draft {policy}"])
