"""Who can answer under which name: every road there is, what makes a set open, and no less than a plain walk finds."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.language.routing import (
    ALWAYS,
    EVERY_NAME,
    Deployment,
    Fallback,
    Inventory,
    Member,
    Open,
    Route,
    Target,
    applying,
    matches,
    resolve,
    shown_path,
)


def deployment(group: str, *models: str, **more: object) -> Deployment:
    return Deployment(group, models or (f"lab/{group}",), **more)


def fallback(source: str, *targets: str, word: str = "fallback") -> Fallback:
    return Fallback(source, tuple(Target(target) for target in targets), word)


def route(name: str, *deployments: Deployment, **more: object) -> Route:
    return next(each for each in resolve(Inventory(deployments, **more)) if each.name == name)


def paths(found: Route) -> dict[str, str]:
    return {member.written: shown_path(member.path) for member in found.members}


OUTSIDE = Route("hub", (Member("lab/o", "one (fp8)", ("hub", "lab/o at one (fp8)"), exact=True),), ())
A, B, C = (deployment(name) for name in "abc")

ROADS: Mapping[str, tuple[Route, dict[str, str]]] = {
    "itself": (route("a", A, B), {"lab/a": "a → lab/a"}),
    "several deployments": (
        route("a", A, deployment("a", "other/a")),
        {"lab/a": "a → lab/a", "other/a": "a → other/a"},
    ),
    "two endpoints of one model": (
        route("a", A, deployment("a", "lab/a", at="https://two.example")),
        {"lab/a": "a → lab/a", "lab/a at https://two.example": "a → lab/a"},
    ),
    "a deployment that names several": (
        route("a", deployment("a", "hub/a", "hub/b")),
        {"hub/a": "a → hub/a", "hub/b": "a → hub/b"},
    ),
    "alias": (route("x", A, aliases=(("x", "a"),)), {"lab/a": "x → alias → a → lab/a"}),
    "alias of an alias": (
        route("y", A, aliases=(("x", "a"), ("y", "x"))),
        {"lab/a": "y → alias → x → alias → a → lab/a"},
    ),
    "alias beside a group of its name": (
        route("a", A, B, aliases=(("a", "b"),)),
        {"lab/a": "a → lab/a", "lab/b": "a → alias → b → lab/b"},
    ),
    "fallback": (
        route("a", A, B, fallbacks=((fallback("a", "b"),),)),
        {"lab/a": "a → lab/a", "lab/b": "a → fallback → b → lab/b"},
    ),
    "fallback of a fallback": (
        route("a", A, B, C, fallbacks=((fallback("a", "b"), fallback("b", "c")),)),
        {
            "lab/a": "a → lab/a",
            "lab/b": "a → fallback → b → lab/b",
            "lab/c": "a → fallback → b → fallback → c → lab/c",
        },
    ),
    "a circle": (
        route("a", A, B, fallbacks=((fallback("a", "b"), fallback("b", "a")),)),
        {"lab/a": "a → lab/a", "lab/b": "a → fallback → b → lab/b"},
    ),
    "two lists": (
        route("a", A, B, C, fallbacks=((fallback("a", "b"),), (fallback("a", "c", word="context window fallback"),))),
        {
            "lab/a": "a → lab/a",
            "lab/b": "a → fallback → b → lab/b",
            "lab/c": "a → context window fallback → c → lab/c",
        },
    ),
    "fallback of the alias itself": (
        route("x", A, B, aliases=(("x", "a"),), fallbacks=((fallback("x", "b"),),)),
        {"lab/a": "x → alias → a → lab/a", "lab/b": "x → fallback → b → lab/b"},
    ),
    "the shortest of two paths": (
        route("a", A, B, C, fallbacks=((fallback("a", "b", "c"), fallback("b", "c")),)),
        {
            "lab/a": "a → lab/a",
            "lab/b": "a → fallback → b → lab/b",
            "lab/c": "a → fallback → c → lab/c",
        },
    ),
    "for every name": (
        route("a", A, B, fallbacks=((fallback(EVERY_NAME, "b", word="default fallback"),),)),
        {"lab/a": "a → lab/a", "lab/b": "a → default fallback → b → lab/b"},
    ),
    "its own takes the place of that for every name": (
        route("a", A, B, C, fallbacks=((fallback("a", "b"), fallback("b", "b"), fallback(EVERY_NAME, "c")),)),
        {"lab/a": "a → lab/a", "lab/b": "a → fallback → b → lab/b"},
    ),
    "but what it falls back to may have none": (
        route("a", A, B, C, fallbacks=((fallback("a", "b"), fallback(EVERY_NAME, "c")),)),
        {
            "lab/a": "a → lab/a",
            "lab/b": "a → fallback → b → lab/b",
            "lab/c": "a → fallback → b → fallback → c → lab/c",
        },
    ),
    "for the name without its provider": (
        route("lab/a", deployment("lab/a", "lab/a"), B, fallbacks=((fallback("a", "b"),),)),
        {"lab/a": "lab/a → lab/a", "lab/b": "lab/a → fallback → b → lab/b"},
    ),
    "always": (
        route("a", A, B, C, fallbacks=((fallback("a", "b"), fallback(ALWAYS, "c")),)),
        {"lab/a": "a → lab/a", "lab/b": "a → fallback → b → lab/b", "lab/c": "a → fallback → c → lab/c"},
    ),
    "router": (
        route("r", A, B, Deployment("r", (), picks=("a", "b"))),
        {"lab/a": "r → router → a → lab/a", "lab/b": "r → router → b → lab/b"},
    ),
    "routing group": (
        route("g", A, B, groups=(("g", ("a", "b")),)),
        {"lab/a": "g → routing group → a → lab/a", "lab/b": "g → routing group → b → lab/b"},
    ),
    "deployment id": (
        route("a", A, deployment("b", id="b-eu"), fallbacks=((fallback("a", "b-eu"),),)),
        {"lab/a": "a → lab/a", "lab/b": "a → fallback → b-eu → deployment id → b → lab/b"},
    ),
    "a router outside": (
        route("a", A, deployment("a", "lab/z", requests=(OUTSIDE,))),
        {"lab/a": "a → lab/a", "lab/z": "a → lab/z", "lab/o at one (fp8)": "a → hub → lab/o at one (fp8)"},
    ),
}

OPEN: Mapping[str, tuple[Route, tuple[str, str]]] = {
    "a fallback that nothing serves": (
        route("a", A, fallbacks=((fallback("a", "gone"),),)),
        ("unknown_name", "a → fallback → gone"),
    ),
    "an alias that nothing serves": (route("x", A, aliases=(("x", "gone"),)), ("unknown_name", "x → alias → gone")),
    "one that nothing serves further on": (
        route("a", A, B, fallbacks=((fallback("a", "b"), fallback("b", "gone")),)),
        ("unknown_name", "a → fallback → b → fallback → gone"),
    ),
    "everything": (route("*", deployment("*", "*", reasons=("wildcard",))), ("wildcard", "*")),
    "all of a provider": (route("lab/*", deployment("lab/*", "lab/*")), ("wildcard", "lab/*")),
    "a name that a wildcard serves": (
        route("x", deployment("lab/*", "lab/*"), aliases=(("x", "lab/new"),)),
        ("wildcard", "x → alias → lab/new → lab/*"),
    ),
    "a wildcard behind a name": (route("a", deployment("a", "lab/*", reasons=("wildcard",))), ("wildcard", "a → lab/*")),
    "a router without a list": (route("r", Deployment("r", (), reasons=("auto_router",))), ("auto_router", "r")),
    "a fallback that changes more": (
        route("a", A, B, fallbacks=((Fallback("a", (Target("b", "overrides"),), "fallback"),),)),
        ("overrides", "a → b"),
    ),
    "a router that picks itself": (route("r", Deployment("r", (), picks=("r",))), ("nobody", "r")),
    "a fallback to nobody": (
        route("a", A, groups=(("g", ("h",)), ("h", ("g",))), fallbacks=((fallback("a", "g"),),)),
        ("nobody", "a → fallback → g"),
    ),
    "a router outside that leaves it open": (
        route("a", deployment("a", requests=(Route("hub", (), (Open("any_provider", ("hub", "provider")),)),))),
        ("any_provider", "a → hub → provider"),
    ),
    "a gateway that reads more elsewhere": (route("a", A, reasons=("database",)), ("database", "a")),
}


@pytest.mark.parametrize("road", ROADS)
def test_every_road_is_walked_and_told(road: str) -> None:
    found, expected = ROADS[road]
    assert paths(found) == expected
    assert found.closed
    assert found.opens == ()


@pytest.mark.parametrize("kind", OPEN)
def test_what_cannot_be_known_opens_the_route_with_the_reason_and_the_path(kind: str) -> None:
    found, (reason, path) = OPEN[kind]
    assert not found.closed
    assert (found.opens[0].reason, shown_path(found.opens[0].path)) == (reason, path)
    assert {each.reason for each in found.opens} == {reason}


@pytest.mark.parametrize(
    ("pattern", "name", "served"),
    [
        ("bedrock/*", "bedrock/claude", True),
        ("bedrock/*", "bedrockz/claude", False),
        ("bedrock/*", "bedrock", False),
        ("*", "anything/at.all", True),
        ("*claude*", "eu.claude-5", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "ac", False),
        ("a*a", "a", False),
        ("plain", "plain", True),
        ("plain", "plain-2", False),
        ("a.c*", "abc", False),
    ],
)
def test_a_wildcard_stands_for_letters_and_all_others_for_themselves(pattern: str, name: str, served: bool) -> None:
    assert matches(pattern, name) is served


# --- no less, and no more, than a plain walk finds


NAMES = [f"n{number}" for number in range(7)]
names = st.sampled_from(NAMES)
sources = st.sampled_from([*NAMES, EVERY_NAME, ALWAYS])
lists = st.lists(st.builds(lambda source, to: fallback(source, *to), sources, st.lists(names, max_size=3)), max_size=5)
inventories = st.builds(
    Inventory,
    st.lists(
        st.builds(
            lambda group, model, picks: Deployment(group, () if picks else (f"lab/{model}",), picks=tuple(picks)),
            names,
            names,
            st.lists(names, max_size=2),
        ),
        min_size=1,
        max_size=7,
    ).map(tuple),
    aliases=st.lists(st.tuples(names, names), max_size=3).map(tuple),
    groups=st.lists(st.tuples(names, st.lists(names, max_size=3).map(tuple)), max_size=2).map(tuple),
    fallbacks=st.lists(lists.map(tuple), max_size=3).map(tuple),
    reasons=st.just(()),
)


def neighbours(inventory: Inventory, name: str) -> set[str]:
    """Return what one name leads to, written down anew and plainly."""
    found = {target for alias, target in inventory.aliases if alias == name}
    found |= {member for group, members in inventory.groups if group == name for member in members}
    found |= {pick for each in inventory.deployments if each.group == name for pick in each.picks}
    for entries in inventory.fallbacks:
        own = [entry for entry in entries if entry.source == name]
        for entry in entries:
            if entry in own or entry.source == ALWAYS or (entry.source == EVERY_NAME and not own):
                found |= {target.name for target in entry.targets}
    return found


def walk(inventory: Inventory, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += neighbours(inventory, name)
    return seen


@settings(max_examples=300, deadline=None)
@given(inventories)
def test_what_is_reached_is_what_a_plain_walk_reaches(inventory: Inventory) -> None:
    served = {each.group for each in inventory.deployments}
    served |= {name for name, _ in (*inventory.aliases, *((group, members) for group, members in inventory.groups if members))}
    answers = {each.group for each in inventory.deployments if each.models}
    for found in resolve(inventory):
        seen = walk(inventory, found.name)
        models = {model for each in inventory.deployments if each.group in seen for model in each.models}
        assert {member.model for member in found.members} == models
        assert {each.path[-1] for each in found.opens if each.reason != "nobody"} == seen - served
        assert found.closed == (seen <= served and all(answers & walk(inventory, name) for name in seen))
        for member in found.members:
            hops = member.path[:-1:2]
            assert hops[0] == found.name
            assert all(there in neighbours(inventory, here) for here, there in pairwise(hops))
            assert any(each.group == hops[-1] and member.model in each.models for each in inventory.deployments)


def test_one_list_is_looked_up_by_itself() -> None:
    own, every, always = fallback("a", "b"), fallback(EVERY_NAME, "c"), fallback(ALWAYS, "d")
    assert applying([own, every, always], "a") == [own, always]
    assert applying([every, always], "a") == [every, always]
    assert applying([own, every], "lab/a") == [own, every]
