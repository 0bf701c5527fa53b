"""People and their roles: who I am, who there is, and the giving and ending of roles."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import BODY_REFUSALS, INSTANT, REASON, instant_in, object_schema, read_body, reason_in
from compliance.api.fields import Instant, Words
from compliance.api.parameters import Parameter, key, word
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import Administers, HasScopeOfAnySystem
from compliance.api.sighted import act_of, person_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import KEY_SCHEMA, ApiView, ListView, existing, number_in_path, text_in_path
from compliance.models import ServiceToken
from compliance.selectors.people import find_membership, find_people, find_person
from compliance.selectors.systems import find_team
from compliance.services.roles import end_role, give_role
from compliance.vocabulary import Role
from evaluations.importers.fields import shown
from evaluations.kernel.clock import now

PERSON = text_in_path("person", "The person's id.", format="uuid")
GIVE = object_schema(
    ("role",),
    role={"type": "string", "enum": list(Role.values)},
    team={**KEY_SCHEMA, "description": "For the systems of this team alone. Left out: for those of her own."},
    ends_at={**INSTANT, "description": "Left out: until it is ended."},
)
END = object_schema(("reason",), reason=REASON)


class MembershipSerializer(serializers.Serializer[Any]):
    """A role that somebody holds or held. Null ends it only when somebody does."""

    number = serializers.IntegerField(source="pk")
    role = Words(Role)
    team = serializers.SerializerMethodField()
    given_by = serializers.CharField()
    starts_at = Instant()
    ends_at = Instant(allow_null=True)

    @extend_schema_field({"type": "string", "nullable": True})
    def get_team(self, row: Any) -> str | None:
        return None if row.team is None else row.team.key


class PersonDetailSerializer(serializers.Serializer[Any]):
    """A person, the roles that she holds now, and what her signing needs."""

    person = serializers.UUIDField(source="pk")
    name = serializers.CharField(allow_null=True, help_text="Null once it is erased.")
    team = serializers.SerializerMethodField()
    roles = MembershipSerializer(many=True, source="held")
    has_account = serializers.BooleanField(help_text="Whether an account of hers is open.")
    has_second_factor = serializers.BooleanField(help_text="An authenticator app or a passkey; who signs holds one.")
    signing_on_hold = serializers.BooleanField(source="on_hold")

    @extend_schema_field({"type": "string", "nullable": True})
    def get_team(self, row: Any) -> str | None:
        return None if row.team is None else row.team.key


class MeSerializer(PersonDetailSerializer):
    """The person who asks, and the scopes of her token where one does."""

    scopes = serializers.SerializerMethodField(help_text="Null for a session.")

    @extend_schema_field({"type": "array", "items": {"type": "string"}, "nullable": True})
    def get_scopes(self, row: Any) -> list[str] | None:
        token = self.context["request"].auth
        return list(token.scopes) if isinstance(token, ServiceToken) else None


class Me(ApiView):
    """Who you are here: the signed-in person, or the one whose token asks."""

    permission_classes = (HasScopeOfAnySystem,)
    serializer_class = MeSerializer

    def get(self, request: Request) -> Response:
        return Response(self.get_serializer(existing(find_person, person_id=person_of(request), at=now())).data)


class PersonList(ListView):
    """People, oldest first: for auditors and administrators, signed in."""

    permission_classes = (Administers,)
    filters = (
        word("role", Role, "Only those who hold this role now."),
        key("team", "Only those of this team."),
    )
    serializer_class = PersonDetailSerializer
    page_key = "first_account"
    oldest_first = True

    def get_queryset(self) -> Any:
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return find_people(at=now(), **chosen)


class RoleAct(ApiView):
    """Base of what an administrator does with the roles of a person."""

    permission_classes = (Administers,)
    parser_classes = (ExactJSON,)
    serializer_class = MembershipSerializer
    path_parameters: ClassVar[Sequence[Parameter]] = (PERSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        **BODY_REFUSALS,
        "404": "There is no such person or role.",
        "409": "The state of her roles does not allow it, or the Idempotency-Key was used for something else.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS


class PersonRoles(RoleAct):
    """The giving of roles."""

    @extend_schema(
        request={"application/json": GIVE},
        responses={201: MembershipSerializer},
        description="Give somebody else a role from now on. It does not count for what its giver asks for.",
    )
    def post(self, request: Request, person: uuid.UUID) -> Response:
        held = existing(find_person, person_id=person, at=now())
        body = read_body(request, "role", "team", "ends_at", example='{"role": "security"}')
        role, name, ends_at = body.text("role", required=True), body.text("team"), instant_in(body, "ends_at")
        team = find_team(key=name) if name else None
        if name and team is None:
            body.wrong("team", f"there is no team {shown(name)}", "look it up", "unknown")
        body.done()
        given = give_role(person=held, role=role, team=team, ends_at=ends_at, **act_of(request))
        location = reverse("api-v1:people", request=request)
        return Response(MembershipSerializer(given).data, status=status.HTTP_201_CREATED, headers={"Location": location})


class PersonRoleEnd(RoleAct):
    """The end of a role."""

    path_parameters = (PERSON, number_in_path("number", "The number of the role that she holds."))

    @extend_schema(
        request={"application/json": END},
        responses={200: MembershipSerializer},
        description="End a role now. What was signed under it stays on record.",
    )
    def post(self, request: Request, person: uuid.UUID, number: int) -> Response:
        held = existing(find_membership, person_id=person, number=number)
        body = read_body(request, "reason", example='{"reason": "…"}')
        reason = reason_in(body)
        body.done()
        return Response(MembershipSerializer(end_role(membership=held, reason=reason, **act_of(request))).data)
