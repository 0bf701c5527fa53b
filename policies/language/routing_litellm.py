"""LiteLLM's `config.yaml`, in: what decides who answers is kept, as LiteLLM writes it; all else, keys and passwords first, is left out.

What the kept document says, `routing_inventory` reads. It sees the file alone: what a gateway was told past it, such as aliases of
single keys and teams, or fallbacks that a client names in its request, is not in here.

What LiteLLM does not know of a deployment's parameters it sends along (docs.litellm.ai/docs/completion/provider_specific_params), and
members of `extra_body` before all. So a deployment that asks OpenRouter is read as a request to it, and kept with what decides there in
`extra_body`; any other whose `extra_body` names who is to answer is open.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from policies.language.routing_auto import ROUTERS, kept_list
from policies.language.routing_openrouter import UNREAD, RequestReader
from policies.language.routing_providers import ENVIRONMENT, asks_openrouter, name_at_openrouter
from policies.language.routing_requests import count_answers
from policies.language.routing_shapes import NAME_HINT, is_name, line_of
from policies.language.routing_text import Items, Members, Switch, Text

MAX_DEPLOYMENTS = 1_000
MAX_TARGETS = 10_000
"""So many names may stand in all lists together; walking every route takes as many steps as routes times names."""

KINDS = {
    "fallbacks": "fallback",
    "context_window_fallbacks": "context window fallback",
    "content_policy_fallbacks": "content policy fallback",
}
DEFAULTS = "default_fallbacks"
SECTIONS = ("router_settings", "litellm_settings")
OWN_FALLBACKS = (*KINDS, DEFAULTS, "context_window_fallback_dict", "model_list")
ELSEWHERE = "environment_variables"
_ADDRESSES = ("api_base", "base_url")
_DECIDING = ("extra_body", "model_id", "provider", "route", "preset", "plugins", "models")
"""Parameters that say who answers, where they are meant for every deployment."""
_BODY = ("model", "fallbacks", "provider", "route", "preset", "plugins")
"""Members of a request that name others than the deployment does."""
_REDIRECTS = ("use_litellm_proxy", "api_base")
_REDIRECTING = (
    "USE_LITELLM_PROXY",
    "OPENAI_API_BASE",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_BASE",
    "HF_API_BASE",
    "HUGGINGFACE_API_BASE",
)
"""Settings, and variables that a file sets, which send what names another elsewhere."""


def strip_litellm(root: Members, *, filename: str = "") -> dict[str, Any]:
    """Return the stripped document: plain values in LiteLLM's own form, with no secret in it. Raises `InputRefused` with lines."""
    return _Reader(filename).strip(root)


class _Reader(RequestReader):
    """Checks shapes and strips."""

    def document(self, root: Members) -> dict[str, Any]:
        if "include" in root:
            hint = "hand in one file in which everything stands"
            self.note(root.lines["include"], "include", "other files are included, which are not here", hint, "include")
        if root.get("model_list") is None:
            self.note(1, "model_list", "it is missing", "list every deployment; `[]` says that there is none", "missing")
        models = self.sequence(root, "model_list", "model_list")
        if len(models) > MAX_DEPLOYMENTS:
            self.note(models.line, "model_list", f"{len(models)} deployments", f"at most {MAX_DEPLOYMENTS} are read", "too_long")
            return {}
        credentials = self._credentials(root)
        deployments = [self._deployment(item, f"model_list[{place}]", credentials) for place, item in enumerate(models)]
        found: dict[str, Any] = {"model_list": [item for item in deployments if item is not None]}
        for section in SECTIONS:
            settings = self._settings(self.mapping(root, section, section), section)
            if settings:
                found[section] = settings
        general = self.mapping(root, "general_settings", "general_settings")
        if _is_on(general.get("store_model_in_db")):
            found["general_settings"] = {"store_model_in_db": True}
        variables = self.mapping(root, ELSEWHERE, ELSEWHERE)
        redirecting = [name for name in _REDIRECTING if variables.get(name) is not None]
        if redirecting:
            found[ELSEWHERE] = {UNREAD: redirecting}
        if self._names > MAX_TARGETS:
            self.note(1, "", f"{self._names} names stand in the lists", f"at most {MAX_TARGETS} are read", "too_long")
        return found

    # --- deployments ---

    def _credentials(self, root: Members) -> dict[str, Members]:
        """Return the values of each credential by its name, secrets and all: nothing but addresses is read of them."""
        found = {}
        for place, item in self.items(root, "credential_list", ""):
            if isinstance(item, Members) and isinstance(item.get("credential_name"), str):
                found[str(item["credential_name"])] = self.mapping(item, "credential_values", f"credential_list[{place}]")
        return found

    def _deployment(self, item: Any, field: str, credentials: Mapping[str, Members]) -> dict[str, Any] | None:
        if not isinstance(item, Members):
            self.note(line_of(item), field, "it is no mapping", "write `model_name:` and `litellm_params:`")
            return None
        name = self.name(item, "model_name", field)
        params = self.mapping(item, "litellm_params", f"{field}.litellm_params")
        model = self.name(params, "model", f"{field}.litellm_params", line=item.line)
        if not name or not model:
            return None
        provider = params.get("custom_llm_provider")
        if isinstance(provider, str) and is_name(provider) and not model.startswith((f"{provider}/", ENVIRONMENT, ROUTERS)):
            model = f"{provider}/{model}"
        kept: dict[str, Any] = {"model": model}
        unread = {member for member in OWN_FALLBACKS if params.get(member) is not None}
        at = _address(params, credentials, unread)
        if at:
            kept["api_base"] = at
        for member in ("silent_model", "model_id"):
            if isinstance(params.get(member), str) and is_name(params[member]):
                kept[member] = str(params[member])
        if _is_on(params.get("use_litellm_proxy")):
            kept["use_litellm_proxy"] = True
        if model.startswith(ROUTERS):
            kept |= kept_list(params)
        elif asks_openrouter(model, at):
            kept |= self._asked(params, model, f"{field}.litellm_params", unread)
        else:
            models = self._models_asked(params, f"{field}.litellm_params", unread)
            kept |= {"models": models} if models else {}
        return {
            "model_name": name,
            "litellm_params": kept | ({UNREAD: sorted(unread)} if unread else {}),
            **self._info(item, field),
        }

    def _asked(self, params: Members, model: str, field: str, unread: set[str]) -> dict[str, Any]:
        """Return what is kept of what a deployment asks of OpenRouter."""
        asked = Members({member: value for member, value in params.items() if member not in KINDS})
        asked["model"] = Text(name_at_openrouter(model))
        asked["model"].line = params.lines["model"]
        asked.line, asked.lines = params.line, params.lines
        request = self.request(asked, field)
        if params.get("additional_drop_params") is not None:
            # What it names is taken out of the request again.
            unread.add("additional_drop_params")
        unread.update(request.pop(UNREAD, ()))
        self._names += count_answers(request)
        del request["model"]
        return {"extra_body": request} if request else {}

    def _models_asked(self, params: Members, field: str, unread: set[str]) -> list[str]:
        """Return the models that any other deployment names beside its own; what else in a body names others is noted as unread."""
        found = self._names_in(params["models"], f"{field}.models") if params.get("models") is not None else []
        body = params.get("extra_body")
        if isinstance(body, Members):
            unread.update(f"extra_body.{member}" for member in _BODY if body.get(member) is not None)
            found += self._names_in(body["models"], f"{field}.extra_body.models") if body.get("models") is not None else []
        elif body is not None:
            unread.add("extra_body")
        return found

    def _info(self, item: Members, field: str) -> dict[str, Any]:
        info = self.mapping(item, "model_info", f"{field}.model_info")
        kept: dict[str, Any] = {}
        for member in ("id", "base_model"):
            if isinstance(info.get(member), str) and is_name(info[member]):
                kept[member] = str(info[member])
        groups = info.get("access_groups")
        if isinstance(groups, Items):
            kept["access_groups"] = [str(group) for group in groups if isinstance(group, str) and is_name(group)]
        return {"model_info": kept} if kept else {}

    # --- settings ---

    def _settings(self, section: Members, field: str) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for kind in KINDS:
            if section.get(kind) is not None:
                # Also where it is empty: whether a section has a list decides whether its defaults are looked up there.
                kept[kind] = self._fallbacks(section, kind, f"{field}.{kind}")
        defaults = section.get(DEFAULTS)
        if defaults is not None:
            kept[DEFAULTS] = self._targets(defaults, f"{field}.{DEFAULTS}")
        for member in ("model_group_alias", "model_alias_map"):
            aliases = self._aliases(section, member, f"{field}.{member}")
            if aliases:
                kept[member] = aliases
        groups = [
            self._group(item, f"{field}.routing_groups[{place}]") for place, item in self.items(section, "routing_groups", field)
        ]
        if groups:
            kept["routing_groups"] = [group for group in groups if group is not None]
        if isinstance(section.get("routing_strategy"), str) and is_name(section["routing_strategy"]):
            kept["routing_strategy"] = str(section["routing_strategy"])
        merged = section.get("default_litellm_params")
        if isinstance(merged, Members):
            unread = sorted(member for member in merged if member in ("model", *_ADDRESSES, *_DECIDING, *OWN_FALLBACKS))
            if unread:
                kept["default_litellm_params"] = {UNREAD: unread}
        redirects = [member for member in _REDIRECTS if _is_on(section.get(member))]
        if redirects:
            kept[UNREAD] = redirects
        return kept

    def _fallbacks(self, section: Members, member: str, field: str) -> list[Any]:
        found: list[Any] = []
        for place, item in self.items(section, member, field.rpartition(".")[0]):
            here = f"{field}[{place}]"
            if isinstance(item, Members):
                found += [{self._source(source, item, here): self._targets(item[source], here)} for source in item]
            elif isinstance(item, str) and is_name(item):
                self._names += 1
                found.append(str(item))
            else:
                self.note(line_of(item), here, "it is no fallback", "write `- NAME: [NAME, …]`")
        return found

    def _source(self, source: str, item: Members, field: str) -> str:
        if not is_name(source):
            self.note(item.lines[source], field, "the name is not fit to be shown", NAME_HINT)
        return source

    def _targets(self, given: Any, field: str) -> list[Any]:
        if not isinstance(given, Items):
            self.note(line_of(given), field, "it is no list of names", "write `[NAME, …]`")
            return []
        found: list[Any] = []
        for place, item in enumerate(given):
            self._names += 1
            if isinstance(item, str) and is_name(item):
                found.append(str(item))
            elif isinstance(item, Members) and isinstance(item.get("model"), str) and is_name(item["model"]):
                others = sorted(member for member in item if member != "model" and is_name(member))
                found.append({"model": str(item["model"]), **({UNREAD: others} if len(item) > 1 else {})})
            else:
                self.note(line_of(item) or given.line, f"{field}[{place}]", "it is no name", NAME_HINT)
        return found

    def _aliases(self, section: Members, member: str, field: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, target in self.mapping(section, member, field).items():
            self._names += 1
            given = target.get("model") if isinstance(target, Members) else target
            if not is_name(name) or not isinstance(given, str) or not is_name(given):
                line = section[member].lines[name]
                self.note(line, field, "it is no alias", "write `NAME: NAME`")
                continue
            hidden = isinstance(target, Members) and _is_on(target.get("hidden"))
            found[name] = {"model": str(given), "hidden": True} if hidden else str(given)
        return found

    def _group(self, item: Any, field: str) -> dict[str, Any] | None:
        if not isinstance(item, Members):
            self.note(line_of(item), field, "it is no routing group", "write `group_name:` and `models:`")
            return None
        name = self.name(item, "group_name", field)
        models = self._names_in(item.get("models"), f"{field}.models", line=item.line)
        if not name:
            return None
        strategy = item.get("routing_strategy")
        kept = {"group_name": name, "models": models}
        return {**kept, "routing_strategy": str(strategy)} if isinstance(strategy, str) and is_name(strategy) else kept

    # --- parts ---

    def _names_in(self, given: Any, field: str, *, line: int = 0) -> list[str]:
        if given is None:
            self.note(line, field, "it is missing", "write `[NAME, …]`", "missing")
            return []
        names = [target for target in self._targets(given, field) if isinstance(target, str)]
        if isinstance(given, Items) and len(names) != len(given) and not self.problems:
            self.note(given.line, field, "it is no list of names", "write `[NAME, …]`")
        return names


def _is_on(value: object) -> bool:
    """True for what LiteLLM takes for true, and for what it would look up elsewhere."""
    return value.on if isinstance(value, Switch) else isinstance(value, str) and value.lower() not in ("false", "0", "no", "off")


def _address(params: Members, credentials: Mapping[str, Members], unread: set[str]) -> str:
    """Return where a deployment is asked, "" for its provider's own address; what cannot be told is noted as unread.

    LiteLLM takes from a credential what the deployment itself does not say.
    """
    given = [params[member] for member in _ADDRESSES if params.get(member)]
    name = params.get("litellm_credential_name")
    if not given and name is not None:
        values = credentials.get(name) if isinstance(name, str) else None
        if values is None:
            unread.add("litellm_credential_name")
            return ""
        given = [values[member] for member in _ADDRESSES if values.get(member)]
    found = {_endpoint(each) for each in given}
    if len(found) > 1 or "" in found:
        unread.add("api_base")
        return ""
    return found.pop() if found else ""


def _endpoint(given: object) -> str:
    """Return an address without user, password, query and fragment, "" where there is none or none that can be read."""
    if not isinstance(given, str) or not is_name(given):
        return ""
    if given.startswith(ENVIRONMENT):
        return given
    try:
        parts = urlsplit(given)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or parts.scheme not in ("http", "https"):
        return ""
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
