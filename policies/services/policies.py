"""Policies and their versions: proposing them. Activations and bindings stand in modules of their own."""

from django.db.models import Max

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service
from policies.language.compiler import compile_policy
from policies.models import Policy, PolicyVersion
from policies.selectors.policies import known_names


@service(refused="policy_version.refused")
def propose_policy_version(*, actor: Actor, text: bytes, filename: str = "") -> PolicyVersion:
    """Store a policy text as the next version of the policy it names; the same bytes again return the version that is there.

    Raises `PolicyRefused` with every problem of the text.
    """
    return apply_propose_policy_version(actor=actor, text=text, filename=filename)


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
