"""Reactions to what lower floors announce: one line each, enqueue a task with ids."""

from typing import Any

from django.dispatch import receiver

from evaluations.signals import metric_redefined, subject_versions_changed
from policies import tasks
from policies.signals import policies_changed, system_changed


@receiver(subject_versions_changed)
def judge_after_change(*, subject_version_ids: list[int], **_: Any) -> None:
    tasks.judge_subject_versions.delay(subject_version_ids)


@receiver(metric_redefined)
def judge_after_redefinition(*, metric: str, **_: Any) -> None:
    tasks.judge_by_metric.delay(metric)


@receiver(policies_changed)
def judge_after_policy_change(*, policy_ids: list[int], on_behalf_of: dict[str, Any] | None, **_: Any) -> None:
    tasks.judge_policies.delay(policy_ids, on_behalf_of)


@receiver(system_changed)
def judge_after_system_change(**_: Any) -> None:
    # A system in a new domain, or with bindings of its own, brings keys into play that nobody has judged: those are due.
    tasks.judge_due.delay()
