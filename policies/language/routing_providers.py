"""Whether the name that a LiteLLM deployment asks for says who answers, or leaves that to whoever is asked.

A name is closed where it means one model, however many hosts its provider runs it on: an inference profile of Amazon Bedrock for
several regions (`bedrock/us.anthropic.…`) is one model, `azure/DEPLOYMENT` one deployment. It is open where somebody decides past the
file:

- OpenRouter has many providers behind one name and fallbacks of its own: its names are read as `routing_requests` reads them.
- LiteLLM's own proxy (`litellm_proxy/`) has a file of its own; Vercel's AI Gateway rewrites models by rules of the team
  (vercel.com/docs/ai-gateway/models-and-providers/routing-rules); Helicone's takes a list of models for one and picks the provider
  (docs.helicone.ai/gateway/overview); Portkey's follows a config that a header names (portkey.ai/docs/product/ai-gateway/configs).
- Names of agents (`bedrock/agent/`, `bedrock/agentcore/`, `azure_ai/agents/`, `vertex_ai/agent_engine/`, `langgraph/`, `a2a/`) stand
  for whatever model the agent is set to.
- Azure's model router, Bedrock's prompt routers (docs.aws.amazon.com/bedrock/latest/userguide/prompt-routing.html), Cloudflare's
  dynamic routes and every `auto` model pick for each request: `is_picked` of `routing`.
- Hugging Face sends a model to the host that the account prefers, unless one is named
  (docs.litellm.ai/docs/providers/huggingface); at another host it may be in another quantisation.

Who is asked is told by the address where it is that of such a router, and else by what stands before the first `/`. Whoever sells the
models of others, each under its name, and says nothing of choosing, counts as what it says.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from policies.language.routing import is_picked

ENVIRONMENT = "os.environ/"
OPENROUTER = "openrouter"
_HUGGING_FACE = "huggingface"
_ADDRESSES = {
    "openrouter.ai": OPENROUTER,
    "router.huggingface.co": _HUGGING_FACE,
    "ai-gateway.vercel.sh": "vercel_ai_gateway",
    "helicone.ai": "helicone",
    "portkey.ai": "portkey",
}
_GATEWAYS = frozenset({"litellm_proxy", "vercel_ai_gateway", "helicone", "portkey", "langgraph", "a2a", "a2a_agent"})
_AGENTS = frozenset({"bedrock/agent", "bedrock/agentcore", "azure_ai/agents", "vertex_ai/agent_engine"})
_POLICIES = frozenset({"", "auto", "fastest", "cheapest", "preferred"})
"""What stands at Hugging Face in the place of a host and has it chosen."""
_OWN_ADDRESSES = {
    "openai": "openai.com",
    "text-completion-openai": "openai.com",
    "anthropic": "anthropic.com",
    "gemini": "googleapis.com",
    "mistral": "mistral.ai",
    "deepseek": "deepseek.com",
    "xai": "x.ai",
    "groq": "groq.com",
}


def asks_openrouter(model: str, at: str) -> bool:
    """True where a model as written, at an address ("" for its provider's own), is asked of OpenRouter."""
    return _asked(model, at) == OPENROUTER


def name_at_openrouter(model: str) -> str:
    """Return a model as written in the words of OpenRouter: without the provider that LiteLLM takes off."""
    name = model if model.startswith(ENVIRONMENT) or "/" not in model else model.partition("/")[2]
    return name if "/" in name else f"{OPENROUTER}/{name}"


def open_by_provider(model: str, at: str) -> Iterator[str]:
    """Yield why a model as written may be another from one request to the next, beside what its name at OpenRouter says."""
    asked = _asked(model, at)
    if asked in _GATEWAYS or "/".join(model.lower().split("/")[:2]) in _AGENTS:
        yield "another_gateway"
    elif asked == OPENROUTER:
        if at and not _is_at(at, "openrouter.ai"):
            yield "another_gateway"
    elif is_picked(model) or is_picked(urlsplit(at).path):
        yield "auto_model"
    elif asked == _HUGGING_FACE and not _names_host(model, at):
        yield "any_host"


def is_elsewhere(model: str, at: str) -> bool:
    """True where what is known of a model by its name alone says nothing of it at an address: the name is that of another's model."""
    provider, named, _ = model.partition("/")
    return bool(at) and (not named or (provider in _OWN_ADDRESSES and not _is_at(at, _OWN_ADDRESSES[provider])))


def _asked(model: str, at: str) -> str:
    known = next((asked for address, asked in _ADDRESSES.items() if _is_at(at, address)), "")
    return known or model.lower().partition("/")[0]


def _is_at(at: str, address: str) -> bool:
    host = (urlsplit(at).hostname or "").rstrip(".")
    return host == address or host.endswith(f".{address}")


def _names_host(model: str, at: str) -> bool:
    """True where a model at Hugging Face is asked of one host: an endpoint of one's own, `HOST/AUTHOR/MODEL` or `AUTHOR/MODEL:HOST`."""
    name = model.partition("/")[2]
    if (at and not _is_at(at, "router.huggingface.co")) or name.startswith(("https:", "http:")):
        return True
    base, _, behind = name.partition(":")
    before = base.split("/")[0] if base.count("/") > 1 else urlsplit(at).path.strip("/").partition("/")[0].removeprefix("v1")
    return (behind or before).lower() not in _POLICIES
