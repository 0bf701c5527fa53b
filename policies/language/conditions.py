"""Conditions of the moment: CEL expressions over the registry's facts about a question, typed when the policy is compiled.

Runtime: `cel-expr-python`, the official C++ implementation. What this module adds:

- the exact variables, each typed; `signer.*` exists only in a signer's filter;
- no `dyn`, `type`, `matches`, `has` or other macro, no division or remainder (1.0/0.0 is infinity in CEL), and neither
  `in` nor `size` of a map, which would be `has` by another name;
- null, blank and missing facts are absent, and touching an absent fact is an error: the answer has three words, and for
  its asker an error means deny. As the CEL specification says, `||` and `&&` absorb an error where the other side alone
  decides.

Without macros and regular expressions nothing loops, so the bound on the length bounds the cost.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from cel_expr_python import cel

MAX_EXPRESSION = 1_000
"""Longest expression in characters."""

_BOOL, _TEXT, _TEXTS, _TIME, _CLAIMS = "bool", "string", "list<string>", "timestamp", "map<string, dyn>"

WHEN_VARIABLES: Mapping[str, str] = {
    **{f"subject.{name}": _TEXT for name in ("key", "kind", "provider")},
    "action.name": _TEXT,
    **{f"resource.{name}": _TEXT for name in ("key", "domain", "environment", "owner")},
    "resource.reversible": _BOOL,
    "resource.open_incident": _BOOL,
    **{f"requester.{name}": _TEXT for name in ("key", "kind", "team")},
    "requester.roles": _TEXTS,
    "now": _TIME,
    **{f"request.{name}.properties": _CLAIMS for name in ("subject", "action", "resource")},
}
"""Variables of `appliesTo.when` and `forbid`, with their CEL types."""

FILTER_VARIABLES: Mapping[str, str] = {
    **WHEN_VARIABLES,
    "signer.key": _TEXT,
    "signer.team": _TEXT,
    "signer.roles": _TEXTS,
}
"""Variables of a signer's `filter`."""

# By group and name in it, as facts have them. Asked for each answer, they are not put together anew each time.
_NAMES: dict[str, dict[str, str]] = {}
for _variable in FILTER_VARIABLES:
    _group, _, _name = _variable.removesuffix(".properties").partition(".")
    _NAMES.setdefault(_group, {})[_name] = _variable

_REFUSED_FUNCTIONS = ("dyn", "type", "matches", "_/_", "_%_")
_MACROS = ("has", "all", "exists", "exists_one", "map", "filter")
_ADVICE = {
    "dyn": "`dyn` is not available: it switches type checking off",
    "type": "`type` is not available: every variable has one known type",
    "matches": "`matches` is not available: use `startsWith`, `endsWith`, `contains` or `in [\u2026]`",
    "has": "`has` is not available: an absent fact is an error, and an error denies",
    "_/_": "division is not available: multiply the other side instead",
    "_%_": "the remainder `%` is not available",
    **{name: f"the macro `{name}` is not available: name the values with `in [\u2026]`" for name in _MACROS if name != "has"},
}
_CONFIG = """
stdlib:
  disable_macros: true
  exclude_functions:
{functions}
    - name: "@in"
      overloads:
        - id: "in_map"
    - name: "size"
      overloads:
        - id: "size_map"
        - id: "map_size"
""".format(functions="\n".join(f'    - name: "{name}"' for name in _REFUSED_FUNCTIONS))
_FINDING = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '(.*)'")
_ABSENT = re.compile(r'No value with name "([^"]+)"|Key not found in map : "([^"]*)"')
_MAX_INTEGER = 2**63 - 1
_MAX_DEPTH = 16


class Answer(StrEnum):
    """What a condition says about one question. `error` never permits anything."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


class Evaluation(NamedTuple):
    """An answer; for `error`, `missing` names the absent fact ("" where it was another error) and `detail` says more."""

    answer: Answer
    missing: str = ""
    detail: str = ""


class Finding(NamedTuple):
    """Something wrong in an expression; `line` and `column` count from 1 within it."""

    line: int
    column: int
    message: str
    code: str = "condition"


class ConditionRefused(ValueError):
    """An expression that does not compile; `findings` holds everything wrong with it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.message for finding in self.findings))


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled expression. `uses` holds the variables it reads."""

    text: str
    uses: frozenset[str]
    _compiled: Any = field(repr=False, compare=False)

    def evaluate(self, values: Mapping[str, Any]) -> Evaluation:
        """Judge the condition over `ask_values(…)`; about 3 µs. Never raises for what the values hold."""
        # Only what it reads: the runtime takes over each value that it is given, which costs more than judging.
        found = self._compiled.eval(data={name: value for name in self.uses if (value := values.get(name)) is not None})
        if found.type() == cel.Type.BOOL:
            return _TRUE if found.value() else _FALSE
        detail = str(found.value())
        absent = _ABSENT.search(detail)
        return Evaluation(Answer.ERROR, (absent.group(1) or absent.group(2)) if absent else "", detail)


_TRUE = Evaluation(Answer.TRUE)
_FALSE = Evaluation(Answer.FALSE)


def compile_condition(text: str, variables: Mapping[str, str] = WHEN_VARIABLES) -> Condition:
    """Compile and type-check an expression. Raises `ConditionRefused` with every finding."""
    if len(text) > MAX_EXPRESSION:
        raise ConditionRefused([Finding(1, 1, f"the expression has {len(text)} characters; at most {MAX_EXPRESSION} fit")])
    names = frozenset(variables)
    try:
        compiled = _environment(names).compile(text)
    except RuntimeError as error:
        raise ConditionRefused(_findings(str(error), variables)) from None
    if compiled.return_type() != cel.Type.BOOL:
        kind = compiled.return_type().name()
        raise ConditionRefused(
            [Finding(1, 1, f"the expression gives {_kind(kind)}, not true or false; compare it with something")]
        )
    return Condition(text, _used(text, names), compiled)


def ask_values(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what conditions read, from the nested facts of one question, with null and blank facts left out.

    `facts` has the keys subject, action, resource, requester, signer (each a mapping), `now` (an aware datetime) and
    `request` (subject, action, resource → `properties`). Raises `ValueError` for a name that no condition can read.
    """
    held: dict[str, Any] = {}
    for group, content in facts.items():
        if group == "now":
            if content is not None and content.tzinfo is None:
                raise ValueError("`now` has no time zone")
            held["now"] = content
            continue
        names = _NAMES.get(group, {})
        for name, value in content.items():
            variable = names.get(name)
            if variable is None:
                raise ValueError(f"no condition can read `{group}.{name}`")
            held[variable] = value.get("properties") if group == "request" else value
    return _Values(held)


class _Values(Mapping[str, Any]):
    """Facts by variable, as CEL takes them: each is made ready when it is read, for most conditions read few."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held

    def __getitem__(self, variable: str) -> Any:
        present = _present(self._held.get(variable))
        if present is None:
            raise KeyError(variable)
        return present

    def get(self, variable: str, default: Any = None) -> Any:
        present = _present(self._held.get(variable))
        return default if present is None else present

    def __iter__(self) -> Iterator[str]:
        return (variable for variable, value in self._held.items() if _present(value) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _present(value: Any, depth: int = 0) -> Any:
    """Return a value as CEL takes it, None where it counts as absent."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value) if value.strip() else None
    if isinstance(value, datetime):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        return _present(int(value) if value == value.to_integral_value() else float(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        held = {str(key): _present(item, depth + 1) for key, item in value.items()}
        return {key: item for key, item in held.items() if item is not None}
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        return [item for item in (_present(item, depth + 1) for item in ordered) if item is not None]
    return None


@lru_cache(maxsize=256)
def _environment(names: frozenset[str]) -> Any:
    variables = {name: _cel_type(FILTER_VARIABLES[name]) for name in sorted(names)}
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIG), variables=variables)


def _cel_type(name: str) -> Any:
    types = {
        _BOOL: cel.Type.BOOL,
        _TEXT: cel.Type.STRING,
        _TEXTS: cel.Type.List(cel.Type.STRING),
        _TIME: cel.Type.TIMESTAMP,
        _CLAIMS: cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    }
    return types[name]


def _used(text: str, names: frozenset[str]) -> frozenset[str]:
    # The runtime shows no syntax tree: a variable is used when the expression does not compile without it.
    used = set()
    for name in names:
        if name.rpartition(".")[2] in text:
            try:
                _environment(names - {name}).compile(text)
            except RuntimeError:
                used.add(name)
    return frozenset(used)


def _findings(report: str, variables: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    reports = _FINDING.findall(report)
    unknown = [match.group(1) for _, _, message in reports if (match := _UNDECLARED.search(message))]
    has_macro = any(name in _MACROS for name in unknown)
    for line, column, message in reports:
        undeclared = _UNDECLARED.search(message)
        name = undeclared.group(1) if undeclared else ""
        if name in _ADVICE:
            found.append(Finding(int(line), int(column), _ADVICE[name], "refused_construct"))
        elif not name:
            found.append(Finding(int(line), int(column), _explained(message)))
        elif "." in name or not has_macro:
            # A bare name beside a macro is the macro's own variable, unknown only because the macro is refused.
            found.append(Finding(int(line), int(column), _unknown(name, variables), "unknown_name"))
    if not found:
        limit = "recursion limit" in report
        found.append(Finding(1, 1, "the expression is nested too deeply" if limit else f"not a CEL expression: {report}"))
    return found


def _unknown(name: str, variables: Mapping[str, str]) -> str:
    group = name.partition(".")[0]
    near = sorted(known for known in variables if known.partition(".")[0] == group) or sorted(
        {known.partition(".")[0] for known in variables}
    )
    if group == "signer":
        return f"`{name}` is not known here: signers are known in a sign-off's `filter` only"
    return f"unknown name `{name}`; known here: {', '.join(f'`{known}`' for known in near)}"


def _explained(message: str) -> str:
    overload = _OVERLOAD.search(message)
    if overload is None:
        return message.replace("Syntax error:", "not a CEL expression:").replace("\n", " ")
    operator, operands = overload.group(1), overload.group(2)
    if (operator == "@in" and "map(" in operands) or (operator == "size" and "map(" in operands):
        return "`in` and `size` are not available on a map: an absent fact is an error, and an error denies"
    shown = operator.strip("_").replace("@in", "in")
    return f"`{shown}` cannot be applied to {operands}: both sides must have one type"


def _kind(name: str) -> str:
    return {"DYN": "a value of unknown type", "STRING": "text", "INT": "a number", "DOUBLE": "a number"}.get(name, name.lower())
