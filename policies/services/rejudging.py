"""Which judgements a change calls for: a walk over batches of subjects, each judged by all policies in one service call.

Not a service itself: it opens no transaction, and what it has done before an interruption stays done.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from evaluations.kernel.actor import Actor
from evaluations.models import SubjectVersion
from policies.models import Policy, PolicyVersion
from policies.selectors.bindings import judged_keys
from policies.selectors.policies import versions_to_keep_judged
from policies.selectors.verdicts import rejudged_subject_version_ids
from policies.services.verdicts import PAIRS_AT_ONCE, Judged, judge_batch
from policies.signals import policies_rejudged

JUDGED_AT_ONCE = 1_000
"""So many subject versions are one slice of the walk after a policy's change."""


class Slice(NamedTuple):
    """What one slice of a long walk did; `last` is the subject version after which the next begins, None at the end."""

    judged: int
    new: int
    last: int | None


def judge_everywhere(
    *,
    actor: Actor,
    subject_version_ids: Sequence[int],
    policy_versions: Sequence[PolicyVersion] | None = None,
    progress: Callable[[int], None] | None = None,
    fully: bool = False,
) -> Judged:
    """Judge subject versions by every policy version that is kept judged, in every domain, as written and as bindings tighten it.

    Only what can have changed is judged (see `judge_batch`), unless `fully`. `progress` hears of each batch.
    """
    ids = sorted(set(subject_version_ids))
    keys = judged_keys(versions_to_keep_judged() if policy_versions is None else policy_versions)
    judged = new = 0
    at_once = max(1, PAIRS_AT_ONCE // max(1, len(keys)))
    for start in range(0, len(ids) if keys else 0, at_once):
        batch = ids[start : start + at_once]
        versions = list(SubjectVersion.objects.filter(pk__in=batch).select_related("subject").order_by("pk"))
        if not versions:
            continue
        done = judge_batch(actor=actor, keys=keys, versions=versions, fully=fully)
        judged, new = judged + done.judged, new + done.new
        if progress is not None:
            progress(done.judged)
    return Judged(judged, new)


def judge_changed_policies(*, actor: Actor, policy_ids: Sequence[int], after: int = 0, limit: int = JUDGED_AT_ONCE) -> Slice:
    """Judge one slice of the subject versions that a change of these policies concerns, by these policies alone.

    The slice is announced even where no verdict is new: after an activation the same verdicts may carry more, or less, than before.
    """
    ids = rejudged_subject_version_ids(policy_ids, after=after, limit=limit)
    if not ids:
        return Slice(0, 0, None)
    done = judge_everywhere(actor=actor, subject_version_ids=ids, policy_versions=versions_to_keep_judged(policy_ids))
    asked_by = actor.asked_by
    policies_rejudged.send_robust(
        sender=Policy,
        policy_ids=list(policy_ids),
        subject_version_ids=ids,
        on_behalf_of=asked_by.as_value() if asked_by else None,
    )
    return Slice(done.judged, done.new, ids[-1] if len(ids) == limit else None)
