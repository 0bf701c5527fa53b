"""Who can answer a request to OpenRouter: from what is kept of it to the closed set of models, each at a provider in a quantisation.

The same model at another provider, or in another quantisation, behaves otherwise, so what is known of the model elsewhere says nothing
here. Every model of a request may be answered by each provider it allows, in each quantisation: that a provider does not serve a model
today is not in the request. Order, prices, load and health are not looked at, as for every gateway.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from policies.language.routing import EVERY_NAME, Member, Open, Route, is_picked
from policies.language.routing_openrouter import PLACEHOLDER, PLUGINS, ROUTES, UNREAD

MAX_MEMBERS = 20_000
"""So many members may all routes of a file have together."""

_QUANTIZATIONS = frozenset({"int4", "int8", "fp4", "fp6", "fp8", "fp16", "bf16", "fp32", "unknown"})
_FIXED_VARIANTS = frozenset({"free", "extended", "thinking", "beta"})
"""Variants that are models of their own; all others change how the router chooses."""
_OWN_MODELS = "openrouter/"

_Request = Mapping[str, Any]


def requested_routes(document: Mapping[str, Any]) -> tuple[Route, ...]:
    """Return every route of a stripped document, in its order, with the closed set behind it."""
    return tuple(requested_route(name, request) for name, request in document[ROUTES].items())


def allowed_requests(document: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    """Return a stripped document with nothing in it but the allowed routes."""
    return {ROUTES: {name: request for name, request in document[ROUTES].items() if name in allowed}}


def count_members(document: Mapping[str, Any]) -> int:
    """Return how many members the routes of a stripped document have together at most, without listing them."""
    return sum(count_answers(request) for request in document[ROUTES].values())


def count_answers(request: _Request) -> int:
    """Return how many members the route of one kept request has at most, without listing them."""
    return len(_models(request)) * max(1, sum(max(1, len(quants or ())) for _, quants in _places(request)))


def requested_route(name: str, request: _Request, *, anywhere: str = "") -> Route:
    """Return the route of one kept request. `anywhere` is the place of a member of which none is named."""
    members: dict[tuple[str, str], Member] = {}
    opens: dict[tuple[str, tuple[str, ...]], Open] = {}

    def note(reason: str, *path: str) -> None:
        opens.setdefault((reason, path), Open(reason, (name, *path)))

    models = _models(request)
    places = _places(request)
    for unread in request.get(UNREAD, ()):
        note("plugin" if unread in PLUGINS else "unread_option", unread)
    if request.get("preset"):
        note("preset", "preset")
    if not models:
        note("no_model")
    if not _is_limited(request):
        note("any_provider", "provider")
    elif not any(quants is None or quants for _, quants in places):
        note("nobody", "provider")
    for provider, quants in places:
        if quants is None:
            note("any_quantization", "provider", *([provider] if provider else []))
    for place, model in enumerate(models):
        before = ("fallback",) if place else ()
        for reason in _open_by_name(model):
            note(reason, *before, model)
        for at in [place or anywhere for place in _named_places(places, request)] or [anywhere]:
            written = Member(model, at, ()).written
            members.setdefault((model, at), Member(model, at, (name, *before, written), exact=True))
    return Route(name, tuple(members[key] for key in sorted(members)), tuple(opens.values()))


def _models(request: _Request) -> tuple[str, ...]:
    """Return the models of a request in the order in which they are tried, each once."""
    first = [request["model"]] if "model" in request else []
    return tuple(dict.fromkeys([*first, *request.get("models", ())]))


def _open_by_name(model: str) -> Iterator[str]:
    """Yield why a name may stand for another model from one request to the next."""
    if PLACEHOLDER.search(model):
        yield "environment"
        return
    slug, at, _ = model.lower().partition("@")
    if at:
        yield "preset"
    base, *variants = slug.split(":")
    if EVERY_NAME in base:
        yield "wildcard"
    if base.startswith(_OWN_MODELS) or is_picked(base):
        yield "auto_model"
    elif base.startswith("~") or base.endswith("-latest"):
        yield "moving_name"
    if not set(variants) <= _FIXED_VARIANTS:
        yield "router_variant"


def _is_limited(request: _Request) -> bool:
    """True where a request says which providers there are, and that there is no other behind them.

    `only` does not say it: it is merged with what the account allows, and whether that adds to it is nowhere told.
    """
    provider = request.get("provider", {})
    return provider.get("allow_fallbacks") is False and bool(provider.get("order"))


def _places(request: _Request) -> list[tuple[str, Sequence[str] | None]]:
    """Return the providers that a request names, each with the quantisations that it may serve in; None where it may be any.

    A name such as `deepinfra/fp8` says the quantisation itself. A request that names no provider has one with an empty name.
    """
    provider = request.get("provider", {})
    asked: Sequence[str] | None = provider.get("quantizations") or None
    found: dict[str, list[str] | None] = {}
    for name in _providers(provider):
        base, _, last = name.rpartition("/")
        if base and last in _QUANTIZATIONS:
            own = [last] if asked is None or last in asked else []
            before = found.get(base, [])
            found[base] = None if before is None else [*before, *own]
        else:
            found[name] = None if asked is None else list(asked)
    return [(name, None if quants is None else tuple(dict.fromkeys(quants))) for name, quants in found.items()]


def _providers(provider: Mapping[str, Any]) -> list[str]:
    order, only, ignored = (provider.get(member) or [] for member in ("order", "only", "ignore"))
    # Without a limit all of them may come to answer, and others besides; those that are named are shown.
    named = order if order and provider.get("allow_fallbacks") is False else [*order, *only]
    return [name for name in dict.fromkeys(named or [""]) if not any(_covers(other, name) for other in ignored)]


def _covers(wide: str, narrow: str) -> bool:
    """True where a provider's name means all that the other one does: `deepinfra` is every endpoint of it."""
    return narrow == wide or narrow.startswith(f"{wide}/")


def _named_places(places: Sequence[tuple[str, Sequence[str] | None]], request: _Request) -> list[str]:
    """Return each place as it is written in a member: `deepinfra (fp8, effort high)`."""
    effort = _effort(request.get("reasoning", {}))
    found = []
    for provider, quants in places:
        for quant in [""] if quants is None else quants:
            said = ", ".join(part for part in (quant, effort) if part)
            found.append(" ".join(part for part in (provider, f"({said})" if said else "") if part))
    return found


def _effort(reasoning: Mapping[str, Any]) -> str:
    if reasoning.get("enabled") is False:
        return "no reasoning"
    if reasoning.get("effort"):
        return f"effort {reasoning['effort']}"
    if reasoning.get("max_tokens"):
        return f"{reasoning['max_tokens']} tokens of reasoning"
    return "reasoning" if reasoning.get("enabled") else ""
