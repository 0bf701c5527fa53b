"""The policy lint: what a policy that compiles would let through, and what its author may not have meant.

Every finding is seen from what happens when made-up evidence is judged, made-up questions are asked, and the policy's own
tests are run on changed policies (`lint_probes`, `lint_questions`, `lint_mutants`): a word that is there and does nothing
satisfies no check. A blocking finding says that the policy must not be put in force; a warning is for those who sign.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from policies.language.compiled import Assertion, Clause, CompiledPolicy
from policies.language.compiler import CONFORMANCE
from policies.language.conditions import Answer
from policies.language.lint_mutants import try_mutants
from policies.language.lint_places import Places
from policies.language.lint_probes import LONG_AGO_DAYS, ClauseProbe, Slip, deciding, gives, refusal_slip, stands_alone, worst
from policies.language.lint_questions import Person, Questions
from policies.language.names import MetricLike
from policies.language.noting import Place
from policies.language.results import OVERALL_SLICE, Result

__all__ = ["BLOCKING", "MEANINGS", "Code", "Finding", "Known", "Level", "Person", "lint"]

SUPPLEMENT = "supplement"
_HARM, _STEP = "harm", "step"


class Level(StrEnum):
    """`block` stops activation; `warn` is shown to signers."""

    BLOCK = "block"
    WARN = "warn"


class Code(StrEnum):
    """What a finding is about. Codes are added, never renamed."""

    REFUSAL_ONLY = "refusal-only"
    STEP_LEVEL_METRIC = "step-level-metric"
    ALWAYS_PASSES = "always-passes"
    NEVER_APPLIES = "never-applies"
    CALLER_CLAIM = "caller-claim"
    UNSATISFIABLE_QUORUM = "unsatisfiable-quorum"
    ARCHIVE_ONLY = "archive-only"
    POINT_ESTIMATE = "point-estimate"
    NO_SAMPLE_FLOOR = "no-sample-floor"
    NO_AGE_LIMIT = "no-age-limit"
    AVERAGE_OVER_DOMAINS = "average-over-domains"
    VENDOR_ONLY = "vendor-only"
    SELF_JUDGED_ALLOWED = "self-judged-allowed"
    UNTESTED_RULE = "untested-rule"
    SURVIVING_MUTANT = "surviving-mutant"


MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Code.REFUSAL_ONLY: "With perfect refusal the policy passes, whatever harm is done",
        Code.STEP_LEVEL_METRIC: "A rate of single checks stands for success of whole tasks",
        Code.ALWAYS_PASSES: "A comparison passes at the worst value there is",
        Code.NEVER_APPLIES: "A condition that no question meets, or guardrails that stop every one",
        Code.CALLER_CLAIM: "A condition believes what the caller says of itself",
        Code.UNSATISFIABLE_QUORUM: "A sign-off that nobody, or too few people, could give",
        Code.ARCHIVE_ONLY: "Evidence of the least trusted sources is enough",
        Code.POINT_ESTIMATE: "A rate is compared without regard to chance",
        Code.NO_SAMPLE_FLOOR: "A handful of tasks is enough",
        Code.NO_AGE_LIMIT: "Evidence of any age is enough",
        Code.AVERAGE_OVER_DOMAINS: "How the subject does in the system's own domain is not looked at",
        Code.VENDOR_ONLY: "The word of a vendor about its own model is enough",
        Code.SELF_JUDGED_ALLOWED: "Results that the vendor itself counted are enough",
        Code.UNTESTED_RULE: "A rule that no test of the policy makes fail",
        Code.SURVIVING_MUTANT: "A change of the policy that none of its tests notices",
    }
)
"""What each code means, in one sentence."""

BLOCKING: frozenset[str] = frozenset(list(Code)[: list(Code).index(Code.ARCHIVE_ONLY) + 1])
_ORDER = {code.value: number for number, code in enumerate(Code)}


class Finding(NamedTuple):
    """One finding. `line` and `column` count from 1; `place` names the part of the policy, as in `spec.rules.harm`."""

    code: str
    level: str
    message: str
    line: int
    column: int
    hint: str
    place: str


class Known(NamedTuple):
    """What the lint must know beside the policy, as values.

    `metrics` are the registered definitions; a metric that is not among them is no metric of harm. `values` holds the
    closed lists of variables (`resource.domain`, …), `trust` the tier of each known source. `people` are all accounts,
    None where they are not known: then a company that has enough of everybody is assumed.
    """

    metrics: Mapping[str, MetricLike]
    values: Mapping[str, AbstractSet[str]] = MappingProxyType({})
    trust: Mapping[str, str] = MappingProxyType({})
    people: Sequence[Person] | None = None


def lint(compiled: CompiledPolicy, known: Known) -> tuple[Finding, ...]:
    """Return every finding about a compiled policy, in the order of its text. Never raises for what a policy says."""
    linter = _Linter(compiled, known)
    found = [*linter.conditions()]
    if compiled.profile != CONFORMANCE:
        found += [*linter.quorum(), *linter.rules(), *linter.evidence(), *linter.tests()]
    return tuple(sorted(dict.fromkeys(found), key=lambda item: (item.line, item.column, _ORDER[item.code])))


class _Linter:
    def __init__(self, compiled: CompiledPolicy, known: Known) -> None:
        self.compiled = compiled
        self.known = known
        self.places = Places(compiled.text)
        # Kinds and domains of a conformance policy are whatever its attributes say.
        values = {} if compiled.profile == CONFORMANCE else known.values
        self.questions = Questions(compiled, values, known.people)
        self.domains = self.questions.domains()
        self.reading: dict[str, list[Assertion]] = defaultdict(list)
        for _, _, item in deciding(compiled):
            self.reading[item.clause.name].append(item)

    def find(self, code: Code, at: Place, place: str, message: str, hint: str) -> Finding:
        level = Level.BLOCK if code in BLOCKING else Level.WARN
        return Finding(code.value, level.value, message, *at, hint, place)

    # Conditions and people.

    def conditions(self) -> Iterator[Finding]:
        compiled, places = self.compiled, self.places
        stated = [] if compiled.applies_when is None else [(compiled.applies_when, places.when(), "spec.appliesTo.when")]
        stated += [(item.when, places.guardrail(item.id), f"spec.forbid.{item.id}") for item in compiled.forbid]
        if compiled.sign_offs is not None:
            stated += [
                (item.filter, places.filter(item.factor), f"spec.sign_offs.{item.factor}")
                for item in compiled.sign_offs.all_of
                if item.filter is not None
            ]
        if compiled.profile != CONFORMANCE:
            for condition, at, place in stated:
                claims = sorted(name for name in condition.uses if name.startswith("request."))
                if claims:
                    listed = " and ".join(f"`{name}`" for name in claims)
                    message = f"the condition reads {listed}, which the caller may write as it likes"
                    yield self.find(
                        Code.CALLER_CLAIM, at, place, message, "read what the registry knows: `subject`, `resource` …"
                    )
        yield from self._never_applies()

    def _never_applies(self) -> Iterator[Finding]:
        compiled, places, questions = self.compiled, self.places, self.questions
        when = compiled.applies_when
        if when is not None and questions.whole() and not any(True for _ in questions.applying()):
            message = f"no question makes `appliesTo.when` true, so the policy never applies: `{_short(when.text)}`"
            yield self.find(Code.NEVER_APPLIES, places.when(), "spec.appliesTo.when", message, _WHAT_CAN_BE)
            return
        dead = False
        for item in compiled.forbid:
            if not questions.whole(item.when):
                continue
            at, place = places.guardrail(item.id), f"spec.forbid.{item.id}"
            if not questions.can_be(item.when, Answer.TRUE) and not questions.can_be(item.when, Answer.ERROR):
                message = f"no question to which the policy applies is stopped by the guardrail `{item.id}`"
                yield self.find(Code.NEVER_APPLIES, at, place, message, _WHAT_CAN_BE)
            elif not questions.can_be(item.when, Answer.FALSE):
                dead = True
                message = f"the guardrail `{item.id}` stops every question, so the policy never permits anything"
                yield self.find(Code.NEVER_APPLIES, at, place, message, "say what is exceptional, and let the rest pass")
        if not dead and questions.always_forbidden():
            message = "between them the guardrails stop every question, so the policy never permits anything"
            yield self.find(Code.NEVER_APPLIES, places.section("forbid"), "spec.forbid", message, "leave something to permit")

    def quorum(self) -> Iterator[Finding]:
        for name in self.questions.open_factors():
            who = "among the people who have an account" if self.known.people is not None else "whoever works here"
            message = f"the sign-off `{name}` cannot be completed, {who}: too few could fill it, and nobody fills two"
            hint = "ask for fewer signatures, another role, or loosen the filter; whoever asks never signs"
            yield self.find(Code.UNSATISFIABLE_QUORUM, self.places.filter(name), f"spec.sign_offs.{name}", message, hint)

    # Rules.

    def rules(self) -> Iterator[Finding]:
        for rule, number, item in deciding(self.compiled):
            if gives(self.compiled, item, worst(self.compiled, item.clause)) == Result.PASS:
                side, name = "at least" if item.floor else "at most", item.clause.name
                message = f"{side} {item.bar:f} holds for the worst `{name}` there is, so the comparison always passes"
                hint = f"write a bar that some `{name}` misses" + (f", in the parameter `{item.param}`" if item.param else "")
                yield self.find(Code.ALWAYS_PASSES, self.places.bar(rule.id, number), f"spec.rules.{rule.id}", message, hint)
        if self.compiled.profile != SUPPLEMENT:
            slip = refusal_slip(self.compiled, self._harm(), self.domains)
            if slip is not None:
                yield self._refusal_only(slip)
        yield from self._step_level()

    def _harm(self) -> frozenset[str]:
        return frozenset(name for name, clause in self.compiled.clauses.items() if self._family(clause) == _HARM)

    def _family(self, clause: Clause) -> str:
        metric = self.known.metrics.get(clause.metric)
        return "" if metric is None else metric.family

    def _level(self, clause: Clause) -> str:
        metric = self.known.metrics.get(clause.metric)
        return "" if metric is None else metric.level

    def _refusal_only(self, slip: Slip) -> Finding:
        reader = next((rule for rule in self.compiled.rules if self._harm() & set(rule.clauses)), None)
        at, place = self.places.section("rules"), "spec.rules"
        if reader is not None:
            at, place = self.places.rule(reader.id), f"spec.rules.{reader.id}"
        message = (
            f"with perfect refusal it passes, or needs only a waiver, while {_STATES[slip.state]}: refusal does not predict harm"
        )
        if slip.unasked:
            slices = " and ".join(f"`{self.compiled.clauses[name].slice}`" for name in slip.unasked)
            message += f"; the harm it reads is that of {slices} alone, and a question may be about another domain"
        hint = (
            "require a metric of harm by a hard rule of its own, at most 50 and better far less, on the slice `overall` or "
            "`resource.domain`; only a policy of the profile `supplement` may do without"
        )
        return self.find(Code.REFUSAL_ONLY, at, place, message, hint)

    def _step_level(self) -> Iterator[Finding]:
        clauses = self.compiled.clauses
        for name in self.reading:
            clause = clauses[name]
            if self._level(clause) != _STEP:
                continue
            family = self._family(clause)
            whole = [key for key, item in clauses.items() if self._family(item) == family and self._level(item) != _STEP]
            if stands_alone(self.compiled, name, whole):
                message = f"`{name}` counts single checks, and the policy passes by it whatever whole tasks come to"
                hint = (
                    "79 % of checks was 51 % of tasks: require a metric of whole tasks, such as `task_completion_rate`, beside it"
                )
                at = self.places.clause(name, "metric")
                yield self.find(Code.STEP_LEVEL_METRIC, at, f"spec.evidence.{name}", message, hint)

    # Evidence, clause by clause, as far as a rule that decides reads it.

    def evidence(self) -> Iterator[Finding]:
        for name, assertions in self.reading.items():
            probe = ClauseProbe(self.compiled, self.compiled.clauses[name], assertions)
            if probe.accepts_best():  # what nothing can satisfy lets nothing through
                yield from self._clause(name, probe)

    def _clause(self, name: str, probe: ClauseProbe) -> Iterator[Finding]:
        clause, place = probe.clause, f"spec.evidence.{name}"

        def find(code: Code, keys: tuple[str, ...], message: str, hint: str) -> Finding:
            return self.find(code, self.places.clause(name, *keys), place, message, hint)

        if probe.passes_on_a_point():
            hint = f"write `statistic: {'lower_bound' if clause.higher else 'upper_bound'}` and `confidence: 0.95`"
            yield find(Code.POINT_ESTIMATE, ("statistic", "confidence"), f"a `{name}` that clears the bar by luck passes", hint)
        fewest = probe.smallest_sample()
        if fewest is not None:
            told = f"{fewest} tasks without a miss are enough" if fewest else "no number of tasks need be stated"
            yield find(Code.NO_SAMPLE_FLOOR, ("min_samples",), f"for `{name}` {told}", "write `min_samples: 50` or more")
        if probe.has_no_age_limit():
            message = f"a run of {LONG_AGO_DAYS} days ago still supports `{name}`"
            yield find(Code.NO_AGE_LIMIT, ("max_age_days",), message, "write `max_age_days: 180` or less")
        domain = next((item for item in self.domains if probe.looks_past(item)), None)
        if domain is not None:
            read = "the average over all domains" if clause.slice == OVERALL_SLICE else f"the slice `{clause.slice}`"
            message = f"`{name}` reads {read}, and passes where the rate in the system's own domain is at its worst"
            yield find(
                Code.AVERAGE_OVER_DOMAINS, ("slice",), message, "write `slice: resource.domain` where the benchmark has it"
            )
        yield from self._trust(name, probe)

    def _trust(self, name: str, probe: ClauseProbe) -> Iterator[Finding]:
        at, place = self.places.clause(name, "min_trust"), f"spec.evidence.{name}"
        if probe.accepts_best(trust="archive"):
            message = f"archives alone can carry `{name}`{self._sources('archive')}"
            yield self.find(Code.ARCHIVE_ONLY, at, place, message, "write `min_trust: independent`")
        elif probe.accepts_best(trust="vendor"):
            message = f"the word of a vendor alone can carry `{name}`{self._sources('vendor')}"
            yield self.find(Code.VENDOR_ONLY, at, place, message, "write `min_trust: independent`")
        if probe.accepts_best(trust="vendor", provenance="run_log"):
            message = f"for `{name}` it is enough what a vendor counted about its own model"
            hint = "write `min_trust: independent`, or `min_provenance: recounted`"
            yield self.find(Code.SELF_JUDGED_ALLOWED, self.places.clause(name, "min_provenance"), place, message, hint)

    def _sources(self, tier: str) -> str:
        held = sorted(source for source, given in self.known.trust.items() if given == tier)
        return f" (today: {', '.join(f'`{source}`' for source in held)})" if held else ""

    # The policy's own tests.

    def tests(self) -> Iterator[Finding]:
        tried, places = try_mutants(self.compiled), self.places
        for id_ in tried.untested:
            message = f"no test makes the rule `{id_}` fail by a value that misses its bar"
            hint = "add a test with such a value, and expect `fail` of the rule"
            yield self.find(Code.UNTESTED_RULE, places.rule(id_), f"spec.rules.{id_}", message, hint)
        hint = "add a test just on each side of the bar, and expect what the policy gives"
        for id_, alive in tried.survivors.items():
            message = f"no test notices these changes of the rule `{id_}`: {'; '.join(alive)}"
            yield self.find(Code.SURVIVING_MUTANT, places.rule(id_), f"spec.rules.{id_}", message, hint)
        for name in tried.weakened:
            message = (
                f"no test notices when `{name}` is judged by its rate instead of its {self.compiled.clauses[name].statistic}"
            )
            hint_bound = "add a test whose rate clears the bar in a sample so small that its bound does not"
            at = places.clause(name, "statistic")
            yield self.find(Code.SURVIVING_MUTANT, at, f"spec.evidence.{name}", message, hint_bound)
        if tried.unfinished:
            message = (
                f"{len(tried.unfinished)} rules are too many to try each change of: `{tried.unfinished[0]}` and what follows"
            )
            yield self.find(Code.SURVIVING_MUTANT, places.section("tests"), "spec.tests", message, "split the policy")


_WHAT_CAN_BE = "compare with values that can be: look at the spelling, and at conditions that exclude each other"
_STATES: Mapping[str, str] = MappingProxyType(
    {
        "missing": "nothing is known about harm",
        "worst": "harm is at its worst",
        "above_half": f"harm is above {Decimal(50):f}",
    }
)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
