"""What the registry tells the policy lint, and what can be said of a stored policy text by itself."""

from functools import lru_cache
from typing import NamedTuple

from evaluations.models import TrustAssignment
from evaluations.selectors.registry import metric_definitions
from evaluations.vocabulary import Domain, SubjectKind
from policies.language.compiler import CONFORMANCE, compile_policy
from policies.language.lint import BLOCKING, Finding, Known, lint
from policies.language.lint_places import Places
from policies.language.names import MetricLike, Names
from policies.language.results import SEMANTICS
from policies.language.testing import TestReport, run_tests
from policies.models import PolicyVersion
from policies.vocabulary import Environment

CHECKED_KEPT = 1_024
_VALUES = {
    "resource.domain": frozenset(Domain.values),
    "resource.environment": frozenset(Environment.values),
    "subject.kind": frozenset(SubjectKind.values),
}


class ToldTest(NamedTuple):
    """How one of a policy's own tests came out, and the line (from 1) on which it stands."""

    report: TestReport
    line: int


class Checked(NamedTuple):
    """What is said of one policy text: the findings of the lint and the reports of its own tests, each in the order of the text.

    `untested` is true where it has no test and needs one: a policy of the profile `conformance` has no rules that a test could try.
    """

    findings: tuple[Finding, ...]
    tests: tuple[ToldTest, ...]
    untested: bool

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that keep it from coming into force."""
        return tuple(finding for finding in self.findings if finding.code in BLOCKING)

    @property
    def blocked(self) -> bool:
        """Whether anything here keeps it from coming into force: a finding that blocks, a red test, or none at all."""
        return bool(self.blocking or self.red or self.untested)

    @property
    def red(self) -> tuple[ToldTest, ...]:
        """The tests that fail."""
        return tuple(told for told in self.tests if not told.report.passed)


def known_to_lint() -> Known:
    """Return the registered metrics, the tier of each source, and the closed lists that conditions can read."""
    tiers = TrustAssignment.objects.order_by("source__key", "-id").distinct("source__key").values_list("source__key", "tier")
    return Known(metrics=metric_definitions(), values=_VALUES, trust=dict(tiers))


def check_version(version: PolicyVersion) -> Checked:
    """Return what lint and tests say of a stored version, by the metric definitions registered now.

    It does not depend on people and on sources: those come and go, and whether enough people could sign is asked of each request.
    So it is worked out once for a text, and kept.
    """
    return _checked(bytes(version.text), version.digest, SEMANTICS, tuple(sorted(metric_definitions().items())))


@lru_cache(maxsize=CHECKED_KEPT)
def _checked(text: bytes, _digest: str, _semantics: int, metrics: tuple[tuple[str, MetricLike], ...]) -> Checked:
    compiled = compile_policy(text, Names.for_replay(dict(metrics)))
    places = Places(text)
    return Checked(
        lint(compiled, Known(metrics=dict(metrics), values=_VALUES)),
        tuple(ToldTest(report, places.test(report.name)[0]) for report in run_tests(compiled)),
        not compiled.tests and compiled.profile != CONFORMANCE,
    )
