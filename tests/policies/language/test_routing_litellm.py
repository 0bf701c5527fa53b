"""LiteLLM's file: what is kept of it, what is refused with its line, that no secret survives, and that what is allowed comes back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.kernel.canonical import canonical_bytes
from evaluations.kernel.errors import InputRefused
from policies.language.routing import Route, resolve, shown_path
from policies.language.routing_forms import read_routing
from policies.language.routing_inventory import allowed_document, inventory_of, yaml_of
from tests.support.world import FIXTURES

DIRECTORY = FIXTURES / "routing"
ONE = "model_list: [{model_name: a, litellm_params: {model: lab/a}}]\n"


def routes(text: str | bytes) -> dict[str, Route]:
    body = text if isinstance(text, bytes) else text.encode()
    return {each.name: each for each in resolve(inventory_of(read_routing(body)))}


def models(route: Route) -> set[str]:
    return {member.model for member in route.members}


def opens(route: Route) -> dict[str, str]:
    return {each.reason: shown_path(each.path) for each in route.opens}


def with_params(**params: Any) -> str:
    """Return a file with two plain models and `x`, which has these parameters."""
    plain = [{"model_name": name, "litellm_params": {"model": f"lab/{name}"}} for name in "ab"]
    return json.dumps({"model_list": [*plain, {"model_name": "x", "litellm_params": params}]})


class TestEveryKind:
    @pytest.fixture
    def found(self) -> dict[str, Route]:
        return routes((DIRECTORY / "every-kind.yaml").read_bytes())

    def test_names_are_groups_aliases_and_routing_groups(self, found: dict[str, Route]) -> None:
        groups = ["hr-agent", "big", "long", "strict", "last", "smart", "blind", "anthropic/*"]
        assert list(found) == [*groups, "assistant", "hidden-one", "pool"]

    def test_every_fallback_is_followed_with_its_own_word(self, found: dict[str, Route]) -> None:
        assert {member.model: shown_path(member.path) for member in found["hr-agent"].members} == {
            "lab/small": "hr-agent → lab/small",
            "other/small": "hr-agent → other/small",
            "lab/big": "hr-agent → fallback → big → lab/big",
            "lab/long": "hr-agent → context window fallback → long → lab/long",
            "lab/strict": "hr-agent → content policy fallback → strict → lab/strict",
            "lab/last": "hr-agent → content policy fallback → strict → fallback → last → lab/last",
        }
        assert models(found["assistant"]) == models(found["hr-agent"]) == models(found["hidden-one"]) == models(found["pool"])

    def test_a_router_with_a_closed_list_is_closed_and_one_without_is_not(self, found: dict[str, Route]) -> None:
        assert (found["smart"].closed, models(found["smart"])) == (True, {"lab/strict", "lab/last"})
        assert opens(found["blind"]) == {"auto_router": "blind"}
        assert opens(found["anthropic/*"]) == {"wildcard": "anthropic/*"}


def test_nothing_secret_is_kept() -> None:
    body = (DIRECTORY / "fallbacks.yaml").read_bytes()
    kept = canonical_bytes(read_routing(body)).decode()
    assert "made-up" in body.decode()
    assert "made-up" not in kept
    assert "https://models.example/v1" in kept
    assert "rpm" not in kept


def test_the_same_but_for_secrets_is_the_same_document() -> None:
    body = (DIRECTORY / "fallbacks.yaml").read_bytes()
    assert read_routing(body.replace(b"made-up", b"another")) == read_routing(body)


ROUTERS = {
    "complexity": (
        {
            "model": "auto_router/complexity_router",
            "complexity_router_config": {"tiers": {"SIMPLE": "a"}},
            "complexity_router_default_model": "b",
        },
        {"lab/a", "lab/b"},
    ),
    "complexity, own tiers": (
        {
            "model": "auto_router/complexity_router",
            "complexity_router_config": {"tiers": {"T": ["a", {"model_name": "b"}]}, "tier_definitions": [{"name": "T"}]},
        },
        {"lab/a", "lab/b"},
    ),
    "adaptive": (
        {"model": "auto_router/adaptive_router", "adaptive_router_config": {"available_models": ["a"], "weights": {"cost": 1}}},
        {"lab/a"},
    ),
    "quality": (
        {
            "model": "auto_router/quality_router_1",
            "quality_router_config": {"available_models": ["a"]},
            "quality_router_default_model": "b",
        },
        {"lab/a", "lab/b"},
    ),
    "semantic": (
        {
            "model": "auto_router/by-words",
            "auto_router_config": json.dumps({"routes": [{"name": "a", "utterances": ["hello"]}]}),
            "auto_router_default_model": "b",
            "auto_router_embedding_model": "e",
        },
        {"lab/a", "lab/b"},
    ),
}
OPEN_ROUTERS = {
    "nothing": {"model": "auto_router/complexity_router"},
    "a tier is missing": {"model": "auto_router/complexity_router", "complexity_router_config": {"tiers": {"SIMPLE": "a"}}},
    "a member that is not known": {
        "model": "auto_router/complexity_router",
        "complexity_router_config": {"tiers": {"SIMPLE": "a"}, "vision_models": ["z"]},
        "complexity_router_default_model": "b",
    },
    "a tier with parameters": {
        "model": "auto_router/complexity_router",
        "complexity_router_config": {"tiers": {"SIMPLE": {"model_name": "a", "litellm_params": {"model": "lab/z"}}}},
        "complexity_router_default_model": "b",
    },
    "an experiment": {"model": "auto_router/online_model_experiment", "online_model_experiment_config": {"variants": []}},
    "a file elsewhere": {
        "model": "auto_router/by-words",
        "auto_router_config": '{"routes": []}',
        "auto_router_config_path": "routes.json",
        "auto_router_default_model": "b",
    },
    "broken": {"model": "auto_router/by-words", "auto_router_config": "{", "auto_router_default_model": "b"},
    "an empty pool": {"model": "auto_router/adaptive_router", "adaptive_router_config": {"available_models": []}},
}


@pytest.mark.parametrize("kind", ROUTERS)
def test_a_router_whose_list_is_whole_is_closed(kind: str) -> None:
    params, expected = ROUTERS[kind]
    found = routes(with_params(**params))["x"]
    assert (found.closed, models(found)) == (True, expected)


@pytest.mark.parametrize("kind", OPEN_ROUTERS)
def test_a_router_that_may_pick_more_is_open(kind: str) -> None:
    assert opens(routes(with_params(**OPEN_ROUTERS[kind]))["x"]) == {"auto_router": "x"}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"model": "os.environ/MODEL"}, "environment"),
        ({"model": "lab/*"}, "wildcard"),
        ({"model": "gateway/auto-balanced"}, "auto_model"),
        ({"model": "azure/model-router"}, "auto_model"),
        ({"model": "azure_ai/azure-model-router"}, "auto_model"),
        ({"model": "azure_ai/model_router/ours"}, "auto_model"),
        ({"model": "azure/ours", "api_base": "https://a.example/openai/deployments/model-router/chat/completions"}, "auto_model"),
        ({"model": "bedrock/arn:aws:bedrock:us-east-1:1:default-prompt-router/anthropic.claude:1"}, "auto_model"),
        ({"model": "bedrock/anthropic.claude", "model_id": "arn:aws:bedrock:us-east-1:1:prompt-router/p"}, "auto_model"),
        ({"model": "openai/dynamic/support", "api_base": "https://gateway.ai.cloudflare.com/v1/a/b/compat"}, "auto_model"),
        ({"model": "litellm_proxy/x"}, "another_gateway"),
        ({"model": "x", "custom_llm_provider": "litellm_proxy"}, "another_gateway"),
        ({"model": "openai/x", "use_litellm_proxy": True}, "another_gateway"),
        ({"model": "vercel_ai_gateway/openai/x"}, "another_gateway"),
        ({"model": "openai/lab/x", "api_base": "https://ai-gateway.vercel.sh/v1"}, "another_gateway"),
        ({"model": "helicone/x,y"}, "another_gateway"),
        ({"model": "openai/x", "base_url": "https://api.portkey.ai/v1"}, "another_gateway"),
        ({"model": "bedrock/agent/A/B"}, "another_gateway"),
        ({"model": "azure_ai/agents/a"}, "another_gateway"),
        ({"model": "langgraph/a"}, "another_gateway"),
        ({"model": "huggingface/lab/x"}, "any_host"),
        ({"model": "huggingface/lab/x:cheapest"}, "any_host"),
        ({"model": "openai/lab/x", "api_base": "https://router.huggingface.co/v1"}, "any_host"),
        ({"model": "openai/x", "extra_body": {"model": "z"}}, "unread_option"),
        ({"model": "openai/x", "extra_body": {"fallbacks": ["z"]}}, "unread_option"),
        ({"model": "openai/x", "extra_body": "os.environ/BODY"}, "unread_option"),
        ({"model": "openai/x", "api_base": "openrouter.ai/api/v1"}, "unread_option"),
        ({"model": "azure/x", "api_base": "https://one.example", "base_url": "https://two.example"}, "unread_option"),
        ({"model": "azure/x", "litellm_credential_name": "kept-elsewhere"}, "unread_option"),
        ({"model": "lab/x", "fallbacks": ["lab/z"]}, "own_fallbacks"),
        ({"model": "lab/x", "context_window_fallback_dict": {"x": "z"}}, "own_fallbacks"),
    ],
)
def test_a_deployment_that_may_be_another_opens_the_route(params: dict[str, Any], reason: str) -> None:
    assert opens(routes(with_params(**params))["x"]).keys() == {reason}


@pytest.mark.parametrize(
    "params",
    [
        {"model": "openai/gpt-4o"},
        {"model": "gpt-4o"},
        {"model": "openai/gpt-4o", "api_base": "https://eu.api.openai.com/v1"},
        {"model": "anthropic/claude-opus-4-8", "extra_body": {"metadata": {}}},
        {"model": "azure/deployment", "api_base": "https://ours.openai.azure.com/"},
        {"model": "azure/deployment", "api_base": "os.environ/AZURE_API_BASE"},
        {"model": "azure/deployment", "use_litellm_proxy": False},
        {"model": "bedrock/us.anthropic.claude-opus-4-8-v1:0"},
        {"model": "bedrock/converse/arn:aws:bedrock:us-east-1:1:application-inference-profile/p"},
        {"model": "vertex_ai/gemini-3-pro"},
        {"model": "huggingface/together/lab/x"},
        {"model": "huggingface/lab/x:together"},
        {"model": "huggingface/lab/x", "api_base": "https://ours.endpoints.huggingface.cloud"},
        {"model": "openai/lab/x", "api_base": "https://router.huggingface.co/together/v1"},
        {"model": "hosted_vllm/x", "api_base": "http://models.example:8000/v1"},
        {"model": "together_ai/lab/x"},
    ],
)
def test_a_deployment_that_says_who_answers_is_closed(params: dict[str, Any]) -> None:
    assert opens(routes(with_params(**params))["x"]) == {}


@pytest.mark.parametrize(
    ("params", "exact"),
    [
        ({"model": "openai/gpt-4o", "api_base": "https://api.openai.com/v1"}, False),
        ({"model": "openai/gpt-4o", "api_base": "https://elsewhere.example/v1"}, True),
        ({"model": "openai/gpt-4o", "api_base": "https://openai.com.example/v1"}, True),
        ({"model": "openai/gpt-4o", "api_base": "os.environ/OPENAI_API_BASE"}, True),
        ({"model": "gpt-4o", "api_base": "https://elsewhere.example/v1"}, True),
        ({"model": "gpt-4o"}, False),
        ({"model": "azure/deployment", "api_base": "https://ours.openai.azure.com"}, False),
        ({"model": "bedrock/anthropic.claude", "model_id": "arn:aws:bedrock:us-east-1:1:provisioned-model/p"}, True),
        ({"model": "bedrock/anthropic.claude"}, False),
    ],
)
def test_a_well_known_name_at_another_address_is_another_model(params: dict[str, Any], exact: bool) -> None:
    (member,) = routes(with_params(**params))["x"].members
    assert (member.exact, bool(member.at)) == (exact, exact or "api_base" in params)


CLOSED = {"provider": {"order": ["one"], "allow_fallbacks": False, "quantizations": ["fp8"]}}


class TestAskingOpenRouter:
    @pytest.mark.parametrize(
        "params",
        [
            {"model": "openrouter/lab/o"},
            {"model": "lab/o", "custom_llm_provider": "openrouter"},
            {"model": "openai/lab/o", "api_base": "https://openrouter.ai/api/v1"},
            {"model": "openai/lab/o", "base_url": "https://eu.openrouter.ai/api/v1"},
            {"model": "hosted_vllm/lab/o", "api_base": "HTTPS://OpenRouter.ai.:443/api/v1"},
        ],
    )
    @pytest.mark.parametrize("place", ["", "extra_body"])
    def test_it_is_closed_by_what_closes_a_request_wherever_that_stands(self, params: dict[str, Any], place: str) -> None:
        plain = routes(with_params(**params))["x"]
        assert opens(plain) == {"any_provider": "x → openrouter → provider", "any_quantization": "x → openrouter → provider"}
        assert {member.written for member in plain.members} == {"lab/o at openrouter"}
        closed = routes(with_params(**params, **({place: CLOSED} if place else CLOSED)))["x"]
        assert opens(closed) == {}
        assert [(member.written, shown_path(member.path), member.exact) for member in closed.members] == [
            ("lab/o at one (fp8)", "x → openrouter → lab/o at one (fp8)", True)
        ]

    @pytest.mark.parametrize(
        ("more", "reason"),
        [
            ({"model": "openrouter/auto"}, "auto_model"),
            ({"model": "openrouter/openrouter/auto:online"}, "auto_model"),
            ({"model": "openrouter/lab/o:nitro"}, "router_variant"),
            ({"model": "openrouter/lab/o:floor"}, "router_variant"),
            ({"model": "openrouter/@preset/mine"}, "preset"),
            ({"model": "openrouter/lab/*"}, "wildcard"),
            ({"models": ["openrouter/auto"]}, "auto_model"),
            ({"plugins": [{"id": "web"}]}, "plugin"),
            ({"preset": "mine"}, "preset"),
            ({"route": "sort"}, "unread_option"),
            ({"additional_drop_params": ["provider"]}, "unread_option"),
            ({"api_base": "https://ours.example/api/v1"}, "another_gateway"),
            ({"api_base": "os.environ/OPENROUTER_API_BASE"}, "another_gateway"),
            ({"api_base": "no address"}, "unread_option"),
            ({"fallbacks": ["lab/z"]}, "own_fallbacks"),
        ],
    )
    def test_what_leaves_the_choice_to_others_opens_it(self, more: dict[str, Any], reason: str) -> None:
        params = {"model": "openrouter/lab/o", **CLOSED}
        assert opens(routes(with_params(**params))["x"]) == {}
        assert reason in opens(routes(with_params(**params | more))["x"])

    def test_every_fallback_answers_too(self) -> None:
        found = routes(with_params(model="openrouter/lab/o:free", models=["lab/y"], **CLOSED))["x"]
        assert (found.closed, {member.written: shown_path(member.path) for member in found.members}) == (
            True,
            {
                "lab/o:free at one (fp8)": "x → openrouter → lab/o:free at one (fp8)",
                "lab/y at one (fp8)": "x → openrouter → fallback → lab/y at one (fp8)",
            },
        )

    def test_a_file_from_before_that_kept_no_provider_is_open(self) -> None:
        kept = {"model": "openrouter/lab/o", "models": ["lab/y"]}
        (found,) = resolve(inventory_of({"model_list": [{"model_name": "x", "litellm_params": kept}]}))
        assert "any_provider" in opens(found)
        assert models(found) == {"lab/o", "lab/y"}

    def test_what_is_allowed_comes_back_as_litellm_reads_it(self) -> None:
        file = json.loads(with_params(model="openrouter/lab/o", models=["lab/y"], api_key="sk-made-up", **CLOSED))
        file["model_list"].append({"model_name": "z", "litellm_params": {"model": "openrouter/lab/o"}})
        document = read_routing(json.dumps(file).encode())
        text = yaml_of(allowed_document(document, {"x"}))
        (item,) = json.loads(json.dumps(read_routing(text.encode())["model_list"]))
        assert item["litellm_params"] == {"model": "openrouter/lab/o", "extra_body": {"models": ["lab/y"], **CLOSED}}
        assert routes(text)["x"] == routes(json.dumps(file))["x"]

    @pytest.mark.parametrize(
        "params",
        [
            {"model": "openrouter/lab/o", "provider": "one"},
            {"model": "openrouter/lab/o", "provider": {"allow_fallbacks": "false"}},
            {"model": "openrouter/lab/o", "models": ["lab/y"], "extra_body": {"models": ["lab/z"]}},
            {"model": "openrouter/lab/o", "extra_body": {"model": "lab/z"}},
            {"model": "openrouter/lab/o", "extra_body": ["provider"]},
        ],
    )
    def test_what_could_be_read_in_two_ways_is_refused(self, params: dict[str, Any]) -> None:
        with pytest.raises(InputRefused):
            read_routing(with_params(**params).encode())

    def test_too_many_places_are_refused_before_they_are_listed(self) -> None:
        names = [f"n{number}" for number in range(100)]
        provider = {"order": names, "allow_fallbacks": False, "quantizations": ["fp8"]}
        many = {"models": [f"lab/{name}" for name in names], "provider": provider}
        assert routes(with_params(model="openrouter/lab/n0", models=many["models"][:50], provider=provider))["x"].closed
        with pytest.raises(InputRefused) as refused:
            read_routing(with_params(model="openrouter/lab/o", **many).encode())
        assert [problem.code for problem in refused.value.problems] == ["too_long"]


class TestRenames:
    @pytest.mark.parametrize("section", ["router_settings", "litellm_settings"])
    def test_a_model_that_may_be_renamed_is_both(self, section: str) -> None:
        def renamed(to: str) -> Route:
            return routes(with_params(model="lab/x")[:-1] + f', "{section}": {{"model_alias_map": {{"lab/x": "{to}"}}}}}}')["x"]

        assert models(renamed("lab/z")) == {"lab/x", "lab/z"}
        assert renamed("lab/z").closed
        assert opens(renamed("gateway/auto")).keys() == {"auto_model"}
        assert opens(renamed("litellm_proxy/z")).keys() == {"another_gateway"}
        assert opens(renamed("openrouter/lab/z")).keys() == {"any_provider", "any_quantization"}
        assert opens(renamed("lab/*")).keys() == {"wildcard"}


class TestAddresses:
    def with_credential(self, **values: str) -> Route:
        file = json.loads(with_params(model="openai/lab/x", litellm_credential_name="c"))
        file["credential_list"] = [{"credential_name": "c", "credential_values": {"api_key": "sk-made-up", **values}}]
        assert "made-up" not in canonical_bytes(read_routing(json.dumps(file).encode())).decode()
        return routes(json.dumps(file))["x"]

    def test_a_credential_may_say_where_it_goes(self) -> None:
        assert opens(self.with_credential()) == {}
        assert {member.at for member in self.with_credential(api_base="https://one.example").members} == {"https://one.example"}
        assert "any_provider" in opens(self.with_credential(api_base="https://openrouter.ai/api/v1"))

    @pytest.mark.parametrize(
        "settings_",
        [
            {"litellm_settings": {"use_litellm_proxy": True}},
            {"litellm_settings": {"api_base": "https://elsewhere.example"}},
            {"environment_variables": {"OPENAI_BASE_URL": "https://elsewhere.example"}},
            {"environment_variables": {"USE_LITELLM_PROXY": "True"}},
        ],
    )
    def test_a_setting_that_sends_all_elsewhere_opens_every_route(self, settings_: dict[str, Any]) -> None:
        file = json.loads(with_params(model="lab/x"))
        harmless = {
            section: dict.fromkeys(part, False) for section, part in settings_.items() if section != "environment_variables"
        }
        assert all(each.closed for each in routes(json.dumps(file | harmless)).values())
        assert {reason for each in routes(json.dumps(file | settings_)).values() for reason in opens(each)} == {"another_gateway"}

    def test_parameters_for_all_that_say_who_answers_open_every_route(self) -> None:
        file = json.loads(with_params(model="lab/x"))
        file["router_settings"] = {"default_litellm_params": {"timeout": 3}}
        assert all(each.closed for each in routes(json.dumps(file)).values())
        file["router_settings"] = {"default_litellm_params": {"extra_body": {"models": ["lab/z"]}}}
        assert not any(each.closed for each in routes(json.dumps(file)).values())


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"model": "x", "custom_llm_provider": "azure"}, {"azure/x"}),
        ({"model": "azure/x", "custom_llm_provider": "azure"}, {"azure/x"}),
        ({"model": "hub/lab/x", "models": ["lab/y"]}, {"hub/lab/x", "hub/lab/y"}),
        ({"model": "hub/lab/x", "extra_body": {"models": ["lab/y"]}}, {"hub/lab/x", "hub/lab/y"}),
        (
            {"model": "hub/lab/x", "models": ["lab/y"], "extra_body": {"models": ["lab/z"]}},
            {"hub/lab/x", "hub/lab/y", "hub/lab/z"},
        ),
        ({"model": "lab/x", "silent_model": "a"}, {"lab/x", "lab/a"}),
        ({"model": "lab/autonomous"}, {"lab/autonomous"}),
    ],
)
def test_all_that_a_deployment_may_ask_is_behind_it(params: dict[str, Any], expected: set[str]) -> None:
    found = routes(with_params(**params))["x"]
    assert (found.closed, models(found)) == (True, expected)


def test_defaults_and_every_form_of_a_fallback_are_read() -> None:
    plain = "".join(f"  - {{model_name: {name}, litellm_params: {{model: lab/{name}}}}}\n" for name in "abcdef")
    settings_of = "router_settings: {fallbacks: [{a: [{model: b}], c: [d]}, e], default_fallbacks: [f]}"
    text = f"model_list:\n{plain}{settings_of}\nlitellm_settings: {{fallbacks: null}}\n"
    found = routes(text)
    assert models(found["a"]) == {f"lab/{name}" for name in "abef"}
    assert models(found["c"]) == {f"lab/{name}" for name in "cdef"}
    changed = routes(text.replace("{model: b}", "{model: b, api_base: https://elsewhere.example}"))
    assert opens(changed["a"]) == {"overrides": "a → b"}


@pytest.mark.parametrize("section", ["router_settings", "litellm_settings"])
def test_defaults_count_in_either_section(section: str) -> None:
    text = with_params(model="lab/x")[:-1] + f', "{section}": {{"default_fallbacks": ["a"]}}}}'
    assert models(routes(text)["x"]) == {"lab/x", "lab/a"}


def test_a_gateway_with_models_in_its_database_has_no_closed_route() -> None:
    for value in ("true", "True", '"true"', "os.environ/STORE"):
        assert opens(routes(f"{ONE}general_settings: {{store_model_in_db: {value}}}")["a"]) == {"database": "a"}
    assert routes(f"{ONE}general_settings: {{store_model_in_db: false}}")["a"].closed


REFUSED = {
    "a key twice": (ONE + "router_settings: {}\nrouter_settings: {}\n", 3, "duplicate_key"),
    "an alias name twice": (ONE + "router_settings:\n  model_group_alias:\n    x: a\n    x: b\n", 5, "duplicate_key"),
    "an anchor": ("model_list: &m []\n", 1, "anchor"),
    "an alias": ("a: &m []\nmodel_list: *m\n", 1, "anchor"),
    "a tag": ("model_list: !!python/object []\n", 1, "tag"),
    "a second document": (f"{ONE}---\n{ONE}", 2, "documents"),
    "another file": (f"{ONE}include: [more.yaml]\n", 2, "include"),
    "too deep": (ONE + "x: " + "[" * 20 + "]" * 20, 2, "nesting"),
    "a list": ("- a\n", 1, "shape"),
    "nothing": ("", 1, "shape"),
    "no list of deployments": ("router_settings: {}\n", 1, "missing"),
    "deployments by name": ("model_list: {a: lab/a}\n", 1, "shape"),
    "a deployment without a name": ("model_list:\n  - litellm_params: {model: lab/a}\n", 2, "missing"),
    "a deployment without a model": ("model_list:\n  - model_name: a\n    litellm_params: {}\n", 3, "missing"),
    "a deployment without parameters": ("model_list:\n  - model_name: a\n", 2, "missing"),
    "a name that is a switch": ("model_list:\n  - {model_name: true, litellm_params: {model: lab/a}}\n", 2, "shape"),
    "a name that is no line": ('model_list:\n  - {model_name: "a\\nb", litellm_params: {model: lab/a}}\n', 2, "shape"),
    "fallbacks by name": (f"{ONE}router_settings: {{fallbacks: {{a: [b]}}}}\n", 2, "shape"),
    "a fallback that is no list": (f"{ONE}router_settings: {{fallbacks: [{{a: b}}]}}\n", 2, "shape"),
    "a fallback to a list": (f"{ONE}router_settings: {{fallbacks: [{{a: [[b]]}}]}}\n", 2, "shape"),
    "defaults that are no list": (f"{ONE}litellm_settings: {{default_fallbacks: b}}\n", 2, "shape"),
    "an alias of a list": (f"{ONE}router_settings: {{model_group_alias: {{x: [a]}}}}\n", 2, "shape"),
    "a routing group without models": (f"{ONE}router_settings: {{routing_groups: [{{group_name: g}}]}}\n", 2, "missing"),
    "no YAML": (f"{ONE}x: : :\n", 2, "yaml"),
    "a control letter": (f"{ONE}x: \x01\n", 2, "yaml"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused_with_its_line(kind: str) -> None:
    text, line, code = REFUSED[kind]
    with pytest.raises(InputRefused) as refused:
        read_routing(text.encode(), filename="config.yaml")
    first = refused.value.problems[0]
    assert (first.file, first.line, first.code) == ("config.yaml", line, code)


def test_too_much_and_other_bytes_are_refused() -> None:
    many = "".join("  - {model_name: a, litellm_params: {model: m}}\n" for _ in range(1001))
    wide = "router_settings: {default_fallbacks: [" + "a," * 10_001 + "]}\n"
    for body in (b"x" * (1024 * 1024 + 1), f"model_list:\n{many}".encode(), (ONE + wide).encode(), b"model_list: \xff\n"):
        with pytest.raises(InputRefused):
            read_routing(body)


SECRET = "hunter2-hunter2"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_refusal_repeats_what_stands_in_the_file(data: st.DataObject) -> None:
    """Break a file anywhere: whatever is said of it names no value of it."""
    text = f"{ONE}general_settings: {{master_key: {SECRET}}}\nlitellm_settings:\n  password: {SECRET}\n  fallbacks: [{{a: {SECRET}}}]\n"
    place = data.draw(st.integers(0, len(text)))
    slip = data.draw(st.sampled_from(['"', "'", ":", "\n", "\t", "{", "]", "&x ", "*x ", "- ", "%", "\x00"]))
    assert SECRET not in said_of(text[:place] + slip + text[place:])


def said_of(text: str) -> str:
    """Return what is refused of a text, or what is kept of it."""
    try:
        return canonical_bytes(read_routing(text.encode())).decode()
    except InputRefused as refused:
        return repr(refused.problems)


# --- what is allowed comes back


NAMES = [f"n{number}" for number in range(5)]
some = st.sampled_from(NAMES)
targets = st.lists(some, max_size=3)
entry = st.dictionaries(st.sampled_from([*NAMES, "*"]), targets, min_size=1, max_size=2)
section = st.fixed_dictionaries(
    {},
    optional={
        "fallbacks": st.lists(st.one_of(entry, some), max_size=4),
        "context_window_fallbacks": st.lists(entry, max_size=2),
        "content_policy_fallbacks": st.lists(entry, max_size=2),
        "default_fallbacks": targets,
        "model_group_alias": st.dictionaries(st.sampled_from(["x", "y", *NAMES]), some, max_size=3),
        "model_alias_map": st.dictionaries(
            st.sampled_from(["z", "lab/0", "lab/1"]), st.sampled_from([*NAMES, "lab/2"]), max_size=2
        ),
        "routing_groups": st.lists(
            st.fixed_dictionaries({"group_name": st.sampled_from(["g", *NAMES]), "models": targets}), max_size=2
        ),
        "routing_strategy": st.just("simple-shuffle"),
    },
)
deployments = st.one_of(
    st.fixed_dictionaries({"model": st.sampled_from(["lab/0", "lab/1", "lab/2", "lab/*", "auto_router/none"])}),
    st.fixed_dictionaries(
        {
            "model": st.just("auto_router/adaptive_router"),
            "adaptive_router_config": st.fixed_dictionaries({"available_models": st.lists(some, min_size=1, max_size=2)}),
        }
    ),
)
files = st.fixed_dictionaries(
    {
        "model_list": st.lists(
            st.builds(
                lambda name, params, number: {
                    "model_name": name,
                    "litellm_params": params,
                    **({"model_info": {"id": f"id-{number}"}} if number else {}),
                },
                some,
                deployments,
                st.integers(0, 3),
            ),
            min_size=1,
            max_size=6,
        )
    },
    optional={"router_settings": section, "litellm_settings": section},
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(files, st.sets(st.sampled_from(["lab/0", "lab/1", "lab/2"])))
def test_what_is_allowed_comes_back_as_exactly_the_allowed_routes(file: dict[str, Any], cleared: set[str]) -> None:
    document = read_routing(json.dumps(file).encode())
    found = resolve(inventory_of(document))
    allowed = {each.name: models(each) for each in found if each.closed and models(each) <= cleared}
    again = read_routing(yaml_of(allowed_document(document, allowed)).encode())
    assert {each.name: models(each) for each in resolve(inventory_of(again))} == allowed
    assert all(each.closed for each in resolve(inventory_of(again)))
    assert read_routing(yaml_of(document).encode()) == document
