"""Drafts of policies: saved as the very bytes sent, shown with what is wrong with them, and proposed as the next version."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import BODY_REFUSALS
from compliance.api.fields import Digest, Instant
from compliance.api.parameters import Parameter, digest
from compliance.api.parsers import YAML, ExactYAML, body_of
from compliance.api.permissions import ServiceJudgesWhole
from compliance.api.sighted import act_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.policies import NAME, PolicyTextSerializer
from compliance.api.views import ApiView, ListView, existing, text_in_path
from compliance.selectors.policies import get_policy_version
from compliance.services.drafting import propose_draft, save_draft
from compliance.vocabulary import Scope
from policies.models import PolicyDraft
from policies.selectors.drafts import find_drafts, problems_of_draft

UID = text_in_path("uid", "The draft's id.", format="uuid")
REPLACES = digest("replaces", "Digest of the draft that you edited. Left out: there is none yet. 409 where another one stands.")
_REFUSALS: Mapping[str, str] = {
    **BODY_REFUSALS,
    "409": "Another draft was saved meanwhile, or the Idempotency-Key was used for something else.",
    "415": f"The body is not {YAML}.",
}


def find_draft(*, name: str, uid: uuid.UUID | str) -> PolicyDraft | None:
    """Return one saved draft of a policy."""
    try:
        # Taken as text from the address: what is no id would else be read as part of a policy's name.
        wanted = uuid.UUID(str(uid))
    except ValueError:
        return None
    found: PolicyDraft | None = find_drafts(name=name).filter(uid=wanted).first()
    return found


class DraftSerializer(serializers.Serializer[Any]):
    """One text that was saved as a draft, without the text."""

    uid = serializers.UUIDField()
    policy = serializers.CharField(source="policy_name")
    digest = Digest(help_text="Of the exact bytes saved.")
    edited_by = serializers.CharField()
    recorded_at = Instant()
    version = serializers.IntegerField(allow_null=True, help_text="The version with these very bytes; null where it is a draft.")


class DraftProblemSerializer(serializers.Serializer[Any]):
    """One thing that keeps a draft from being proposed: where it stands, and what to write instead."""

    message = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    field = serializers.CharField(allow_blank=True)
    code = serializers.CharField(allow_blank=True)
    hint = serializers.CharField(allow_blank=True)


class DraftTextSerializer(DraftSerializer):
    """One text that was saved as a draft, and everything that is wrong with it by what is registered now."""

    text = serializers.SerializerMethodField()
    problems = serializers.SerializerMethodField()

    def get_text(self, draft: PolicyDraft) -> str:
        return bytes(draft.text).decode("utf-8", "replace")

    @extend_schema_field(DraftProblemSerializer(many=True))
    def get_problems(self, draft: PolicyDraft) -> Any:
        return DraftProblemSerializer(problems_of_draft(draft), many=True).data


class DraftList(ListView):
    """What was saved as drafts of a policy, newest first; and the way to save one."""

    scopes: ClassVar[Mapping[str, str]] = {"GET": Scope.READ, "POST": Scope.REQUEST}
    find = staticmethod(find_drafts)
    path_parameters = (NAME,)
    permission_classes = (ServiceJudgesWhole,)
    parser_classes = (ExactYAML,)
    serializer_class = DraftSerializer

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return (REPLACES,) if method == "POST" else super().parameters_of(method)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **(_REFUSALS if method == "POST" else {})}

    def get_queryset(self) -> Any:
        return super().get_queryset().defer("text")

    @extend_schema(
        request={YAML: OpenApiTypes.STR},
        responses={201: DraftTextSerializer},
        description=(
            "Save a text as the policy's draft. It need not compile: the answer says everything that is wrong with it. Needs the role "
            "policy_author or policy_approver; whoever saved a draft does not sign what comes of it."
        ),
    )
    def post(self, request: Request, name: str) -> Response:
        replaces = self.asked.get("replaces", "")
        draft = save_draft(policy=name, text=body_of(request), replaces=replaces, **act_of(request))
        location = reverse("api-v1:policy-draft", kwargs={"name": name, "uid": draft.uid}, request=request)
        shown = DraftTextSerializer(find_draft(name=name, uid=draft.uid)).data
        return Response(shown, status=status.HTTP_201_CREATED, headers={"Location": location})


class DraftDetail(ApiView):
    """One text that was saved as a draft, with everything that is wrong with it."""

    path_parameters = (NAME, UID)
    serializer_class = DraftTextSerializer

    def get(self, request: Request, name: str, uid: str) -> Response:
        return Response(self.get_serializer(existing(find_draft, name=name, uid=uid)).data)


class DraftPropose(ApiView):
    """The end of a draft: from then on its bytes are a version, and never change."""

    scopes: ClassVar[Mapping[str, str]] = {"POST": Scope.REQUEST}
    permission_classes = (ServiceJudgesWhole,)
    path_parameters = (NAME, UID)
    serializer_class = PolicyTextSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), "409": _REFUSALS["409"]}

    @extend_schema(
        request=None,
        responses={201: PolicyTextSerializer},
        description=(
            "Propose a draft, which must be the newest, as the next version. A text that cannot be right is refused with every problem "
            "at once, each with line and column. It binds nobody until its activation is asked for and signed."
        ),
    )
    def post(self, request: Request, name: str, uid: str) -> Response:
        version = propose_draft(draft=existing(find_draft, name=name, uid=uid), **act_of(request))
        location = reverse("api-v1:policy-version", kwargs={"name": name, "number": version.number}, request=request)
        shown = PolicyTextSerializer(get_policy_version(name=name, number=version.number)).data
        return Response(shown, status=status.HTTP_201_CREATED, headers={"Location": location})
