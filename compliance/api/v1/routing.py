"""What gateways serve: inventories handed in, each held against what is granted, and the part of one that is cleared."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import Digest, Instant
from compliance.api.parameters import Parameter, key, text
from compliance.api.parsers import YAML, ExactJSON, ExactYAML, body_of
from compliance.api.permissions import HasScopeOfAnySystem
from compliance.api.requests import request_id_of
from compliance.api.sighted import sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.subjects import kinds_of
from compliance.api.views import KEY_SCHEMA, ApiView, ListView, existing, text_in_path
from compliance.models import RoutingInventory
from compliance.selectors.routing import (
    DEFAULT_NAME,
    RouteReport,
    allowed_routing,
    find_inventories,
    get_inventory,
    newest_inventory,
    plain_report,
    read_routing_report,
    sees_clearance,
)
from compliance.selectors.systems import find_system
from compliance.services.routing import import_routes, read_import
from compliance.vocabulary import Scope
from evaluations.kernel.clock import now
from policies.language.routing import CHANGES, REASONS, shown_path
from policies.language.routing_forms import FORMS
from policies.language.routing_inventory import yaml_of
from policies.language.routing_text import MAX_BYTES
from policies.models import System

UID = text_in_path("uid", "The inventory's id.", format="uuid")
ACTION = "write"
NAMED = f"Default: {' or '.join(FORMS)}, as the text is."
BODY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["content"],
    "properties": {
        "name": {**KEY_SCHEMA, "description": f"The gateway's name. {NAMED}"},
        "content": {
            "type": "string",
            "maxLength": MAX_BYTES,
            "description": "The text of its `config.yaml`, or of requests to OpenRouter below `openrouter_routes:`.",
        },
    },
}
EXAMPLE = OpenApiExample(
    "a gateway with one route",
    request_only=True,
    media_type="application/json",
    value={
        "name": "prod-gateway",
        "content": "model_list:\n  - model_name: hr-agent\n    litellm_params: {model: lab/model-a}\n",
    },
)


class InventorySerializer(serializers.Serializer[Any]):
    """What one gateway serves since an instant. `digest` is over what was kept: keys and passwords are not."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    digest = Digest()
    previous = serializers.SerializerMethodField(help_text="The inventory before, null for the first.")
    imported_by = serializers.CharField()
    imported_at = Instant()

    @extend_schema_field({"type": "string", "format": "uuid", "nullable": True})
    def get_previous(self, inventory: RoutingInventory) -> str | None:
        return None if inventory.previous is None else str(inventory.previous.uid)


class ImportedSerializer(InventorySerializer):
    """The inventory that is in effect after it was handed in."""

    is_new = serializers.BooleanField(help_text="False where the one in effect said the same.")
    registered = serializers.ListField(
        child=serializers.CharField(), help_text="The versions, `key@number`, that routes run as from now on."
    )


class ReachSerializer(serializers.Serializer[Any]):
    """A model that can answer. `problem` is `unknown_model`, `no_grant`, or empty."""

    model = serializers.CharField(help_text="As it is written.")
    at = serializers.CharField(
        help_text="Its endpoint, or its provider at OpenRouter with the quantisation and effort, where they are written."
    )
    path = serializers.SerializerMethodField(help_text="A shortest way from the name to it.")
    subject = serializers.CharField(help_text="The model version that it means, `key@number`, or empty.")
    problem = serializers.CharField()

    def get_path(self, reach: Any) -> str:
        return shown_path(reach.path)


class OpenSerializer(serializers.Serializer[Any]):
    """Why the set behind a name cannot be known."""

    reason = serializers.ChoiceField(choices=sorted(REASONS), read_only=True)
    because = serializers.SerializerMethodField()
    change = serializers.SerializerMethodField(help_text="What to change so that it can be known.")
    path = serializers.SerializerMethodField(help_text="A shortest way from the name to what opens it.")

    def get_because(self, opened: Any) -> str:
        return REASONS[opened.reason]

    def get_change(self, opened: Any) -> str:
        return CHANGES[opened.reason]

    def get_path(self, opened: Any) -> str:
        return shown_path(opened.path)


class RouteSerializer(serializers.Serializer[Any]):
    """A name that is served. Cleared: the set behind it is closed, and everything in it has a live grant for the system and action."""

    name = serializers.CharField()
    cleared = serializers.SerializerMethodField(help_text="Null where no system was named.")
    members = ReachSerializer(many=True)
    opens = OpenSerializer(many=True)

    @extend_schema_field({"type": "boolean", "nullable": True})
    def get_cleared(self, route: RouteReport) -> bool | None:
        return route.cleared if self.context["held"] else None


class ReportSerializer(InventorySerializer):
    """An inventory with every name that it serves."""

    routes = serializers.SerializerMethodField()

    @extend_schema_field(RouteSerializer(many=True))
    def get_routes(self, inventory: RoutingInventory) -> Any:
        return RouteSerializer(self.context["report"], many=True, context=self.context).data


class RoutingList(ListView):
    """Inventories, newest first; and the way to hand one in."""

    scopes = {"GET": Scope.READ, "POST": Scope.REGISTER}
    find = staticmethod(find_inventories)
    filters = (key("name", "Only of the gateway with this name."),)
    serializer_class = InventorySerializer
    parser_classes = (ExactJSON, ExactYAML)

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        named = key("name", f"The gateway's name, for a YAML body. {NAMED}")
        return (named,) if method == "POST" else super().parameters_of(method)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        if method != "POST":
            return {}
        return {
            "409": "The Idempotency-Key was used with another body, or a route's key belongs to another kind of subject.",
            "411": "The body came without its length.",
            "413": "The body is larger than we read.",
            "415": f"The body is neither application/json nor {YAML}.",
        }

    @extend_schema(
        request={"application/json": BODY, YAML: OpenApiTypes.STR},
        responses={201: ImportedSerializer, 200: ImportedSerializer},
        examples=[EXAMPLE],
        description=(
            "Hand in what a LiteLLM gateway serves, its `config.yaml`, or what an application asks of OpenRouter, each request by name "
            "below `openrouter_routes:`. What decides who answers is kept, and nothing else: no key, no password and no prompt. Each "
            "name becomes a route, with a new version when the set behind it has changed: 201, or 200 where the inventory in effect "
            "says the same. A token needs the scope `register`, a person the role administrator."
        ),
    )
    def post(self, request: Request) -> Response:
        name, content = self.asked.get("name"), body_of(request)
        if str(request.content_type).partition(";")[0].strip().lower() != YAML:
            name, content = read_import(content, name=name)
        made = import_routes(
            actor=actor_of(request),
            body=content,
            name=name,
            kinds=kinds_of(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        shown: Any = made.inventory
        shown.is_new, shown.registered = made.is_new, made.registered
        place = reverse("api-v1:routing-inventory", kwargs={"uid": made.inventory.uid}, request=request)
        code = HTTPStatus.CREATED if made.is_new else HTTPStatus.OK
        return Response(ImportedSerializer(shown).data, status=code, headers={"Location": place})


class RoutingDetail(ApiView):
    """One inventory, with every name that it serves, held against a system where one is named that who asks may see."""

    path_parameters = (UID,)
    serializer_class = ReportSerializer

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return (
            key("system", "Hold every name against the live grants for this system."),
            text("action", f"And this action. Default: {ACTION}.", limit=40),
        )

    def get(self, request: Request, uid: str) -> Response:
        inventory: RoutingInventory = existing(get_inventory, uid=uid)
        at, held = now(), "system" in self.asked
        report = (
            read_routing_report(inventory, _system(request, self.asked["system"], at), self.asked.get("action", ACTION), at)
            if held
            else plain_report(inventory, at)
        )
        return Response(ReportSerializer(inventory, context={"report": report, "held": held}).data)


class RoutingAllowed(ApiView):
    """The part of a gateway's inventory in effect that is cleared for a system and action, in the form it was handed in.

    A token may be narrowed to the system.
    """

    permission_classes = (HasScopeOfAnySystem,)

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        system = key("system", "The system to which is written.")
        return (
            Parameter(system.name, system.read, system.schema, system.description, required=True),
            text("action", f"What is done to it. Default: {ACTION}.", limit=40),
            key("name", f"The gateway's name. Default: {DEFAULT_NAME}."),
        )

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {"404": "There is no such system that you may see, or nothing was handed in for this gateway."}

    @extend_schema(responses={(200, YAML): OpenApiTypes.OBJECT})
    def get(self, request: Request) -> HttpResponse:
        at = now()
        system = _system(request, self.asked["system"], at)
        inventory: RoutingInventory = existing(newest_inventory, name=self.asked.get("name", DEFAULT_NAME))
        document = allowed_routing(inventory, system, self.asked.get("action", ACTION), at)
        return HttpResponse(yaml_of(document), content_type=f"{YAML}; charset=utf-8")


def _system(request: Request, name: str, at: datetime) -> System:
    """Return a system whose grants who asks may see: who may write where is told to nobody else. 404 for all others."""
    found = find_system(key=name)
    if found is None or not sees_clearance(sight_for(request, Scope.READ, at=at), found):
        raise Http404
    return found
