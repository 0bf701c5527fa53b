"""Requests to OpenRouter: what is kept, what is refused with its line, who is behind each, and that what is allowed comes back."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.kernel.canonical import canonical_bytes
from evaluations.kernel.errors import InputRefused
from policies.language.routing import CHANGES, REASONS, Route, shown_path
from policies.language.routing_forms import allowed_part, form_of, form_of_start, names_in, read_routing, routes_in
from policies.language.routing_inventory import yaml_of
from tests.support.world import FIXTURES

FILE = (FIXTURES / "routing" / "openrouter.yaml").read_bytes()
CLOSED = {"order": ["one"], "allow_fallbacks": False, "quantizations": ["fp8"]}


def routes(text: str | bytes) -> dict[str, Route]:
    body = text if isinstance(text, bytes) else text.encode()
    return {each.name: each for each in routes_in(read_routing(body))}


def route(provider: dict[str, Any] | None = CLOSED, **request: Any) -> Route:
    """Return the route of a request; unless it says otherwise it is of one model at one provider in one quantisation, and closed."""
    asked = {"model": "lab/a", **({} if provider is None else {"provider": provider}), **request}
    return routes(json.dumps({"openrouter_routes": {"r": asked}}))["r"]


def paths(found: Route) -> dict[str, str]:
    return {member.written: shown_path(member.path) for member in found.members}


def opens(found: Route) -> dict[str, str]:
    return {each.reason: shown_path(each.path) for each in found.opens}


def test_every_reason_says_what_to_change() -> None:
    assert REASONS.keys() == CHANGES.keys()


class TestMembers:
    def test_each_model_may_be_answered_by_each_provider_in_each_quantisation(self) -> None:
        found = routes(FILE)
        assert list(found) == ["hr-agent", "plain"]
        assert all(each.closed for each in found.values())
        assert paths(found["hr-agent"]) == {
            "lab/a at one (bf16, effort high)": "hr-agent → lab/a at one (bf16, effort high)",
            "lab/a at one (fp8, effort high)": "hr-agent → lab/a at one (fp8, effort high)",
            "lab/a at two (fp8, effort high)": "hr-agent → lab/a at two (fp8, effort high)",
            "lab/b at one (bf16, effort high)": "hr-agent → fallback → lab/b at one (bf16, effort high)",
            "lab/b at one (fp8, effort high)": "hr-agent → fallback → lab/b at one (fp8, effort high)",
            "lab/b at two (fp8, effort high)": "hr-agent → fallback → lab/b at two (fp8, effort high)",
        }
        assert paths(found["plain"]) == {"lab/a at one (unknown)": "plain → lab/a at one (unknown)"}
        assert all(member.exact for each in found.values() for member in each.members)

    @pytest.mark.parametrize(
        ("provider", "expected"),
        [
            ({"order": ["one", "two"]}, {"one", "two"}),
            ({"order": ["one", "two"], "ignore": ["two"]}, {"one"}),
            ({"order": ["one", "two"], "only": ["two", "three"]}, {"one", "two"}),
            ({"order": ["one"], "only": ["one/turbo"]}, {"one"}),
            ({"order": ["one/turbo", "onerous"], "ignore": ["one"]}, {"onerous"}),
            ({"order": ["one", "one/turbo"], "ignore": ["one/turbo"]}, {"one"}),
            ({"order": ["one"], "sort": "price", "max_price": {"prompt": "0.5"}, "require_parameters": True}, {"one"}),
        ],
    )
    def test_who_may_serve_is_what_order_names_and_ignore_does_not_take(
        self, provider: dict[str, Any], expected: set[str]
    ) -> None:
        found = route({**provider, "allow_fallbacks": False, "quantizations": ["fp8"]})
        assert (found.closed, {member.at for member in found.members}) == (True, {f"{name} (fp8)" for name in expected})

    @pytest.mark.parametrize(
        ("order", "quantizations", "expected"),
        [
            (["one/fp8"], None, {"one (fp8)"}),
            (["one/fp8", "one/int4"], None, {"one (fp8)", "one (int4)"}),
            (["one/fp8", "one"], ["fp8", "bf16"], {"one (fp8)", "one (bf16)"}),
            (["one", "one/fp8"], ["fp8", "bf16"], {"one (fp8)", "one (bf16)"}),
            (["one/fp8", "two"], ["bf16"], {"two (bf16)"}),
        ],
    )
    def test_an_endpoint_may_say_its_quantisation(
        self, order: list[str], quantizations: list[str] | None, expected: set[str]
    ) -> None:
        asked = {} if quantizations is None else {"quantizations": quantizations}
        found = route({"order": order, "allow_fallbacks": False, **asked})
        assert (found.closed, {member.at for member in found.members}) == (True, expected)

    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            ({"models": ["lab/a", "lab/b"]}, ["r → lab/a at one (fp8)", "r → fallback → lab/b at one (fp8)"]),
            ({"model": None, "models": ["lab/b", "lab/a"]}, ["r → fallback → lab/a at one (fp8)", "r → lab/b at one (fp8)"]),
            ({"model": "lab/a:free"}, ["r → lab/a:free at one (fp8)"]),
            ({"extra_body": {"models": ["lab/b"]}}, ["r → lab/a at one (fp8)", "r → fallback → lab/b at one (fp8)"]),
        ],
    )
    def test_every_fallback_answers_too(self, request_: dict[str, Any], expected: list[str]) -> None:
        found = route(**request_)
        assert (found.closed, list(paths(found).values())) == (True, expected)

    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            ({"reasoning": {"effort": "low"}}, "one (fp8, effort low)"),
            ({"reasoning_effort": "low"}, "one (fp8, effort low)"),
            ({"reasoning": {"max_tokens": 2000}}, "one (fp8, 2000 tokens of reasoning)"),
            ({"reasoning": {"enabled": False, "effort": "low"}}, "one (fp8, no reasoning)"),
            ({"reasoning": {"enabled": True}}, "one (fp8, reasoning)"),
            ({"reasoning": {"exclude": True}}, "one (fp8)"),
        ],
    )
    def test_another_effort_is_another_member(self, request_: dict[str, Any], expected: str) -> None:
        assert [member.at for member in route(**request_).members] == [expected]


OPEN = {
    "no provider": ({"provider": None}, {"any_provider": "r → provider", "any_quantization": "r → provider"}),
    "an order with fallbacks": ({"provider": {**CLOSED, "allow_fallbacks": True}}, {"any_provider": "r → provider"}),
    "an order that does not say": ({"provider": {"order": ["one/fp8"]}}, {"any_provider": "r → provider"}),
    "only, with fallbacks": ({"provider": {"only": ["one/fp8"]}}, {"any_provider": "r → provider"}),
    "only, which the account may add to": (
        {"provider": {"only": ["one/fp8"], "allow_fallbacks": False}},
        {"any_provider": "r → provider"},
    ),
    "no names": ({"provider": {**CLOSED, "order": []}}, {"any_provider": "r → provider"}),
    "only what is not served": (
        {"provider": {"ignore": ["two"], "allow_fallbacks": False, "quantizations": ["fp8"]}},
        {"any_provider": "r → provider"},
    ),
    "any quantisation": ({"provider": {**CLOSED, "quantizations": None}}, {"any_quantization": "r → provider → one"}),
    "an empty list of quantisations": ({"provider": {**CLOSED, "quantizations": []}}, {"any_quantization": "r → provider → one"}),
    "one endpoint of two says it": (
        {"provider": {"order": ["one/fp8", "two/turbo"], "allow_fallbacks": False}},
        {"any_quantization": "r → provider → two/turbo"},
    ),
    "the provider as well as its endpoint": (
        {"provider": {"order": ["one", "one/fp8"], "allow_fallbacks": False}},
        {"any_quantization": "r → provider → one"},
    ),
    "all are ignored": ({"provider": {**CLOSED, "ignore": ["one"]}}, {"nobody": "r → provider"}),
    "in no quantisation": ({"provider": {**CLOSED, "order": ["one/int4"]}}, {"nobody": "r → provider"}),
    "no model": ({"model": None}, {"no_model": "r"}),
    "no model but fallbacks": ({"model": None, "models": []}, {"no_model": "r"}),
    "the router": ({"model": "openrouter/auto"}, {"auto_model": "r → openrouter/auto"}),
    "the router in capitals": ({"model": "OpenRouter/Auto"}, {"auto_model": "r → OpenRouter/Auto"}),
    "the router as a fallback": ({"models": ["openrouter/auto"]}, {"auto_model": "r → fallback → openrouter/auto"}),
    "the router by a client library": (
        {"extra_body": {"models": ["openrouter/auto"]}},
        {"auto_model": "r → fallback → openrouter/auto"},
    ),
    "somebody else's router": ({"model": "switchpoint/router"}, {"auto_model": "r → switchpoint/router"}),
    "a model without a maker": ({"model": "openrouter/owl-alpha"}, {"auto_model": "r → openrouter/owl-alpha"}),
    "a name that moves": ({"model": "~lab/a-latest"}, {"moving_name": "r → ~lab/a-latest"}),
    "a name that says so": ({"model": "lab/a-latest:free"}, {"moving_name": "r → lab/a-latest:free"}),
    "online": ({"model": "lab/a:online"}, {"router_variant": "r → lab/a:online"}),
    "nitro": ({"model": "lab/a:NITRO"}, {"router_variant": "r → lab/a:NITRO"}),
    "floor": ({"model": "lab/a:free:floor"}, {"router_variant": "r → lab/a:free:floor"}),
    "exacto": ({"model": "lab/a:exacto"}, {"router_variant": "r → lab/a:exacto"}),
    "a variant that nobody knows": ({"models": ["lab/b:new"]}, {"router_variant": "r → fallback → lab/b:new"}),
    "a wildcard": ({"model": "lab/*"}, {"wildcard": "r → lab/*"}),
    "an environment variable": ({"model": "${MODEL}"}, {"environment": "r → ${MODEL}"}),
    "part of one": ({"model": "lab/{{ model }}"}, {"environment": "r → lab/{{ model }}"}),
    "one as LiteLLM writes it": ({"model": "os.environ/MODEL"}, {"environment": "r → os.environ/MODEL"}),
    "a preset": ({"preset": "mine"}, {"preset": "r → preset"}),
    "a preset for a model": ({"model": "@preset/mine"}, {"preset": "r → @preset/mine"}),
    "a preset behind a model": ({"model": "lab/a@preset/mine"}, {"preset": "r → lab/a@preset/mine"}),
    "plugins": ({"plugins": [{"id": "web"}]}, {"plugin": "r → plugins"}),
    "the router's own tool": ({"tools": [{"type": "openrouter:web_search"}]}, {"plugin": "r → tools"}),
    "another road": ({"route": "sort"}, {"unread_option": "r → route"}),
    "fallbacks of another kind": ({"fallbacks": [{"model": "lab/z"}]}, {"unread_option": "r → fallbacks"}),
    "an option that nobody knows": ({"provider": {**CLOSED, "also": ["two"]}}, {"unread_option": "r → provider.also"}),
    "options of a client library": (
        {"provider": {"order": ["one/fp8"], "allowFallbacks": False}},
        {"any_provider": "r → provider", "unread_option": "r → provider.allowFallbacks"},
    ),
}


@pytest.mark.parametrize("kind", OPEN)
def test_what_leaves_the_choice_to_others_is_open_with_its_path(kind: str) -> None:
    request, expected = OPEN[kind]
    assert opens(route(**request)) == expected


def behind_litellm(request: dict[str, Any]) -> Route:
    """Return the route of a LiteLLM gateway that sends on a request."""
    body = {member: value for member, value in request.items() if member not in ("model", "extra_body")} | request.get(
        "extra_body", {}
    )
    params = {"model": f"openrouter/{request['model']}", "extra_body": body}
    return routes(json.dumps({"model_list": [{"model_name": "r", "litellm_params": params}]}))["r"]


@pytest.mark.parametrize("kind", OPEN)
def test_behind_a_litellm_gateway_it_is_open_for_the_same_reasons(kind: str) -> None:
    request, expected = OPEN[kind]
    asked = {"model": "lab/a", "provider": CLOSED, **request}
    if asked["model"] is None:
        return
    # LiteLLM would take `fallbacks` beside the model for its own.
    own = {"unread_option": "own_fallbacks"} if "fallbacks" in asked else {}
    assert opens(behind_litellm(asked)).keys() == {own.get(reason, reason) for reason in expected}


@pytest.mark.parametrize(
    "request_",
    [
        {"route": "fallback"},
        {"plugins": []},
        {"tools": [{"type": "function"}]},
        {"provider": {**CLOSED, "preferred_max_latency": 3, "zdr": None}},
        {"model": "lab/autonomous"},
        {"model": "lab/latest-a"},
        {"temperature": 1, "messages": [], "transforms": ["middle-out"]},
    ],
)
def test_what_changes_nobody_leaves_it_closed(request_: dict[str, Any]) -> None:
    assert opens(route(**request_)) == {}


class TestKept:
    def test_nothing_secret_and_no_prompt_is_kept(self) -> None:
        kept = canonical_bytes(read_routing(FILE)).decode()
        assert b"made-up" in FILE
        assert not [word for word in ("made-up", "temperature", "messages") if word in kept]
        assert read_routing(FILE.replace(b"made-up", b"another")) == read_routing(FILE)

    def test_what_narrows_who_may_answer_is_kept(self) -> None:
        provider = read_routing(FILE)["openrouter_routes"]["hr-agent"]["provider"]
        narrowing = {"require_parameters": True, "data_collection": "deny", "zdr": True}
        assert narrowing.items() <= provider.items()
        assert provider["sort"] == {"by": "price", "partition": "none"}
        assert provider["max_price"] == {"prompt": "1", "completion": "2.5"}

    def test_the_first_key_tells_the_form(self) -> None:
        plain = read_routing(b"model_list: [{model_name: a, litellm_params: {model: lab/a}}]")
        assert [form_of(plain), form_of(read_routing(FILE))] == ["litellm", "openrouter"]
        assert [names_in(plain), names_in(read_routing(FILE))] == [("a",), ("hr-agent", "plain")]

    @pytest.mark.parametrize(
        "text",
        [
            b"openrouter_routes: {}",
            b"model_list: []",
            b"model_list: [{model_name: openrouter_routes, litellm_params: {model: lab/a}}]",
            b"openrouter_routes: {model_list: {model: lab/a}}",
        ],
    )
    def test_the_start_of_what_is_kept_tells_the_same(self, text: bytes) -> None:
        document = read_routing(text)
        assert form_of_start(canonical_bytes(document)[:40]) == form_of(document)

    def test_json_is_read_as_yaml_is(self) -> None:
        document = read_routing(FILE)
        assert read_routing(json.dumps(document).encode()) == document


def one(request: str) -> str:
    return f"openrouter_routes:\n  r:\n    {request}\n"


REFUSED = {
    "a key twice": (one("model: lab/a\n    model: openrouter/auto"), 4, "duplicate_key"),
    "a route twice": ("openrouter_routes:\n  r: {model: lab/a}\n  r: {model: lab/b}\n", 3, "duplicate_key"),
    "an anchor": ("openrouter_routes: &r {}\n", 1, "anchor"),
    "both forms": ("openrouter_routes: {}\nmodel_list: []\n", 2, "unread"),
    "something for all": ("openrouter_routes: {}\ndefaults: {models: [lab/z]}\n", 2, "unread"),
    "no routes": ("openrouter_routes:\n", 1, "missing"),
    "a list": ("openrouter_routes: [{model: lab/a}]\n", 1, "shape"),
    "a request without a name": ("model: lab/a\n", 1, "shape"),
    "fallbacks without a name": ("x: 1\nmodels: [lab/a]\n", 2, "shape"),
    "no request": ("openrouter_routes:\n  r: lab/a\n", 2, "shape"),
    "a name that is a wildcard": ('openrouter_routes:\n  "r*": {model: lab/a}\n', 2, "shape"),
    "a name that is no line": ('openrouter_routes:\n  "r\\n": {model: lab/a}\n', 2, "shape"),
    "a model that is a list": (one("model: [lab/a]"), 3, "shape"),
    "a model without an author": (one("model: gpt"), 3, "shape"),
    "a look-alike": (one("model: lаb/a"), 3, "shape"),
    "models that are one": (one("models: lab/a"), 3, "shape"),
    "a model that is a number": (one("models: [7]"), 3, "shape"),
    "providers that are one": (one("provider: {only: one}"), 3, "shape"),
    "a provider to be filled in": (one("provider: {only: ['${PROVIDER}']}"), 3, "shape"),
    "a provider that is a list": (one("provider: [one]"), 3, "shape"),
    "no fallbacks in quotes": (one("provider: {allow_fallbacks: 'false'}"), 3, "shape"),
    "no fallbacks in other words": (one("provider: {allow_fallbacks: no}"), 3, "shape"),
    "no fallbacks as a number": (one("provider: {allow_fallbacks: 0}"), 3, "shape"),
    "an order nobody knows": (one("provider: {sort: best}"), 3, "shape"),
    "prices that are none": (one("provider: {max_price: {prompt: NaN}}"), 3, "shape"),
    "two providers": (one("provider: {}\n    extra_body: {provider: {}}"), 4, "shape"),
    "two efforts": (one("reasoning: {effort: low}\n    reasoning_effort: high"), 4, "shape"),
    "too many providers": (one(f"provider: {{only: [{'a,' * 101}]}}"), 3, "too_long"),
    "no YAML": (one("model: : :"), 3, "yaml"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused_with_its_line(kind: str) -> None:
    text, line, code = REFUSED[kind]
    with pytest.raises(InputRefused) as refused:
        read_routing(text.encode(), filename="openrouter.yaml")
    first = refused.value.problems[0]
    assert (first.file, first.line, first.code) == ("openrouter.yaml", line, code)


def test_too_much_is_refused_before_it_is_listed() -> None:
    request = f"{{models: [{'lab/a,' * 101}], provider: {{only: [one], allow_fallbacks: false}}}}"
    many = "".join(f"  r{number}: {request}\n" for number in range(100))
    routes_ = "".join(f"  r{number}: {{}}\n" for number in range(1001))
    names = [f"n{number}" for number in range(100)]
    wide = {"models": [f"lab/{name}" for name in names], "provider": {"order": names, "quantizations": names[:3]}}
    options = {f"x{number}": 1 for number in range(10_001)}
    for body in (
        "openrouter_routes:\n" + many,
        "openrouter_routes:\n" + routes_,
        json.dumps({"openrouter_routes": {"r": wide}}),
        json.dumps({"openrouter_routes": {"r": {"provider": options}}}),
    ):
        with pytest.raises(InputRefused) as refused:
            read_routing(body.encode())
        assert [problem.code for problem in refused.value.problems] == ["too_long"]


SECRET = "hunter2-hunter2"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_refusal_repeats_what_stands_in_the_file(data: st.DataObject) -> None:
    """Break a file anywhere: whatever is said of it names no value of it, and none is kept."""
    text = one(f"model: lab/a\n    user: {SECRET}\n    provider: {{only: [one]}}\n    headers: {{Authorization: {SECRET}}}")
    place = data.draw(st.integers(0, len(text)))
    slip = data.draw(st.sampled_from(['"', "'", ":", "\n", "\t", "{", "]", "&x ", "*x ", "- ", "%", "\x00", "\n      "]))
    try:
        said = canonical_bytes(read_routing((text[:place] + slip + text[place:]).encode())).decode()
    except InputRefused as refused:
        said = repr(refused.problems)
    assert SECRET not in said


# --- what is allowed comes back

models = st.sampled_from(["lab/a", "lab/b", "lab/c", "lab/a:online", "openrouter/auto"])
providers = st.lists(st.sampled_from(["one", "two", "one/fp8", "two/turbo"]), max_size=3)
provider_objects = st.fixed_dictionaries(
    {},
    optional={
        "order": providers,
        "only": providers,
        "ignore": providers,
        "allow_fallbacks": st.booleans(),
        "quantizations": st.lists(st.sampled_from(["fp8", "bf16"]), max_size=2),
        "sort": st.sampled_from(["price", "latency"]),
        "zdr": st.booleans(),
    },
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "model": models,
        "models": st.lists(models, max_size=3),
        "provider": provider_objects,
        "reasoning": st.just({"effort": "high"}),
    },
)
files = st.dictionaries(st.sampled_from([f"n{number}" for number in range(5)]), requests, max_size=5)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(files)
def test_what_is_allowed_comes_back_as_exactly_the_allowed_routes(file: dict[str, Any]) -> None:
    document = read_routing(json.dumps({"openrouter_routes": file}).encode())
    found = {each.name: each for each in routes_in(document)}
    allowed = {name for name, each in found.items() if each.closed}
    again = read_routing(yaml_of(allowed_part(document, allowed)).encode())
    assert {each.name: each for each in routes_in(again)} == {name: found[name] for name in allowed}
    assert read_routing(yaml_of(document).encode()) == document


@settings(max_examples=300, deadline=None)
@given(requests, models)
def test_behind_a_litellm_gateway_the_same_may_answer(request: dict[str, Any], model: str) -> None:
    asked = {**request, "model": model}
    plain, behind = route(**{"provider": None, **asked}), behind_litellm(asked)
    assert opens(behind).keys() == opens(plain).keys()
    places = {(member.model, member.at or "openrouter") for member in plain.members}
    assert {(member.model, member.at) for member in behind.members} == places
    assert all(member.exact for member in behind.members)


@settings(max_examples=300, deadline=None)
@given(requests)
def test_who_the_documentation_says_may_answer_is_among_the_members(request: dict[str, Any]) -> None:
    """Hold a closed route against a plain reading: each model at each endpoint that order and ignore let through."""
    found = route(**{"model": None, "provider": None, **request})
    if not found.closed:
        return
    provider = request["provider"]
    assert provider["allow_fallbacks"] is False
    for model, base, kind, quant in product(
        [*([request["model"]] if "model" in request else []), *request.get("models", [])],
        ["one", "two"],
        ["", "/fp8", "/turbo"],
        ["fp8", "bf16", "int4"],
    ):
        endpoint = f"{base}{kind}"
        names = {base, endpoint}
        served = kind != "/fp8" or quant == "fp8"
        listed = names & set(provider["order"])
        wanted = quant in (provider.get("quantizations") or [quant])
        if served and listed and wanted and not names & set(provider.get("ignore", [])):
            told = f"{quant}, effort high" if "reasoning" in request else quant
            places = {f"{name} ({told})" for name in names}
            assert places & {member.at for member in found.members if member.model == model}
