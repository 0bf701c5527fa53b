"""What an application asks of OpenRouter, in: what decides who answers is kept, as OpenRouter reads it; all else is left out.

OpenRouter has no file of its own, so requests stand by name under one key, each as it is sent, in YAML or JSON:

    openrouter_routes:
      hr-agent:
        model: lab/model-a
        models: [lab/model-b]
        provider: {order: [deepinfra, together], allow_fallbacks: false, quantizations: [fp8]}

The members are those of `POST /api/v1/chat/completions`; what a client library is given as `extra_body` counts as part of the request.
Prompts, keys and whatever else a request holds are not kept. It sees the file alone: which providers, plugins and default model the
account names past it is not in here (account-wide allowed providers are merged with `only`, which therefore limits nothing here, and
do not touch an `order` without fallbacks).
"""

import re
from collections.abc import Mapping
from typing import Any

from policies.language.routing_shapes import NAME_HINT, ShapeReader, is_name, line_of
from policies.language.routing_text import Items, Members, Switch, Text

ROUTES = "openrouter_routes"
MAX_ROUTES = 1_000
MAX_NAMES = 10_000
"""So many names may stand in all lists together."""
MAX_PLACES = 100
"""So many providers, or quantisations, may stand in one list."""
UNREAD = "unread"
"""The names, and no values, of what may let others answer than the request says."""
PLUGINS = ("plugins", "tools")

_ROUTING = ("model", "models", "provider", "route", "preset", "plugins", "tools", "fallbacks", "reasoning", "reasoning_effort")
_LISTS = ("order", "only", "ignore", "quantizations")
_SWITCHES = ("allow_fallbacks", "require_parameters", "zdr", "enforce_distillable_text")
_PREFERENCES = ("preferred_min_throughput", "preferred_max_latency")
_WORDS = {"data_collection": ("allow", "deny"), "sort": ("price", "throughput", "latency", "exacto")}
_OWN_TOOLS = "openrouter:"
PLACEHOLDER = re.compile(r"[$%{}<>]|os\.environ/")
"""What stands where something else is filled in before the request is sent."""
_OPTION = re.compile(r"[A-Za-z_]{1,40}")
_MODEL = re.compile(r"~?[A-Za-z0-9][\w.-]*/[A-Za-z0-9*][\w.*-]*(:[\w.-]+)*", re.ASCII)
_PROVIDER = re.compile(r"[A-Za-z0-9][\w .-]*(/[\w.-]+)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def strip_openrouter(root: Members, *, filename: str = "") -> dict[str, Any]:
    """Return the stripped document: plain values in the form above, with no prompt or key. Raises `InputRefused` with lines."""
    return _Reader(filename).strip(root)


class RequestReader(ShapeReader):
    """Checks the shape of one request, and keeps of it what decides who answers."""

    def request(self, given: Members, field: str) -> dict[str, Any]:
        """Return what is kept of a request. Names that stand in its lists are counted."""
        request, lines = self._merged(given, field)
        kept: dict[str, Any] = {}
        if request.get("model") is not None:
            kept["model"] = self._model(request["model"], f"{field}.model", lines["model"])
        if request.get("models") is not None:
            kept["models"] = [
                self._model(item, f"{field}.models[{place}]", lines["models"])
                for place, item in enumerate(self._list(request["models"], f"{field}.models", lines["models"]))
            ]
        unread = {member for member in PLUGINS if _interferes(member, request.get(member))}
        unread |= {member for member in ("fallbacks",) if request.get(member) is not None}
        if request.get("route") is not None and request["route"] != "fallback":
            unread.add("route")
        if request.get("provider") is not None:
            kept["provider"] = self._provider(request["provider"], f"{field}.provider", lines["provider"], unread)
        if request.get("preset") is not None:
            kept["preset"] = self._word(request["preset"], f"{field}.preset", lines["preset"])
        reasoning = self._reasoning(request, lines, field)
        return {**kept, **({"reasoning": reasoning} if reasoning else {}), **({UNREAD: sorted(unread)} if unread else {})}

    def _merged(self, given: Members, field: str) -> tuple[Mapping[str, Any], Mapping[str, int]]:
        """Return what decides of a request, and where each part stands: members of `extra_body` are members of the request."""
        more = self.mapping(given, "extra_body", f"{field}.extra_body")
        request = {member: given[member] for member in _ROUTING if member in given}
        lines = {member: given.lines[member] for member in request}
        for member in _ROUTING:
            if member in more:
                if member in request:
                    self.note(more.lines[member], f"{field}.extra_body.{member}", "it stands beside `extra_body` too", "keep one")
                request[member], lines[member] = more[member], more.lines[member]
        return request, lines

    def _provider(self, given: Any, field: str, line: int, unread: set[str]) -> dict[str, Any]:
        if not isinstance(given, Members):
            self.note(line, field, "it is no mapping of keys to values", "write `{order: [NAME], allow_fallbacks: false}`")
            return {}
        kept: dict[str, Any] = {}
        for member, value in given.items():
            here, at = f"{field}.{member}", given.lines[member]
            if value is None or member in _PREFERENCES:
                continue
            if member in _LISTS:
                kept[member] = [self._slug(item, here, at) for item in self._list(value, here, at, limit=MAX_PLACES)]
            elif member in _SWITCHES:
                kept[member] = self._switch(value, here, at)
            elif member == "max_price":
                kept[member] = self._prices(value, here, at)
            elif member in _WORDS:
                kept[member] = self._choice(member, value, here, at)
            else:
                # A slip makes a key of anything, so only what looks like an option is repeated.
                unread.add(f"provider.{member}" if _OPTION.fullmatch(member) else "provider")
                self._names += 1
        return kept

    def _reasoning(self, request: Mapping[str, Any], lines: Mapping[str, int], field: str) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        given = request.get("reasoning")
        if isinstance(given, Members):
            for member, read in (("effort", self._word), ("max_tokens", self._number), ("enabled", self._switch)):
                if given.get(member) is not None:
                    kept[member] = read(given[member], f"{field}.reasoning.{member}", given.lines[member])
        elif given is not None:
            self.note(lines["reasoning"], f"{field}.reasoning", "it is no mapping of keys to values", "write `{effort: high}`")
        short = request.get("reasoning_effort")
        if short is not None:
            effort = self._word(short, f"{field}.reasoning_effort", lines["reasoning_effort"])
            if kept.setdefault("effort", effort) != effort:
                self.note(
                    lines["reasoning_effort"],
                    f"{field}.reasoning_effort",
                    "`reasoning` says another effort",
                    "keep one of the two",
                )
        return kept

    # --- parts ---

    def _list(self, given: Any, field: str, line: int, *, limit: int = MAX_NAMES) -> list[Any]:
        if not isinstance(given, Items):
            self.note(line, field, "it is no list", "write `[NAME, …]`")
            return []
        if len(given) > limit:
            self.note(line, field, f"{len(given)} names", f"at most {limit} are read", "too_long")
            return []
        self._names += len(given)
        return given

    def _model(self, given: Any, field: str, line: int) -> str:
        """Return the name of a model; one with a place to be filled in, or a preset, stays as it is written."""
        if isinstance(given, str) and is_name(given) and (_MODEL.fullmatch(given.partition("@")[0]) or PLACEHOLDER.search(given)):
            return str(given)
        if isinstance(given, str) and is_name(given) and given.startswith("@preset/"):
            return str(given)
        self.note(line_of(given) or line, field, "it is no name of a model at OpenRouter", "write `AUTHOR/MODEL`")
        return ""

    def _slug(self, given: Any, field: str, line: int) -> str:
        if isinstance(given, str) and is_name(given) and _PROVIDER.fullmatch(given):
            return str(given)
        self.note(
            line_of(given) or line,
            field,
            "it is no name of a provider or quantisation",
            "write it as OpenRouter's documentation does",
        )
        return ""

    def _word(self, given: Any, field: str, line: int) -> str:
        if isinstance(given, str) and is_name(given):
            return str(given)
        self.note(line_of(given) or line, field, "it is no word", NAME_HINT)
        return ""

    def _number(self, given: Any, field: str, line: int) -> str:
        if isinstance(given, Text) and _NUMBER.fullmatch(given):
            return str(given)
        self.note(line_of(given) or line, field, "it is no number", "write a plain decimal")
        return ""

    def _switch(self, given: Any, field: str, line: int) -> bool:
        if isinstance(given, Switch):
            return given.on
        self.note(line_of(given) or line, field, "it is neither true nor false", "write `true` or `false`, without quotes")
        return True

    def _prices(self, given: Any, field: str, line: int) -> dict[str, str]:
        if not isinstance(given, Members):
            self.note(line, field, "it is no mapping of keys to values", "write `{prompt: 1, completion: 2}`")
            return {}
        kinds = ("prompt", "completion", "request", "image", "audio")
        return {
            kind: self._number(given[kind], f"{field}.{kind}", given.lines[kind]) for kind in kinds if given.get(kind) is not None
        }

    def _choice(self, member: str, given: Any, field: str, line: int) -> Any:
        if member == "sort" and isinstance(given, Members):
            parts = ("by", "partition")
            return {
                part: self._word(given[part], f"{field}.{part}", given.lines[part])
                for part in parts
                if given.get(part) is not None
            }
        if isinstance(given, str) and given in _WORDS[member]:
            return str(given)
        self.note(line_of(given) or line, field, "it is none of its words", f"write one of: {', '.join(_WORDS[member])}")
        return ""


class _Reader(RequestReader):
    """Checks shapes and strips."""

    def document(self, root: Members) -> dict[str, Any]:
        for member in sorted(root.keys() - {ROUTES}):
            # Something beside it may be meant for all routes, and nobody reads it.
            self.note(
                root.lines[member], "", f"beside `{ROUTES}` nothing is read", "write every request out under its name", "unread"
            )
        if root.get(ROUTES) is None:
            self.note(
                1, ROUTES, "it is missing", "write `NAME: {model: …}` for each request; `{}` says that there is none", "missing"
            )
        given = self.mapping(root, ROUTES, ROUTES)
        if len(given) > MAX_ROUTES:
            self.note(given.line, ROUTES, f"{len(given)} routes", f"at most {MAX_ROUTES} are read", "too_long")
            return {}
        found = {name: self._request(name, given, f"{ROUTES}[{place}]") for place, name in enumerate(given)}
        if self._names > MAX_NAMES:
            self.note(1, "", f"{self._names} names stand in the lists", f"at most {MAX_NAMES} are read", "too_long")
        return {ROUTES: found}

    def _request(self, name: str, routes: Members, field: str) -> dict[str, Any]:
        if not is_name(name) or "*" in name:
            self.note(routes.lines[name], field, "the name of the route is none", f"{NAME_HINT}, no `*` among them")
        given = routes[name]
        if not isinstance(given, Members):
            self.note(routes.lines[name], field, "it is no request", "write `{model: …, provider: {…}}`")
            return {}
        return self.request(given, field)


def _interferes(member: str, given: Any) -> bool:
    """True where plugins are asked for, or tools that OpenRouter itself runs; an application's own tools do not change who answers."""
    if given is None or (isinstance(given, Items) and not given):
        return False
    if member == "plugins" or not isinstance(given, Items):
        return True
    return any(not isinstance(item, Members) or _is_own(item.get("type")) for item in given)


def _is_own(kind: Any) -> bool:
    return isinstance(kind, str) and kind.lower().startswith(_OWN_TOOLS)
