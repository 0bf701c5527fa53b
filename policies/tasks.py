"""Celery entry points of the policies app: load ids, call one service. Each can run twice without harm.

`on_behalf_of` is the value of the actor who wanted it, None where nobody asked: events name the job, its task and this actor.
"""

from typing import Any

from celery import shared_task

from evaluations.kernel.actor import Actor, from_value, system_job
from policies.selectors.policies import policies_reading
from policies.selectors.verdicts import DUE_AT_ONCE, due_subject_version_ids
from policies.services.rejudging import judge_changed_policies, judge_everywhere

JUDGED_IN_A_TASK = 500
"""So many subject versions are one message's work, well within a task's time limit; more are handed on, and any worker takes them."""


@shared_task(bind=True)
def judge_subject_versions(
    self: Any, subject_version_ids: list[int], on_behalf_of: dict[str, Any] | None = None
) -> dict[str, int]:
    """Judge these subject versions by every policy version that is kept judged, as far as anything about them has changed."""
    first, rest = subject_version_ids[:JUDGED_IN_A_TASK], subject_version_ids[JUDGED_IN_A_TASK:]
    for start in range(0, len(rest), JUDGED_IN_A_TASK):
        judge_subject_versions.delay(rest[start : start + JUDGED_IN_A_TASK], on_behalf_of)
    actor = _job(self, "judge-after-change", on_behalf_of)
    return judge_everywhere(actor=actor, subject_version_ids=first)._asdict()


@shared_task(bind=True)
def judge_policies(
    self: Any, policy_ids: list[int], on_behalf_of: dict[str, Any] | None = None, after: int = 0
) -> dict[str, int | None]:
    """Judge all that a change of these policies concerns: one slice now, the next by a message of its own."""
    actor = _job(self, "judge-after-policy-change", on_behalf_of)
    done = judge_changed_policies(actor=actor, policy_ids=policy_ids, after=after)
    if done.last is not None:
        judge_policies.delay(policy_ids, on_behalf_of, done.last)
    return done._asdict()


@shared_task(bind=True)
def judge_by_metric(self: Any, metric: str, on_behalf_of: dict[str, Any] | None = None) -> list[int]:
    """Have every subject judged anew by the policies that read a metric, since it has another definition."""
    policy_ids = policies_reading(metric)
    if policy_ids:
        judge_policies.delay(policy_ids, on_behalf_of)
    return policy_ids


@shared_task(bind=True)
def judge_due(self: Any, after: int = 0) -> dict[str, int]:
    """Find by query what a lost message or the mere passing of time has left unjudged, and judge it: one slice now, the next by a
    message of its own."""
    ids = due_subject_version_ids(after=after, limit=DUE_AT_ONCE)
    done = judge_everywhere(actor=_job(self, "judge-due"), subject_version_ids=ids)
    if len(ids) == DUE_AT_ONCE:
        judge_due.delay(ids[-1])
    return done._asdict()


def _job(task: Any, name: str, on_behalf_of: dict[str, Any] | None = None) -> Actor:
    behalf = from_value(on_behalf_of) if on_behalf_of else None
    return system_job(name, on_behalf_of=behalf, task_id=str(task.request.id or ""))
