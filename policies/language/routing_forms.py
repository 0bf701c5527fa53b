"""The forms in which is said who answers: LiteLLM's `config.yaml` and requests to OpenRouter, each told by its first key.

What is kept of either is a document of plain values; here is what can be asked of it, whichever form it has.
"""

from collections.abc import Collection, Mapping
from typing import Any

from evaluations.kernel.errors import InputRefused, Problem
from policies.language.routing import Route, public_names, resolve
from policies.language.routing_inventory import allowed_document, inventory_of
from policies.language.routing_litellm import strip_litellm
from policies.language.routing_openrouter import ROUTES, strip_openrouter
from policies.language.routing_requests import MAX_MEMBERS, allowed_requests, count_members, requested_routes
from policies.language.routing_text import Members, read_text

LITELLM, OPENROUTER = "litellm", "openrouter"
FORMS = (LITELLM, OPENROUTER)
"""A form's name is also that of the gateway that is meant where none is named."""

Document = Mapping[str, Any]


def read_routing(body: bytes, *, filename: str = "") -> dict[str, Any]:
    """Return what is kept of a text in either form. Raises `InputRefused` with lines, never with a word of the text."""
    root = read_text(body, filename=filename)
    if ROUTES not in root:
        _refuse_lone_request(root, filename)
        return strip_litellm(root, filename=filename)
    document = strip_openrouter(root, filename=filename)
    count = count_members(document)
    if count > MAX_MEMBERS:
        message = f"{count} models at providers in quantisations stand behind its routes"
        raise InputRefused([Problem(message, filename, 1, field=ROUTES, code="too_long", hint=f"at most {MAX_MEMBERS} are read")])
    return document


def form_of(document: Document) -> str:
    """Return in which of `FORMS` a document is."""
    return OPENROUTER if ROUTES in document else LITELLM


def form_of_start(content: bytes) -> str:
    """Return in which of `FORMS` the canonical bytes of a document are, by their start: in OpenRouter's stand the requests alone."""
    return OPENROUTER if content.startswith(f'{{"{ROUTES}":'.encode()) else LITELLM


def names_in(document: Document) -> tuple[str, ...]:
    """Return every name that a document serves, in its order."""
    return tuple(document[ROUTES]) if form_of(document) == OPENROUTER else public_names(inventory_of(document))


def routes_in(document: Document) -> tuple[Route, ...]:
    """Return every name that a document serves, in its order, with the closed set behind it."""
    return requested_routes(document) if form_of(document) == OPENROUTER else resolve(inventory_of(document))


def allowed_part(document: Document, allowed: Collection[str]) -> dict[str, Any]:
    """Return a document with nothing in it but what the allowed names need. `allowed` holds with each name all that it reaches."""
    return (allowed_requests if form_of(document) == OPENROUTER else allowed_document)(document, allowed)


def _refuse_lone_request(root: Members, filename: str) -> None:
    """Refuse a request to OpenRouter that stands by itself: nobody could say which route it is."""
    found = next((member for member in ("model", "models", "provider") if member in root), None)
    if found is not None and "model_list" not in root:
        hint = f"write it as `NAME: {{model: …}}` below `{ROUTES}:`"
        raise InputRefused(
            [Problem("a request stands here without a name", filename, root.lines[found], code="shape", hint=hint)]
        )
