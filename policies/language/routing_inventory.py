"""What a kept LiteLLM document says: the inventory behind it, and the same document with nothing in it but allowed names.

`allowed_document` gives LiteLLM's own form back. Whatever an allowed name can reach is allowed too, so that the smaller document
serves exactly the allowed names, each with the same set behind it. Keys and passwords were never kept: whoever uses it adds them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from io import StringIO
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from policies.language.routing import ALWAYS, EVERY_NAME, Deployment, Fallback, Inventory, Route, Target, applying, is_picked
from policies.language.routing_auto import ROUTERS, picks_of
from policies.language.routing_litellm import DEFAULTS, ELSEWHERE, KINDS, OWN_FALLBACKS, SECTIONS
from policies.language.routing_openrouter import UNREAD
from policies.language.routing_providers import (
    ENVIRONMENT,
    OPENROUTER,
    asks_openrouter,
    is_elsewhere,
    name_at_openrouter,
    open_by_provider,
)
from policies.language.routing_requests import requested_route

Document = Mapping[str, Any]


def inventory_of(document: Document) -> Inventory:
    """Return what a stripped document serves."""
    router, settings = (document.get(section, {}) for section in SECTIONS)
    reasons = ["database"] if document.get("general_settings") else []
    if router.get("default_litellm_params") or settings.get("default_litellm_params"):
        reasons.append("own_fallbacks")
    if router.get(UNREAD) or settings.get(UNREAD) or document.get(ELSEWHERE):
        reasons.append("another_gateway")
    asked = {model for item in document["model_list"] for model in _models(item)}
    renames = defaultdict[str, list[str]](list)
    for name, model in (pair for part in (router, settings) for pair in _pairs(part.get("model_alias_map", {}))):
        renames[name].append(model)
    return Inventory(
        tuple(_deployment(item, renames) for item in document["model_list"]),
        (
            *(pair for part in (router, settings) for pair in _pairs(part.get("model_group_alias", {}))),
            # A rename of what no deployment asks for is a name that a client may ask for.
            *((name, model) for name, models in renames.items() if name not in asked for model in models),
        ),
        tuple(
            (group["group_name"], tuple(group["models"]))
            for part in (router, settings)
            for group in part.get("routing_groups", ())
        ),
        tuple(tuple(entry.fallback for entry in entries) for entries in _lists_of(document)),
        tuple(reasons),
    )


def _models(item: Document) -> tuple[str, ...]:
    """Return the models that a deployment asks for, as LiteLLM writes them; a router has none."""
    params = item["litellm_params"]
    model: str = params["model"]
    if model.startswith(ROUTERS):
        return ()
    if asks_openrouter(model, params.get("api_base", "")):
        return (model,)
    provider = model.partition("/")[0]
    return (model, *(f"{provider}/{name}" for name in params.get("models", ()) if f"{provider}/{name}" != model))


def _deployment(item: Document, renames: Mapping[str, Sequence[str]]) -> Deployment:
    params, info = item["litellm_params"], item.get("model_info", {})
    silent = (params["silent_model"],) if "silent_model" in params else ()
    unread = set(params.get(UNREAD, ()))
    reasons = ["own_fallbacks"] if unread & set(OWN_FALLBACKS) else []
    reasons += ["another_gateway"] if params.get("use_litellm_proxy") else []
    address = params.get("api_base", "")
    base = {"at": params.get("model_id", address), "id": info.get("id", "")}
    if params["model"].startswith(ROUTERS):
        picks = picks_of(params)
        reasons += [] if picks else ["auto_router"]
        return Deployment(item["model_name"], (), picks=(*picks, *silent), reasons=tuple(reasons), **base)
    # Whether a rename takes effect depends on how the gateway is called, so both may answer.
    models = tuple(dict.fromkeys(each for model in _models(item) for each in (model, *renames.get(model, ()))))
    plain = tuple(model for model in models if not asks_openrouter(model, address))
    requests = tuple(_requested(model, params) for model in models if asks_openrouter(model, address))
    if not requests and unread - set(OWN_FALLBACKS):
        reasons.append("unread_option")
    reasons += ["environment"] if any(model.startswith(ENVIRONMENT) for model in plain) else []
    reasons += ["wildcard"] if any(EVERY_NAME in model for model in plain) else []
    reasons += [reason for model in models for reason in open_by_provider(model, address)]
    reasons += ["auto_model"] if any(is_picked(name) for name in (info.get("base_model", ""), params.get("model_id", ""))) else []
    exact = "model_id" in params or any(is_elsewhere(model, address) for model in plain)
    return Deployment(
        item["model_name"], plain, picks=silent, reasons=tuple(dict.fromkeys(reasons)), exact=exact, requests=requests, **base
    )


def _requested(model: str, params: Document) -> Route:
    """Return who may answer what a deployment asks of OpenRouter under a model as written."""
    more = {member: params[member] for member in ("models",) if member in params}
    unread = [option for option in params.get(UNREAD, ()) if option not in OWN_FALLBACKS]
    request = {**more, **params.get("extra_body", {}), "model": name_at_openrouter(model), UNREAD: unread}
    return requested_route(OPENROUTER, request, anywhere=OPENROUTER)


def _pairs(aliases: Document) -> list[tuple[str, str]]:
    return [(name, target["model"] if isinstance(target, dict) else target) for name, target in aliases.items()]


class _Entry(NamedTuple):
    """One fallback with where it stands: section, kind, and what is written there (None for the defaults of both sections)."""

    section: str
    kind: str
    written: Any
    fallback: Fallback


def _lists_of(document: Document) -> list[list[_Entry]]:
    """Return each list by itself. The two sections are not merged: which of them counts differs between versions.

    The defaults are the last entry of every list of plain fallbacks, and a list of their own where there is none.
    """
    parts = {section: document.get(section, {}) for section in SECTIONS}
    defaults = [target for part in parts.values() for target in part.get(DEFAULTS, ())]
    last = [_Entry("", DEFAULTS, None, Fallback(EVERY_NAME, _targets(defaults), "default fallback"))] if defaults else []
    lists = []
    for section, part in parts.items():
        for kind, word in KINDS.items():
            if kind in part:
                entries = [_Entry(section, kind, written, _fallback(written, word)) for written in part[kind]]
                lists.append([*entries, *last] if kind == "fallbacks" else entries)
    if not any("fallbacks" in part for part in parts.values()) and last:
        lists.append(last)
    return lists


def _fallback(entry: Any, word: str) -> Fallback:
    if isinstance(entry, str):
        return Fallback(ALWAYS, (Target(entry),), word)
    ((source, targets),) = entry.items()
    return Fallback(source, _targets(targets), word)


def _targets(targets: Sequence[Any]) -> tuple[Target, ...]:
    return tuple(
        Target(target) if isinstance(target, str) else Target(target["model"], "overrides" if target.get(UNREAD) else "")
        for target in targets
    )


# --- the same document with allowed names alone -----------------------------------------------------------------------------------


def allowed_document(document: Document, allowed: Collection[str]) -> dict[str, Any]:
    """Return the document with nothing in it but what the allowed names need. `allowed` holds with each name all that it reaches."""
    names = frozenset(allowed)
    found = [item for item in document["model_list"] if item["model_name"] in names]
    parts = ("model_name", "litellm_params", "model_info")
    kept: dict[str, Any] = {"model_list": [{part: item[part] for part in parts if part in item} for item in found]}
    models = {model for item in kept["model_list"] for model in _models(item)}
    used = {
        (entry.section, entry.kind, entry.fallback)
        for entries in _lists_of(document)
        for entry in entries
        if any(entry.fallback in applying([each.fallback for each in entries], name) for name in names)
    }
    for section in SECTIONS:
        settings = _allowed_settings(document.get(section, {}), section, names, models, used)
        if settings:
            kept[section] = settings
    return kept


def yaml_of(document: Document) -> str:
    """Return a document as YAML 1.2 text."""
    writer = YAML(typ="rt", pure=True)
    writer.default_flow_style = False
    writer.width = 4096
    stream = StringIO()
    writer.dump(dict(document), stream)
    return stream.getvalue()


def _allowed_settings(
    settings: Document,
    section: str,
    names: frozenset[str],
    models: Collection[str],
    used: Collection[tuple[str, str, Fallback]],
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for kind, word in KINDS.items():
        found = [written for written in settings.get(kind, ()) if (section, kind, _fallback(written, word)) in used]
        if found or (kind == "fallbacks" and kind in settings):
            kept[kind] = found
    if DEFAULTS in settings and any(kind == DEFAULTS for _, kind, _ in used):
        kept[DEFAULTS] = settings[DEFAULTS]
    for member, others in (("model_group_alias", ()), ("model_alias_map", models)):
        aliases = {name: target for name, target in settings.get(member, {}).items() if name in names or name in others}
        if aliases:
            kept[member] = aliases
    groups = [group for group in settings.get("routing_groups", ()) if group["group_name"] in names]
    if groups:
        kept["routing_groups"] = groups
    return {**kept, "routing_strategy": settings["routing_strategy"]} if kept and "routing_strategy" in settings else kept
