"""Checks of rules and their bars: shape, names, polarity, ranges, and how parameters are used."""

from decimal import Decimal

from policies.language.document import Node, shown
from policies.language.names import MetricLike, Names
from policies.language.noting import Notes, Place, child, entries, items, text_of
from policies.language.results import Enforcement


class RuleChecks(Notes):
    """The part of the checks that reads `spec.rules` and `spec.params`."""

    def __init__(self, root: Node, names: Names, filename: str) -> None:
        super().__init__(root, filename)
        self.names = names
        self.spec = child(root, "spec")
        self.clauses = entries(child(self.spec, "evidence"))
        self.params = entries(child(self.spec, "params"))
        self.used_clauses: set[str] = set()
        self.param_uses: dict[str, set[str]] = {}

    def rules(self) -> None:
        seen: dict[str, int] = {}
        deciding = 0
        rules = items(child(self.spec, "rules"))
        for rule in rules:
            self.own_id(rule, seen, "rule")
            deciding += text_of(child(rule, "enforcement")) != Enforcement.ADVISORY
            self.branch(rule, "a rule")
        if rules and not deciding:
            self.note(
                self.key_place(self.spec, "rules"),
                "every rule is advisory, and advisory rules never decide: everything would pass",
                "policy_has_no_requirements",
                "make at least one rule `hard` or `soft`",
            )

    def branch(self, node: Node, what: str) -> None:
        held = entries(node)
        if not isinstance(node.value, dict):
            return
        kinds = [kind for kind in ("evidence", "all_of", "any_of") if kind in held]
        if len(kinds) != 1:
            having = "none" if not kinds else " and ".join(f"`{kind}`" for kind in kinds)
            self.note(node, f"{what} has one of `evidence`, `all_of` and `any_of`; here is {having}", "rule_shape")
        bars = [side for side in ("at_least", "at_most") if side in held]
        if "evidence" in held:
            if len(bars) != 1:
                having = "neither" if not bars else "both"
                self.note(node, f"{what} over evidence has one of `at_least` and `at_most`; here are {having}", "rule_shape")
            for side in bars:
                self.comparison(held["evidence"], side, held[side], self.key_place(node, side))
            name = text_of(held["evidence"])
            if name:
                self.used_clauses.add(name)
                if name not in self.clauses:
                    self.unknown(held["evidence"], "evidence", name, self.clauses, "unknown_evidence")
        elif bars:
            self.note(self.key_place(node, bars[0]), f"`{bars[0]}` stands here without `evidence`", "rule_shape")
        for kind in ("all_of", "any_of"):
            for branch in items(held.get(kind)):
                self.branch(branch, "a branch")

    def comparison(self, evidence: Node, side: str, bar: Node, place: Place) -> None:
        floor = side == "at_least"
        name = text_of(evidence) or ""
        metric = self.metric_of(name)
        if metric is not None and floor != (metric.better == "higher"):
            other = "at_most" if floor else "at_least"
            what = "a floor would ask for the worse" if floor else "a ceiling would ask for the worse"
            self.note(
                place,
                f"`{side}` on {shown(name)}, whose metric `{text_of(child(self.clauses[name], 'metric'))}` is better when "
                f"{metric.better}: {what}",
                "polarity",
                f"write `{other}`",
            )
        if isinstance(bar.value, dict):
            self.param_use(bar, side, metric)
        elif isinstance(bar.value, Decimal) and metric is not None:
            self.in_range(bar, bar.value, metric)

    def param_use(self, bar: Node, side: str, metric: MetricLike | None) -> None:
        reference = child(bar, "param")
        name = text_of(reference)
        if reference is None or not name:
            return
        if name not in self.params:
            self.unknown(reference, "parameter", name, self.params, "unknown_param")
            return
        sides = self.param_uses.setdefault(name, set())
        sides.add(side)
        if len(sides) == 2:
            self.note(
                reference,
                f"the parameter {shown(name)} is a floor in one rule and a ceiling in another: tightening it would loosen one",
                "param_both_ways",
                "write two parameters",
            )
        number = self.params[name].value
        if metric is not None and isinstance(number, Decimal):
            self.in_range(self.params[name], number, metric)

    def in_range(self, node: Node, number: Decimal, metric: MetricLike) -> None:
        if number < metric.minimum or (metric.maximum is not None and number > metric.maximum):
            top = f"{metric.maximum:f}" if metric.maximum is not None else "any number"
            message = f"the bar {number:f} is outside the metric's range, {metric.minimum:f} to {top}"
            if not any(found.message == message and found.line == node.line for found in self.problems):
                self.note(node, message, "bar_out_of_range", "such a rule would always or never pass")

    def unused_params(self) -> None:
        for name in self.params:
            if name not in self.param_uses:
                self.note(
                    self.key_place(child(self.spec, "params"), name),
                    f"no rule uses the parameter {shown(name)}",
                    "unused_param",
                    f"write `{{param: {name}}}` in a rule, or take it out",
                )

    def metric_of(self, clause: str) -> MetricLike | None:
        name = text_of(child(self.clauses.get(clause), "metric"))
        return self.names.metrics.get(name) if name else None


def suiting_bound(metric: MetricLike) -> str:
    """Return the bound that suits a rate's polarity."""
    return "lower_bound" if metric.better == "higher" else "upper_bound"
