"""Subjects and their versions, and the way in for more of them."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import DIGEST_PATTERN, Digest, Instant, Link, Words
from compliance.api.parameters import Parameter, flag, text, word
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import KEY_SCHEMA, DetailView, ListView, NestedListView, existing, key_in_path, number_in_path
from compliance.models import ServiceToken
from compliance.selectors import registry
from compliance.selectors.systems import kinds_to_register, roles_held
from compliance.services.bodies import MAX_BODY_BYTES
from compliance.services.registrations import accept_subject
from compliance.vocabulary import Scope
from evaluations.kernel.clock import now
from evaluations.models import Subject, SubjectVersion
from evaluations.selectors.subjects import MAX_REACHABLE
from evaluations.services.agents import MAX_FALLBACKS, MAX_LINE, MAX_TITLE, Registered
from evaluations.vocabulary import SubjectKind

KEY = key_in_path("key", "The subject's key.")


class SubjectSerializer(serializers.Serializer[Any]):
    """A model, agent or route."""

    key = serializers.CharField()
    kind = Words(SubjectKind)
    title = serializers.CharField()
    provider = serializers.CharField()
    candidate = serializers.BooleanField(help_text="Listed by the gate: somebody wants write access for it.")
    latest_version = serializers.IntegerField(allow_null=True)
    registered_at = Instant()
    changed_at = Instant(help_text="When a fact that concerns it was last recorded.")
    versions_url = Link("api-v1:subject-versions", {"key": "key"})


class ReachedSerializer(serializers.Serializer[Any]):
    """A model version that an agent's or route's version can reach."""

    subject = serializers.CharField(source="member.subject.key")
    number = serializers.IntegerField(source="member.number")
    digest = Digest(source="member.digest")


class SubjectVersionSerializer(serializers.Serializer[Any]):
    """One exact configuration. `digest` is over canonical JSON of `subject`, `kind`, `pin`, `reaches` (digests) and `closed`."""

    subject = serializers.CharField(source="subject.key")
    number = serializers.IntegerField()
    digest = Digest()
    closed = serializers.BooleanField(help_text="False when the set of models behind it is open: no verdict is possible.")
    pin = serializers.SerializerMethodField()
    reaches = ReachedSerializer(many=True, source="members")
    registered_at = Instant()
    registered_by = serializers.CharField()

    def get_pin(self, version: SubjectVersion) -> dict[str, Any]:
        pinned: dict[str, Any] = json.loads(bytes(version.pin))
        return dict(pinned.get("pin", pinned))


class RegisteredSerializer(SubjectVersionSerializer):
    """The version that a registration gave."""

    is_new = serializers.BooleanField(help_text="False when exactly this version had been registered before.")


_LINE = {"type": "string", "minLength": 1, "maxLength": MAX_LINE}
_DIGEST = {"type": "string", "pattern": DIGEST_PATTERN}
_PARTS: Mapping[str, Any] = {
    "models": {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_REACHABLE,
        "items": {**KEY_SCHEMA, "description": "`key@number`, or `key` for the version registered last."},
        "description": "Agent, route: every model that can answer, in any order.",
    },
    "prompt_digest": {**_DIGEST, "description": "Agent: as `writegate fingerprint` computes it."},
    "tool_manifest_digest": {**_DIGEST, "description": "Agent: likewise."},
    "harness": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "version"],
        "properties": {"name": _LINE, "version": _LINE},
        "description": "Agent: what runs it.",
    },
    "closed": {
        "type": "boolean",
        "description": "Agent, route: false when other models may answer too; then no verdict is possible.",
    },
    "snapshot": {**_LINE, "description": "Model: the exact snapshot."},
    "effort": {**_LINE, "nullable": True, "description": "Model: the reasoning effort, where it is fixed."},
    "quantisation": {**_LINE, "nullable": True, "description": "Model: such as fp8, where it runs in another one than its own."},
    "fallbacks": {
        "type": "array",
        "maxItems": MAX_FALLBACKS,
        "items": KEY_SCHEMA,
        "description": "Model: what answers in its place, in order.",
    },
}
VERSION = {"type": "object", "additionalProperties": False, "properties": _PARTS}
SUBJECT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "key"],
    "properties": {
        "kind": {"type": "string", "enum": list(SubjectKind.values)},
        "key": KEY_SCHEMA,
        "title": {"type": "string", "maxLength": MAX_TITLE},
        "provider": {"type": "string", "maxLength": MAX_LINE},
        "candidate": {"type": "boolean", "description": "Listed by the gate. Default: true."},
        **_PARTS,
    },
}
EXAMPLE = OpenApiExample(
    "an agent",
    request_only=True,
    value={
        "kind": "agent",
        "key": "hr-agent",
        "title": "HR agent",
        "models": ["claude-opus-4.8"],
        "prompt_digest": "sha256:" + "0" * 64,
        "tool_manifest_digest": "sha256:" + "1" * 64,
        "harness": {"name": "our-harness", "version": "2.1"},
    },
)
_REFUSALS: Mapping[str, str] = {
    "409": "The key belongs to a subject of another kind, or the Idempotency-Key was used with another body.",
    "411": "The body came without its length.",
    "413": f"The body is larger than {MAX_BODY_BYTES} bytes.",
    "415": "The body is not application/json.",
}


class RegistersVersions(ListView):
    """Takes a version on POST, beside the list that it is."""

    scopes = {"GET": Scope.READ, "POST": Scope.REGISTER}
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **(_REFUSALS if method == "POST" else {})}

    def register(self, request: Request, subject: Subject | None) -> Response:
        """Register what the body says; 201, or 200 where it was there."""
        made = accept_subject(
            actor=actor_of(request),
            body=body_of(request),
            kinds=kinds_of(request),
            subject=subject,
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        return self._answer(request, made)

    def _answer(self, request: Request, made: Registered) -> Response:
        key, number = made.subject.key, made.version.number
        version: Any = registry.get_subject_version(key=key, number=number)
        version.is_new = made.is_new
        data = RegisteredSerializer(version, context=self.get_serializer_context()).data
        headers = {"Location": reverse("api-v1:subject-version", kwargs={"key": key, "number": number}, request=request)}
        return Response(data, status=status.HTTP_201_CREATED if made.is_new else status.HTTP_200_OK, headers=headers)


def kinds_of(request: Request) -> Collection[str]:
    """Return the kinds that the caller may register: a token by its scope alone, a person by her roles now."""
    if isinstance(request.auth, ServiceToken):
        return frozenset(SubjectKind.values)
    user: Any = request.user
    return kinds_to_register(roles_held(person_id=user.person_id, at=now()))


class SubjectList(RegistersVersions):
    """Subjects, oldest first; and the way to register one, with a version of it."""

    find = staticmethod(registry.find_subjects)
    filters = (
        word("kind", SubjectKind, "Only subjects of this kind."),
        text("provider", "Only subjects of this provider, as it is written."),
        flag("candidate", "Only those that the gate lists, or only the others."),
    )
    serializer_class = SubjectSerializer
    oldest_first = True

    @extend_schema(
        request={"application/json": SUBJECT},
        responses={201: RegisteredSerializer, 200: RegisteredSerializer},
        examples=[EXAMPLE],
        description=(
            "Register a model, agent or route together with one exact version of it. Any change makes a new version; exactly the same "
            "again gives the version that is there, with 200. A person with the role requester or system_owner registers agents, an "
            "administrator anything; a token needs the scope `register`."
        ),
    )
    def post(self, request: Request) -> Response:
        return self.register(request, None)


class SubjectDetail(DetailView):
    """One subject."""

    find = staticmethod(registry.get_subject)
    path_parameters = (KEY,)
    serializer_class = SubjectSerializer


class SubjectVersionList(NestedListView, RegistersVersions):
    """A subject's versions, newest first; and the way to register a further one."""

    owner = staticmethod(registry.get_subject)
    find = staticmethod(registry.find_subject_versions)
    path_parameters = (KEY,)
    serializer_class = SubjectVersionSerializer

    @extend_schema(
        request={"application/json": VERSION},
        responses={201: RegisteredSerializer, 200: RegisteredSerializer},
        description="Register a version of a known subject: the parts that belong to its kind, and nothing else.",
    )
    def post(self, request: Request, key: str) -> Response:
        return self.register(request, existing(registry.get_subject, key=key))


class SubjectVersionDetail(DetailView):
    """One version of a subject."""

    find = staticmethod(registry.get_subject_version)
    path_parameters = (KEY, number_in_path("number", "The version's number."))
    serializer_class = SubjectVersionSerializer
