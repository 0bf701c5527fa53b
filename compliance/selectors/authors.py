"""Who wrote a policy version: everybody who proposed it or a draft on the way to it."""

from collections.abc import Collection

from policies.models import PolicyActivation, PolicyVersion


def authors_of(versions: Collection[PolicyVersion]) -> set[str]:
    """Return the actors, as rows cite them, who proposed these versions or any after the version in force before each.

    Whoever edited the draft on its way has written a part of it, and does not sign for it.
    """
    authors: set[str] = set()
    activated = {
        (policy, number)
        for policy, number in PolicyActivation.objects.filter(policy__in={version.policy_id for version in versions})
        .order_by()
        .values_list("policy_id", "version__number")
    }
    drafts = PolicyVersion.objects.filter(policy__in={version.policy_id for version in versions}).values_list(
        "policy_id", "number", "proposed_by"
    )
    for version in versions:
        before = [number for policy, number in activated if policy == version.policy_id and number < version.number]
        since = max(before, default=0)
        authors.update(
            proposed_by
            for policy, number, proposed_by in drafts
            if policy == version.policy_id and since < number <= version.number
        )
    return authors
