"""Who can answer under which name: from a gateway's inventory to the closed set of models behind each name it serves.

Pure, and knows no gateway's form. Every name is walked through aliases, groups, routers and every kind of fallback, transitively and
without regard to order, weights, limits or health: what a gateway does on a bad day counts. Where the set cannot be known the route
is open, with the reason and the path to it; nothing is guessed, so an open route clears nobody.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

EVERY_NAME = "*"
"""As the source of a fallback: for every name that the same list does not name itself."""
ALWAYS = ""
"""As the source of a fallback: for every name."""
ALIAS, ROUTER, GROUP, DEPLOYMENT_ID = "alias", "router", "routing group", "deployment id"

REASONS: Mapping[str, str] = {
    "wildcard": "a wildcard serves whatever is asked for",
    "auto_router": "a router picks from models that are not listed",
    "auto_model": "the provider picks the model anew for each request",
    "environment": "the model is read from an environment variable",
    "unknown_name": "nothing in the inventory has this name",
    "nobody": "routers and groups lead in circles, and nobody answers",
    "own_fallbacks": "the deployment has fallbacks of its own",
    "overrides": "a fallback changes more than the model",
    "database": "the gateway reads further models from its database",
    "no_model": "no model is named, and the account's default answers",
    "moving_name": "whoever publishes the model moves this name to newer ones",
    "router_variant": "the variant has the router choose who answers, or adds what it finds",
    "any_provider": "whichever provider serves the model may answer",
    "any_quantization": "the model may be served in any quantisation",
    "preset": "a preset that is kept elsewhere decides",
    "plugin": "a plugin or tool of the router stands between request and model",
    "unread_option": "an option that is not known here may let others answer",
    "another_gateway": "another gateway or an agent decides what answers under this name",
    "any_host": "whichever host the account prefers may answer",
}
"""Why a set cannot be known, by code."""

CHANGES: Mapping[str, str] = {
    "wildcard": "name each model",
    "auto_router": "list every model that the router picks from",
    "auto_model": "name the model that is to answer",
    "environment": "write the name out",
    "unknown_name": "add it to the inventory, or take it out of the lists",
    "nobody": "name somebody who answers",
    "own_fallbacks": "move the fallbacks to the settings of the gateway",
    "overrides": "leave nothing but the model in the fallback",
    "database": "switch `store_model_in_db` off, and list every model in the file",
    "no_model": "name one in `model`",
    "moving_name": "name the release that the name stands for",
    "router_variant": "name the model without the variant",
    "any_provider": "list the providers in `provider.order`, and set `provider.allow_fallbacks: false`",
    "any_quantization": "list what is cleared in `provider.quantizations`, or name endpoints such as `PROVIDER/fp8`",
    "preset": "write out what the preset says, and leave it out",
    "plugin": "leave it out",
    "unread_option": "leave it out",
    "another_gateway": "name the model at whoever serves it",
    "any_host": "name the host, as in `huggingface/HOST/AUTHOR/MODEL`",
}
"""What to change so that a set can be known, by the same codes."""

_PICKED = re.compile(r"auto([-_].*)?|dynamic|(.*[-_])?router([-_].*)?")
"""Part of a name under which a provider picks the model: `auto-balanced`, `azure-model-router`, `default-prompt-router`."""


class Member(NamedTuple):
    """A model as written that can answer, where, and a shortest path to it.

    `exact`: what is known of the model elsewhere says nothing about it here, as where `at` is a provider with a quantisation.
    """

    model: str
    at: str
    path: tuple[str, ...]
    exact: bool = False

    @property
    def written(self) -> str:
        """Return the model with its endpoint: two endpoints may serve two things under one name."""
        return f"{self.model} at {self.at}" if self.at else self.model


class Open(NamedTuple):
    """Why a route's set cannot be known, and a shortest path to what opens it."""

    reason: str
    path: tuple[str, ...]


class Route(NamedTuple):
    """One name that a gateway serves, with all that can answer behind it."""

    name: str
    members: tuple[Member, ...]
    opens: tuple[Open, ...]

    @property
    def closed(self) -> bool:
        return not self.opens


class Target(NamedTuple):
    """A name that a fallback leads to; `reason` says why it is more than that name, "" where it is not."""

    name: str
    reason: str = ""


class Deployment(NamedTuple):
    """One place that answers for a group. `models` are the models as written that may answer; a router has none and `picks` groups.

    `at` is the endpoint where one is written, `exact` as in a member, `reasons` why the deployment alone is open. `requests` are what
    it asks of a router outside: routes by the name of that router, with whoever may answer there.
    """

    group: str
    models: tuple[str, ...]
    at: str = ""
    id: str = ""
    picks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    exact: bool = False
    requests: tuple[Route, ...] = ()


class Fallback(NamedTuple):
    """What one name (or `EVERY_NAME`, or `ALWAYS`) falls back to. `word` names the kind in paths."""

    source: str
    targets: tuple[Target, ...]
    word: str


class Inventory(NamedTuple):
    """All that a gateway serves. Each list of `fallbacks` is looked up by itself; `reasons` open every route.

    `aliases` are (name, name), `groups` (name, names).
    """

    deployments: tuple[Deployment, ...]
    aliases: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fallbacks: tuple[tuple[Fallback, ...], ...] = ()
    reasons: tuple[str, ...] = ()


def is_picked(model: str) -> bool:
    """True where part of a model as written says that the provider picks the model anew for each request."""
    return any(_PICKED.fullmatch(part) for part in re.split("[/:]", model.lower()))


def shown_path(path: Iterable[str]) -> str:
    """Return a path as people read it."""
    return " → ".join(path)


def resolve(inventory: Inventory) -> tuple[Route, ...]:
    """Return every name that is served, in the order of the inventory, with the closed set behind it."""
    graph = _Graph(inventory)
    return tuple(graph.route(name) for name in public_names(inventory))


def public_names(inventory: Inventory) -> tuple[str, ...]:
    """Return the names that a client may ask for, each once: groups, aliases and routing groups."""
    names = [deployment.group for deployment in inventory.deployments]
    names += [name for name, _ in (*inventory.aliases, *inventory.groups)]
    return tuple(dict.fromkeys(names))


def applying(entries: Sequence[Fallback], name: str) -> list[Fallback]:
    """Return those entries of one list that apply to a name.

    An entry for the name itself takes the place of the one for every name. One for the name without its provider may do so too; what
    counts as a provider is the gateway's own list, so there both apply.
    """
    own = [entry for entry in entries if entry.source == name]
    if not own:
        bare = name.partition("/")[2] or name
        own = [entry for entry in entries if entry.source in (bare, EVERY_NAME)]
    return own + [entry for entry in entries if entry.source == ALWAYS]


def matches(pattern: str, name: str) -> bool:
    """True where a wildcard serves a name: `*` stands for any letters, all others for themselves, and both ends count."""
    head, *rest = pattern.split(EVERY_NAME)
    if not rest:
        return pattern == name
    *middle, tail = rest
    if not name.startswith(head) or len(name) < len(head) + len(tail) or not name.endswith(tail):
        return False
    place, end = len(head), len(name) - len(tail)
    for part in middle:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


class _Step(NamedTuple):
    """What one name is by itself: who answers, why it is open, each with its path from there, and where it leads by which word."""

    members: tuple[Member, ...]
    opens: tuple[Open, ...]
    leads: tuple[tuple[str, str], ...]


class _Graph:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._groups: defaultdict[str, list[Deployment]] = defaultdict(list)
        self._by_id: dict[str, str] = {}
        for deployment in inventory.deployments:
            self._groups[deployment.group].append(deployment)
            if deployment.id:
                self._by_id[deployment.id] = deployment.group
        self._leads: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, target in inventory.aliases:
            self._leads[name].append((ALIAS, target))
        for name, members in inventory.groups:
            self._leads[name] += [(GROUP, member) for member in members]
        self._wildcards = [name for name in self._groups if EVERY_NAME in name]
        self._step = cache(self._look_up)
        self._answered = self._find_answered()

    def route(self, name: str) -> Route:
        members: dict[tuple[str, str], Member] = {}
        opens: dict[tuple[str, tuple[str, ...]], Open] = {
            (reason, ()): Open(reason, (name,)) for reason in self._inventory.reasons
        }
        seen, waiting = {name}, deque[tuple[str, tuple[str, ...]]]([(name, (name,))])
        while waiting:
            here, path = waiting.popleft()
            step = self._step(here)
            if here not in self._answered:
                opens.setdefault(("nobody", (here,)), Open("nobody", path))
            for member in step.members:
                members.setdefault((member.model, member.at), member._replace(path=(*path, *member.path)))
            for reason, what in step.opens:
                opens.setdefault((reason, what), Open(reason, path if what == (here,) else (*path, *what)))
            for word, target in step.leads:
                if target not in seen:
                    seen.add(target)
                    waiting.append((target, (*path, word, target)))
        return Route(name, tuple(members[key] for key in sorted(members)), tuple(opens.values()))

    def _find_answered(self) -> set[str]:
        """Return the names behind which there is anybody, or which are open: walked backwards from those that are so by themselves."""
        back: defaultdict[str, list[str]] = defaultdict(list)
        found: set[str] = set()
        seen = set(public_names(self._inventory))
        waiting = list(seen)
        while waiting:
            name = waiting.pop()
            step = self._step(name)
            if step.members or step.opens:
                found.add(name)
            for _, target in step.leads:
                back[target].append(name)
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        waiting = list(found)
        while waiting:
            more = [name for name in back[waiting.pop()] if name not in found]
            found.update(more)
            waiting += more
        return found

    def _look_up(self, name: str) -> _Step:
        members: list[Member] = []
        opens: list[Open] = []
        leads = list(self._leads.get(name, ()))
        deployments = self._groups.get(name, [])
        if EVERY_NAME in name:
            opens.append(Open("wildcard", (name,)))
        else:
            for deployment in deployments:
                self._answer(deployment, members, opens, leads)
        if not deployments and not leads:
            if name in self._by_id:
                # One deployment alone answers; its group is looked at whole, which is never less.
                leads.append((DEPLOYMENT_ID, self._by_id[name]))
            elif EVERY_NAME not in name:
                wildcard = next((each for each in self._wildcards if matches(each, name)), None)
                opens.append(Open("unknown_name", (name,)) if wildcard is None else Open("wildcard", (wildcard,)))
        for entries in self._inventory.fallbacks:
            for entry in applying(entries, name):
                for target in entry.targets:
                    leads.append((entry.word, target.name))
                    if target.reason:
                        opens.append(Open(target.reason, (target.name,)))
        return _Step(tuple(members), tuple(opens), tuple(leads))

    def _answer(self, deployment: Deployment, members: list[Member], opens: list[Open], leads: list[tuple[str, str]]) -> None:
        told = deployment.models[0] if deployment.models else deployment.group
        opens += [Open(reason, (told,)) for reason in deployment.reasons]
        leads += [(ROUTER, name) for name in deployment.picks]
        members += [Member(model, deployment.at, (model,), exact=deployment.exact) for model in deployment.models]
        for request in deployment.requests:
            members += request.members
            opens += request.opens
