"""What one task costs a subject, as evidence says it: for telling what evidence would likely cost. No judgement reads this."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from evaluations.models import SubjectVersion
from evaluations.selectors.evidence import observations_about
from evaluations.selectors.registry import benchmark_versions
from policies.language.facts import Facts
from policies.language.flipping import Costs
from policies.language.results import COMPLETE, Ruling
from policies.language.ways import TaskCost

COST_METRIC = "cost_per_task_usd"


def digests_in(facts: Facts) -> list[str]:
    """Return the version digests of whoever would be measured: the subject, or the models that its route reaches."""
    return [facts.subject_version_digest, *(member.subject_version_digest for member in facts.route or ())]


def task_costs(digests: Collection[str], *, known_at: datetime) -> Costs:
    """Return, by subject version digest, the highest stated cost of a task on each benchmark, as known at an instant.

    What was retracted, or is of a run that did not complete, is left out; whoever stated the rest is believed, for nothing rests on it.
    """
    digest_of = dict(SubjectVersion.objects.filter(digest__in=digests).values_list("pk", "digest"))
    found = observations_about(digest_of, metrics=[COST_METRIC], benchmarks=list(benchmark_versions()), known_at=known_at)
    costs: dict[str, list[TaskCost]] = {}
    for pk, seen in found.items():
        highest: dict[str, Decimal] = {}
        for item in seen:
            if item.ruling != Ruling.RETRACTED and item.run_status == COMPLETE and item.value.is_finite() and item.value >= 0:
                highest[item.benchmark] = max(item.value, highest.get(item.benchmark, item.value))
        # Two subjects may be pinned alike.
        costs.setdefault(digest_of[pk], []).extend(TaskCost(usd, benchmark) for benchmark, usd in sorted(highest.items()))
    return costs
