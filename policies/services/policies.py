"""Policies and their versions: proposing them. Activations and bindings stand in modules of their own."""

from collections.abc import Sequence

from django.db.models import Max

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service
from policies.language.compiler import compile_policy
from policies.models import Policy, PolicyVersion
from policies.selectors.policies import known_names
from policies.selectors.proposing import Draft, examine_drafts


@service(refused="policy_version.refused")
def propose_policy_version(*, actor: Actor, text: bytes, filename: str = "") -> PolicyVersion:
    """Store a policy text as the next version of the policy it names; the same bytes again return the version that is there.

    Raises `PolicyRefused` with every problem of the text.
    """
    return apply_propose_policy_version(actor=actor, text=text, filename=filename)


@service(refused="policy_version.refused")
def propose_policy_versions(*, actor: Actor, drafts: Sequence[Draft]) -> list[PolicyVersion]:
    """Store texts as the next versions of the policies they name, all of them or none; return the versions that are new.

    Raises `InputRefused` with every problem of all texts, also where a draft's base is no longer the newest version.
    """
    # Whoever proposes at the same time waits, and is then held against what this one made.
    named = {draft.policy for draft in drafts if draft.policy}
    list(Policy.objects.select_for_update().filter(name__in=named).order_by("pk"))
    fresh = [item for item in examine_drafts(drafts) if item.known is None]
    return [apply_propose_policy_version(actor=actor, text=item.draft.text, filename=item.draft.filename) for item in fresh]


def apply_propose_policy_version(*, actor: Actor, text: bytes, filename: str = "") -> PolicyVersion:
    """Store a policy text inside an open service transaction."""
    compiled = compile_policy(text, known_names(), filename=filename)
    policy, made = Policy.objects.get_or_create(name=compiled.name, defaults={"title": compiled.title})
    existing = PolicyVersion.objects.filter(policy=policy, digest=compiled.digest).first()
    if existing is not None:
        return existing
    # The row lock keeps two proposals from taking one number.
    Policy.objects.select_for_update().get(pk=policy.pk)
    latest = policy.versions.aggregate(number=Max("number"))["number"] or 0
    version = PolicyVersion(
        policy=policy,
        number=latest + 1,
        title=compiled.title,
        text=text,
        digest=compiled.digest,
        resolved=compiled.resolved_bytes,
        resolved_digest=compiled.resolved_digest,
        semantics=compiled.semantics,
        proposed_by=actor.reference,
    )
    version.save()
    if made:
        audit.record(
            audit.Event(action="policy.registered", actor=actor, target=("policy", policy.name), new={"title": policy.title})
        )
    audit.record(
        audit.Event(
            action="policy_version.proposed",
            actor=actor,
            target=("policy_version", f"{policy.name}@{version.number}"),
            digests={"policy": version.digest, "resolved": version.resolved_digest},
        )
    )
    return version
