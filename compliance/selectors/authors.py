"""Who wrote a policy version: everybody who proposed it, or saved or proposed a text on the way to it."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef

from policies.models import Policy, PolicyActivation, PolicyDraft, PolicyVersion


def authors_of(versions: Collection[PolicyVersion]) -> set[str]:
    """Return the actors, as rows cite them, who proposed these versions or any after the version in force before each, and who saved a
    draft of the policy in that time, or one of the very same bytes at any time.

    Whoever edited the draft on its way has written a part of it, and does not sign for it.
    """
    authors: set[str] = set()
    policies = {version.policy_id for version in versions}
    was_active = Exists(PolicyActivation.objects.filter(version=OuterRef("pk")))
    proposed = list(
        PolicyVersion.objects.filter(policy__in=policies)
        .annotate(was_active=was_active)
        .values_list("policy_id", "number", "proposed_by", "recorded_at", "was_active")
    )
    names = Policy.objects.filter(pk__in=policies).values("name")
    drafts = list(
        PolicyDraft.objects.filter(policy_name__in=names)
        .order_by()
        .values_list("policy_name", "digest", "edited_by", "recorded_at")
    )
    for version in versions:
        own = [row[1:] for row in proposed if row[0] == version.policy_id]
        since = max((number for number, _, _, active in own if active and number < version.number), default=0)
        authors.update(proposed_by for number, proposed_by, _, _ in own if since < number <= version.number)
        begun = next((recorded_at for number, _, recorded_at, _ in own if number == since), None)
        authors.update(
            edited_by
            for name, digest, edited_by, saved_at in drafts
            if name == version.policy.name
            and (digest == version.digest or ((begun is None or saved_at > begun) and saved_at <= version.recorded_at))
        )
    return authors
