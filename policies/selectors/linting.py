"""What the registry tells the policy lint."""

from evaluations.models import TrustAssignment
from evaluations.selectors.registry import metric_definitions
from evaluations.vocabulary import Domain, SubjectKind
from policies.language.lint import Known
from policies.vocabulary import Environment


def known_to_lint() -> Known:
    """Return the registered metrics, the tier of each source, and the closed lists that conditions can read."""
    tiers = TrustAssignment.objects.order_by("source__key", "-id").distinct("source__key").values_list("source__key", "tier")
    values = {
        "resource.domain": frozenset(Domain.values),
        "resource.environment": frozenset(Environment.values),
        "subject.kind": frozenset(SubjectKind.values),
    }
    return Known(metrics=metric_definitions(), values=values, trust=dict(tiers))
