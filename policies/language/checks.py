"""What depends on names: unknown ones, polarity, ranges, bars, quorum and conditions. Every finding, with its place.

The checks read the tree, not the shaped policy, and skip what is not there or of the wrong kind: a text with a mistyped
key is told about its unknown metric in the same answer.
"""

from collections.abc import Mapping
from decimal import Decimal

from policies.language.conditions import FILTER_VARIABLES, WHEN_VARIABLES, ConditionRefused, compile_condition
from policies.language.document import Node, shown
from policies.language.names import MetricLike
from policies.language.noting import child, entries, items, text_of
from policies.language.results import DOMAIN_SLICE, OVERALL_SLICE
from policies.language.rule_checks import RuleChecks, suiting_bound


class Checks(RuleChecks):
    """One pass over one text; `problems` is what it leaves behind."""

    def run(self) -> None:
        if not isinstance(self.root.value, dict) or self.spec is None:
            return
        profile = text_of(child(child(self.root, "metadata"), "profile")) or ""
        self.condition(child(child(self.spec, "appliesTo"), "when"), WHEN_VARIABLES)
        self.unique(items(child(child(self.spec, "appliesTo"), "actions")), "action")
        if profile == "conformance":
            self.conformance()
        else:
            self.requirements()
        self.forbid()

    # Sections.

    def conformance(self) -> None:
        spec = entries(self.spec)
        for section in ("params", "evidence", "rules", "sign_offs", "grant", "drift", "tests"):
            if section in spec:
                self.note(
                    self.key_place(self.spec, section),
                    f"`{section}` may not stand in a policy of the profile `conformance`",
                    "profile",
                    "leave it out: such a policy has `appliesTo` and `forbid` only, and gives neither verdict nor grant",
                )

    def requirements(self) -> None:
        spec = entries(self.spec)
        if "rules" not in spec or "evidence" not in spec:
            missing = "rules" if "rules" not in spec else "evidence"
            self.note(
                self.key_place(self.root, "spec"),
                f"`{missing}` is missing in `spec`: a policy without requirements approves nothing",
                "policy_has_no_requirements",
                "write at least one rule over evidence",
            )
        elif isinstance(spec["rules"].value, list) and not spec["rules"].value:
            self.note(
                self.key_place(self.spec, "rules"),
                "the policy has no rules: a policy without requirements approves nothing",
                "policy_has_no_requirements",
                "write at least one rule over evidence",
            )
        if "evidence" in spec and isinstance(spec["evidence"].value, dict) and not spec["evidence"].value:
            self.note(self.key_place(self.spec, "evidence"), "`evidence` names nothing that must be known", "empty_list")
        for section in ("sign_offs", "grant"):
            if section not in spec:
                self.note(
                    self.key_place(self.root, "spec"),
                    f"`{section}` is missing in `spec`; it has no default",
                    "missing_key",
                )
        for name, node in self.clauses.items():
            self.clause(name, node)
        self.rules()
        for name in self.clauses:
            if name not in self.used_clauses:
                self.note(
                    self.key_place(child(self.spec, "evidence"), name),
                    f"no rule reads the evidence {shown(name)}",
                    "unused_evidence",
                    "write a rule for it, or take it out: evidence without a rule requires nothing",
                )
        self.unused_params()
        self.sign_offs()
        self.grant()
        self.drift()
        self.tests()

    def clause(self, name: str, node: Node) -> None:
        metric_node, statistic = child(node, "metric"), child(node, "statistic")
        metric = self.metric_of(name)
        if metric_node is not None and metric is None and text_of(metric_node):
            self.unknown(metric_node, "metric", str(metric_node.value), self.names.metrics, "unknown_metric")
        self.versions(node)
        slice_node = child(node, "slice")
        wanted = text_of(slice_node)
        known_slices = self.names.slices
        if slice_node is not None and wanted and known_slices is not None:
            slices = {*known_slices, OVERALL_SLICE, DOMAIN_SLICE}
            if wanted not in slices:
                self.unknown(slice_node, "slice", wanted, slices)
        if metric is not None and statistic is not None:
            self.statistic(statistic, str(metric_node.value) if metric_node else "", metric)
        prefer = items(child(node, "prefer"))
        self.unique(prefer, "source")
        for source in prefer:
            if self.names.sources is not None and text_of(source) and source.value not in self.names.sources:
                self.unknown(source, "source", source.value, self.names.sources)

    def versions(self, node: Node) -> None:
        benchmark_node = child(node, "benchmark")
        benchmark = text_of(benchmark_node)
        versions = items(child(node, "versions"))
        self.unique(versions, "version")
        if benchmark_node is None or not benchmark:
            return
        if benchmark not in self.names.benchmarks:
            self.unknown(benchmark_node, "benchmark", benchmark, self.names.benchmarks, "unknown_benchmark")
            return
        known, metric = self.names.benchmarks[benchmark], text_of(child(node, "metric"))
        for version in versions:
            if text_of(version) and version.value not in known:
                self.unknown(version, f"version of `{benchmark}`:", version.value, known, "unknown_version")
            carried = self.names.carried.get((benchmark, text_of(version) or ""))
            if carried is not None and metric in self.names.metrics and metric not in carried:
                told = f"`{benchmark}` `{version.value}` does not carry `{metric}`: no evidence of it could ever be recorded"
                self.note(version, told, "metric_not_carried", f"it carries {', '.join(sorted(carried))}")

    def statistic(self, node: Node, name: str, metric: MetricLike) -> None:
        chosen = text_of(node)
        if chosen not in {"lower_bound", "upper_bound"}:
            return
        if metric.unit != "percent":
            self.note(
                node,
                f"`{chosen}` needs a rate, and `{name}` is measured in {metric.unit}",
                "bound_without_rate",
                "write `point`, or leave `statistic` out",
            )
            return
        suiting = suiting_bound(metric)
        if chosen != suiting:
            self.note(
                node,
                f"`{chosen}` flatters `{name}`, where {metric.better} is better",
                "statistic_against_polarity",
                f"write `{suiting}`",
            )

    # Sign-offs, grant, drift, tests.

    def forbid(self) -> None:
        seen: dict[str, int] = {
            str(node.value): node.line
            for rule in items(child(self.spec, "rules"))
            if (node := child(rule, "id")) and text_of(node)
        }
        for guardrail in items(child(self.spec, "forbid")):
            self.own_id(guardrail, seen, "guardrail")
            self.condition(child(guardrail, "when"), WHEN_VARIABLES)

    def sign_offs(self) -> None:
        node = child(self.spec, "sign_offs")
        seen: dict[str, int] = {}
        for factor in items(child(node, "all_of")):
            self.own_id(factor, seen, "factor", "factor")
            role = child(factor, "role")
            if role is not None and text_of(role) and role.value not in self.names.roles:
                self.unknown(role, "role", role.value, self.names.roles, "unknown_role")
            self.condition(child(factor, "filter"), FILTER_VARIABLES)
        exclude = child(node, "exclude")
        self.unique(items(exclude), "word")
        if exclude is not None and exclude.value == []:
            self.note(
                self.key_place(node, "exclude"),
                "the list is empty, so the requester could sign for herself",
                "empty_list",
                "leave `exclude` out to exclude all three",
            )

    def grant(self) -> None:
        node = child(self.spec, "grant")
        longest, recertify = child(node, "max_days"), child(node, "recertify_every_days")
        if longest is None or recertify is None:
            return
        if isinstance(longest.value, Decimal) and isinstance(recertify.value, Decimal) and recertify.value > longest.value:
            self.note(
                recertify,
                f"a grant of {longest.value:f} days ends before it is recertified after {recertify.value:f}",
                "recertify_after_end",
                f"write at most {longest.value:f}",
            )

    def drift(self) -> None:
        node = child(child(self.spec, "drift"), "max_fall")
        for name in entries(node):
            if name not in self.clauses:
                self.unknown(Node(name, *self.key_place(node, name)), "evidence", name, self.clauses, "unknown_evidence")

    def tests(self) -> None:
        seen: dict[str, int] = {}
        rules = {text_of(child(rule, "id")) or "" for rule in items(child(self.spec, "rules"))} - {""}
        for test in items(child(self.spec, "tests")):
            self.own_id(test, seen, "test", "name")
            facts = child(test, "facts")
            for name, fact in entries(facts).items():
                if name not in self.clauses:
                    place = Node(name, *self.key_place(facts, name))
                    self.unknown(place, "evidence", name, self.clauses, "unknown_evidence")
                self.fact(fact)
            expect = child(test, "expect")
            if expect is not None and expect.value == {}:
                self.note(expect, "the test expects nothing", "empty_test", "write `outcome`, `rules`, or both")
            expected = child(expect, "rules")
            for name in entries(expected):
                if name not in rules:
                    self.unknown(Node(name, *self.key_place(expected, name)), "rule", name, rules, "unknown_rule")

    def fact(self, node: Node) -> None:
        held = entries(node)
        whole: list[str] = [kind for kind in ("result", "observations") if kind in held]
        if whole and len(held) > 1:
            self.note(node, f"`{whole[0]}` stands alone in a test fact", "test_fact", "leave the other keys out")
            return
        for observation in items(held.get("observations")) if "observations" in held else [node]:
            self.observation(observation, whole)

    def observation(self, node: Node, whole: list[str]) -> None:
        held = entries(node)
        if "result" in whole or not isinstance(node.value, dict):
            return
        numbers = {key: item.value for key, item in held.items() if isinstance(item.value, Decimal)}
        if "value" not in held and not ("k" in held and "n" in held):
            self.note(node, "a test observation states `value`, or `k` and `n`", "test_fact")
        if "k" in numbers and "n" in numbers and not 0 <= numbers["k"] <= numbers["n"]:
            self.note(held["k"], f"k is {numbers['k']:f} of n {numbers['n']:f}", "test_fact", "write k from 0 to n")
        lost = numbers.get("errored", Decimal(0)) + numbers.get("unscored", Decimal(0))
        if "n" in numbers and lost > numbers["n"]:
            self.note(node, f"errored and unscored are {lost:f} of n {numbers['n']:f}", "test_fact")

    # Parts.

    def condition(self, node: Node | None, variables: Mapping[str, str]) -> None:
        if node is None or not text_of(node):
            return
        try:
            compile_condition(node.value, variables)
        except ConditionRefused as error:
            for finding in error.findings:
                place = (node.line, node.column + node.lead + finding.column - 1) if node.inline else (node.line, node.column)
                self.note(place, f"{finding.message}, in {shown(node.value)}", finding.code)
