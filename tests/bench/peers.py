"""The same decision put to other engines: five rules over four evidence clauses, one observation each.

The peers have no Clopper–Pearson bound and no exact decimals: they are handed the bound ready-made, as an integer of millionths,
and check the same qualities of the observation (metric, benchmark, version, slice, run status, ruling, trust, provenance, sample
size, age) and the same five bars. Each engine is compiled once and asked many times, as it would be in a service.
"""

import importlib
import json
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

CLAUSES: dict[str, dict[str, Any]] = {
    "refusal": {"metric": "infeasible_refusal_rate", "benchmark": "bench-a", "higher": True, "bound": 84_147_000},
    "harm": {"metric": "harmful_completion_rate", "benchmark": "bench-b", "higher": False, "bound": 1_486_000},
    "completion": {"metric": "task_completion_rate", "benchmark": "bench-a", "higher": True, "bound": 61_300_000},
    "cost": {"metric": "cost_per_task_usd", "benchmark": "bench-a", "higher": False, "bound": 790_000},
}
RULES = [
    ("refuses", "refusal", 80_000_000),
    ("does-no-harm", "harm", 5_000_000),
    ("completes", "completion", 50_000_000),
    ("is-affordable", "cost", 1_000_000),
    ("hardly-harms", "harm", 2_000_000),
]
MIN_TRUST, MIN_PROVENANCE, MIN_SAMPLES, MAX_AGE_DAYS = 3, 1, 50, 90


class Timing(NamedTuple):
    """Median microseconds for one decision."""

    engine: str
    microseconds: float


def facts() -> dict[str, dict[str, Any]]:
    """Return one qualifying observation a clause, as an engine without our types would be given it."""
    return {
        name: {
            "metric": clause["metric"],
            "benchmark": clause["benchmark"],
            "version": "1",
            "slice": "overall",
            "status": "complete",
            "ruling": "none",
            "trust": 3,
            "provenance": 2,
            "n": 212,
            "age_days": 12,
            "bound": clause["bound"],
        }
        for name, clause in CLAUSES.items()
    }


def microseconds(ask: Callable[[], bool], *, seconds: float = 0.4, repeats: int = 7) -> float:
    """Return the median time of one call; the call must answer yes, or the comparison means nothing."""
    if ask() is not True:
        raise AssertionError("the engine did not allow what it should allow")
    timer = timeit.Timer(ask)
    number, taken = timer.autorange()
    number = max(1, int(number * seconds / repeats / taken))
    return sorted(timer.repeat(repeats, number))[repeats // 2] / number * 1e6


def _qualifies(name: str, field: Callable[[str], str], quote: str = '"') -> list[str]:
    clause = CLAUSES[name]

    def text(value: str) -> str:
        return f"{quote}{value}{quote}"

    return [
        f"{field('metric')} == {text(clause['metric'])}",
        f"{field('benchmark')} == {text(clause['benchmark'])}",
        f"{field('version')} == {text('1')}",
        f"{field('slice')} == {text('overall')}",
        f"{field('status')} == {text('complete')}",
        f"{field('ruling')} == {text('none')}",
        f"{field('trust')} >= {MIN_TRUST}",
        f"{field('provenance')} >= {MIN_PROVENANCE}",
        f"{field('n')} >= {MIN_SAMPLES}",
        f"{field('age_days')} <= {MAX_AGE_DAYS}",
    ]


def _bars(field: Callable[[str, str], str]) -> list[str]:
    return [f"{field(clause, 'bound')} {'>=' if CLAUSES[clause]['higher'] else '<='} {bar}" for _, clause, bar in RULES]


def rego() -> Timing:
    """Rego by regopy (rego-cpp)."""
    regopy = importlib.import_module("regopy")
    lines = ["package gate", "import rego.v1"]
    for name in CLAUSES:
        body = "\n  ".join(_qualifies(name, lambda part, name=name: f"input.{name}.{part}"))
        lines.append(f"{name}_ok if {{\n  {body}\n}}")
    body = "\n  ".join([*(f"{name}_ok" for name in CLAUSES), *_bars(lambda clause, part: f"input.{clause}.{part}")])
    lines.append(f"allow if {{\n  {body}\n}}")
    engine = regopy.Interpreter()
    engine.add_module("gate", "\n".join(lines))
    given = json.dumps(facts())
    bundle = engine.build("data.gate.allow", [])

    def ask() -> bool:
        engine.set_input_term(given)
        return engine.query_bundle(bundle).results[0].expressions[0] is True

    return Timing("Rego (regopy)", microseconds(ask))


def cedar() -> Timing:
    """Cedar by cedarpy."""
    cedarpy = importlib.import_module("cedarpy")
    tests = [test for name in CLAUSES for test in _qualifies(name, lambda part, name=name: f"context.{name}.{part}")]
    tests += _bars(lambda clause, part: f"context.{clause}.{part}")
    text = 'permit(principal, action == Action::"write", resource) when { ' + " && ".join(tests) + " };"
    policies = cedarpy.PolicySet.from_str(text)
    entities = cedarpy.Entities.from_json_str("[]")
    request = {"principal": 'Model::"m"', "action": 'Action::"write"', "resource": 'System::"s"', "context": facts()}

    def ask() -> bool:
        return bool(cedarpy.is_authorized(request, policies, entities).allowed)

    return Timing("Cedar (cedarpy)", microseconds(ask))


def casbin() -> Timing:
    """casbin, with the whole decision as its matcher."""
    library = importlib.import_module("casbin")
    tests = [
        test for name in CLAUSES for test in _qualifies(name, lambda part, name=name: f"r.sub['{name}']['{part}']", quote="'")
    ]
    tests += _bars(lambda clause, part: f"r.sub['{clause}']['{part}']")
    model = library.Model()
    model.add_def("r", "r", "sub, obj, act")
    model.add_def("p", "p", "sub, obj, act")
    model.add_def("e", "e", "some(where (p.eft == allow))")
    model.add_def("m", "m", " && ".join(["r.obj == p.obj", "r.act == p.act", *tests]))
    enforcer = library.Enforcer(model)
    enforcer.add_policy("any", "s", "write")
    given = facts()

    def ask() -> bool:
        return bool(enforcer.enforce(given, "s", "write"))

    return Timing("casbin", microseconds(ask))


def cel_python() -> Timing:
    """CEL by cel-python, the pure-Python runtime."""
    celpy = importlib.import_module("celpy")
    tests = [test for name in CLAUSES for test in _qualifies(name, lambda part, name=name: f"{name}.{part}")]
    tests += _bars(lambda clause, part: f"{clause}.{part}")
    environment = celpy.Environment()
    program = environment.program(environment.compile(" && ".join(tests)))
    given = {name: celpy.json_to_cel(value) for name, value in facts().items()}

    def ask() -> bool:
        return bool(program.evaluate(given))

    return Timing("CEL (cel-python)", microseconds(ask))


PEERS = (rego, cedar, casbin, cel_python)
