"""Routers that pick a model for each request: the closed list that each picks from, or none where it is not all written down.

A member of a router's configuration that is not known here may name further models, so a router with one has no list. Judges and
embeddings are no members: they do not answer.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

ROUTERS = "auto_router/"

_TIERS = ("SIMPLE", "MEDIUM", "COMPLEX", "REASONING")
_NAMING_NOBODY = frozenset(
    {
        "adaptive",
        "classifier_fallback",
        "classifier_llm_config",
        "classifier_type",
        "code_keywords",
        "dimension_weights",
        "embedding_model",
        "escalation_keywords",
        "fallback_tier",
        "keyword_tier_rules",
        "model_quality",
        "reasoning_keywords",
        "return_raw_model_name",
        "semantic_keyword_matching",
        "simple_keywords",
        "technical_keywords",
        "tier_boundaries",
        "token_thresholds",
        "weights",
    }
)

Params = Mapping[str, Any]


def kept_list(params: Params) -> dict[str, Any]:
    """Return of a router's parameters what lists the models it picks from, as plain values; nothing where there is no closed list."""
    return _kind_of(params)(params)[1]


def picks_of(params: Params) -> tuple[str, ...]:
    """Return the names that a router picks from, ordered, each once; none where there is no closed list."""
    return tuple(sorted(set(_kind_of(params)(params)[0])))


_Read = tuple[list[str], dict[str, Any]]
_NOTHING: _Read = ([], {})


def _complexity(params: Params) -> _Read:
    config = _known(params.get("complexity_router_config"), "tiers", "tier_definitions", "default_model")
    tiers = config.get("tiers")
    if not isinstance(tiers, dict) or not tiers:
        return _NOTHING
    defined = config.get("tier_definitions")
    wanted = _defined(defined) if defined is not None else list(_TIERS)
    pools = {str(tier): _pool(pool) for tier, pool in tiers.items()}
    default = _one(params.get("complexity_router_default_model") or config.get("default_model"))
    if not wanted or not all(pools.values()) or not (default or set(wanted) <= set(pools)):
        return _NOTHING
    kept: dict[str, Any] = {"complexity_router_config": {"tiers": pools}}
    if defined is not None:
        kept["complexity_router_config"]["tier_definitions"] = [{"name": name} for name in wanted]
    if default:
        kept["complexity_router_default_model"] = default
    return [*(name for pool in pools.values() for name in pool), *([default] if default else [])], kept


def _listed(member: str, default_member: str) -> Callable[[Params], _Read]:
    """Return a reader of routers that list what they pick from in `available_models`."""

    def read(params: Params) -> _Read:
        config = _known(params.get(member), "available_models", "default_model")
        pool = _pool(config.get("available_models"))
        default = params.get(default_member) or config.get("default_model")
        if not pool or (default is not None and not _one(default)):
            return _NOTHING
        kept: dict[str, Any] = {"available_models": pool}
        if default is not None:
            kept["default_model"] = _one(default)
        return [*pool, *([_one(default)] if default is not None else [])], {member: kept}

    return read


def _semantic(params: Params) -> _Read:
    config, default = params.get("auto_router_config"), _one(params.get("auto_router_default_model"))
    if not isinstance(config, str) or not default or params.get("auto_router_config_path") is not None:
        return _NOTHING
    try:
        names = [route["name"] for route in json.loads(config)["routes"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return _NOTHING
    if not all(_one(name) for name in names):
        return _NOTHING
    kept = json.dumps({"routes": [{"name": name} for name in names]})
    return [*names, default], {"auto_router_config": kept, "auto_router_default_model": default}


_KINDS: Mapping[str, Callable[[Params], _Read]] = {
    "complexity_router": _complexity,
    "adaptive_router": _listed("adaptive_router_config", "adaptive_router_default_model"),
    "quality_router": _listed("quality_router_config", "quality_router_default_model"),
    "online_model_experiment": lambda _: _NOTHING,
}


def _kind_of(params: Params) -> Callable[[Params], _Read]:
    """Return the reader of a router's kind, as the gateway tells it: by how the name goes on, and else by utterances."""
    name = str(params["model"]).removeprefix(ROUTERS)
    return next((read for prefix, read in _KINDS.items() if name.startswith(prefix)), _semantic)


def _known(config: Any, *members: str) -> Params:
    """Return a router's configuration, an empty one where it is none or holds a member that is not known here."""
    return config if isinstance(config, dict) and set(config) <= {*members, *_NAMING_NOBODY} else {}


def _pool(given: Any) -> list[str]:
    """Return the names in a name or a list of names, none where anything else is among them."""
    entries = given if isinstance(given, list) else [given]
    names = [entry.get("model_name") if isinstance(entry, dict) and len(entry) == 1 else entry for entry in entries]
    return [str(name) for name in names] if all(_one(name) for name in names) else []


def _defined(given: Any) -> list[str]:
    names = [item.get("name") for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    return [str(name) for name in names] if names and len(names) == len(given) and all(_one(name) for name in names) else []


def _one(given: Any) -> str:
    """Return a name, "" where it is none that could stand in an inventory."""
    return str(given) if isinstance(given, str) and given.isprintable() and len(given) <= 300 else ""
