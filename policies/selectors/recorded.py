"""When anything was recorded that a judgement could have known from then on."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from evaluations.models import AliasAssignment, Evidence, Metric, Ruling, SubjectVersion, TrustAssignment
from policies.models import Binding, PolicyActivation


def recorded_instants(*, since: datetime, until: datetime) -> list[datetime]:
    """Return the distinct instants in (since, until] at which evidence, a ruling, a name, trust in a source, a metric, a subject's
    version, an activation or a binding was recorded, oldest first."""
    found: set[datetime] = set()
    tables: Sequence[tuple[QuerySet, str]] = (  # type: ignore[type-arg]
        *((model.objects.order_by(), "recorded_at") for model in (
            Evidence, Ruling, AliasAssignment, TrustAssignment, Metric, PolicyActivation, Binding
        )),
        (SubjectVersion.objects.order_by(), "registered_at"),
    )  # fmt: skip
    for rows, column in tables:
        within = rows.filter(**{f"{column}__gt": since, f"{column}__lte": until})
        found.update(within.values_list(column, flat=True).distinct())
    return sorted(found)


def thinned(instants: Sequence[datetime], most: int) -> list[datetime]:
    """Return at most so many of the instants, spread evenly over their order, the last one always among them."""
    if len(instants) <= most:
        return list(instants)
    return [instants[(number + 1) * len(instants) // most - 1] for number in range(most)]
