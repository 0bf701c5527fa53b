"""Names as written that mean nobody yet, what saying whom one means would touch, and the way for a person to say it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote as quoted

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import BODY_REFUSALS, INSTANT, instant_in, object_schema, read_body
from compliance.api.fields import DIGEST_PATTERN, Digest, Instant
from compliance.api.parameters import Parameter, key, text
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import HasScope, PeopleAlone
from compliance.api.sighted import act_of, sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import KEY_SCHEMA, ApiView, ListView
from compliance.selectors.naming import SHOWN_EVIDENCE, Touched, grants_seen, touched_by
from compliance.selectors.registry import get_subject_version_named
from compliance.services.naming import settle_name
from compliance.services.requests import MAX_TEXT
from compliance.vocabulary import Scope
from evaluations.importers.likeness import WAYS
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.models import Source, SubjectVersion
from evaluations.selectors.names import find_waiting_names, get_waiting_name, suggestions_for
from evaluations.services.subjects import MAX_NAME

SETTLE = object_schema(
    ("name", "means", "seen"),
    name={"type": "string", "minLength": 1, "maxLength": MAX_NAME, "description": "As written."},
    means={**KEY_SCHEMA, "nullable": True, "description": "`key@number`, or `key` for its newest version; null for nobody."},
    source={**KEY_SCHEMA, "description": "In this source alone. Default: in any."},
    effective_from={**INSTANT, "description": "For runs that ended from then on. Default: ever since."},
    reason={"type": "string", "maxLength": 500, "description": "Needed where the name means nobody."},
    seen={"type": "string", "pattern": DIGEST_PATTERN, "description": "The `digest` of what you were shown."},
)


class WaitingNameSerializer(serializers.Serializer[Any]):
    """A name that waits: some evidence under it counts for nobody until a person says whom it means."""

    name = serializers.CharField()
    evidence = serializers.IntegerField(help_text="How much evidence waits.")
    asked = serializers.IntegerField(help_text="How much of it is about the name; in the rest the name only answered.")
    sources = serializers.ListField(child=serializers.CharField())
    first_seen_at = Instant()
    last_seen_at = Instant()
    newest = serializers.UUIDField(help_text="The evidence that came last.")


class DifferenceSerializer(serializers.Serializer[Any]):
    """A part of an identity in which two names differ; empty where a name does not state it."""

    part = serializers.CharField()
    own = serializers.CharField()
    known = serializers.CharField()


class SuggestionSerializer(serializers.Serializer[Any]):
    """A version that the name may mean. Nothing follows from it until a person says so."""

    means = serializers.SerializerMethodField(help_text="`key@number`.")
    known_name = serializers.CharField(source="likeness.known")
    way = serializers.ChoiceField(source="likeness.way", choices=WAYS)
    differs = serializers.SerializerMethodField()

    def get_means(self, row: Any) -> str:
        return cited(row.version)

    @extend_schema_field(DifferenceSerializer(many=True))
    def get_differs(self, row: Any) -> list[dict[str, str]]:
        return [dict(zip(("part", "own", "known"), each, strict=True)) for each in row.likeness.differs]


class MeaningSerializer(serializers.Serializer[Any]):
    """What a name means now: in a source, or in any."""

    source = serializers.SerializerMethodField(help_text="Null: in any.")  # type: ignore[assignment]
    means = serializers.SerializerMethodField(help_text="`key@number`; null for nobody.")
    effective_from = Instant(allow_null=True)
    reason = serializers.CharField()
    assigned_by = serializers.CharField()
    recorded_at = Instant()

    @extend_schema_field({"type": "string", "nullable": True})
    def get_source(self, row: Any) -> str | None:
        return row.source.key if row.source else None

    @extend_schema_field({"type": "string", "nullable": True})
    def get_means(self, row: Any) -> str | None:
        return cited(row.subject_version) if row.subject_version else None


class TouchedVerdictSerializer(serializers.Serializer[Any]):
    """A present verdict that is judged anew."""

    uid = serializers.UUIDField(source="verdict.uid")
    subject_version = serializers.SerializerMethodField(help_text="`key@number`.")
    policy = serializers.CharField(source="policy_version.policy.name")
    domain = serializers.CharField()
    outcome = serializers.CharField(source="verdict.outcome")

    def get_subject_version(self, row: Any) -> str:
        return cited(row.subject_version)


class TouchedGrantSerializer(serializers.Serializer[Any]):
    """A grant that is reviewed after it."""

    uid = serializers.UUIDField()
    subject_version = serializers.SerializerMethodField(help_text="`key@number`.")
    recorded_status = serializers.CharField(source="status")

    def get_subject_version(self, row: Any) -> str:
        return cited(row.subject_version)


class TouchedSerializer(serializers.Serializer[Any]):
    """What a statement about a name touches. Post back its `digest` as `seen`."""

    name = serializers.CharField()
    means = serializers.SerializerMethodField(help_text="The version asked about, as `key@number`; null for nobody.")
    source = serializers.SerializerMethodField(help_text="Null: in any.")  # type: ignore[assignment]
    waiting = serializers.SerializerMethodField(help_text="How much evidence waits for this name now.")
    suggestions = serializers.SerializerMethodField()
    now = MeaningSerializer(many=True)
    landing = serializers.IntegerField(help_text="How much evidence the statement is about.")
    evidence = serializers.SerializerMethodField(help_text=f"The newest {SHOWN_EVIDENCE} of it.")
    verdicts = TouchedVerdictSerializer(many=True, source="standings")
    grants = serializers.SerializerMethodField(help_text="Those that you may see.")
    grants_touched = serializers.SerializerMethodField(help_text="How many in all.")
    digest = Digest()

    @extend_schema_field({"type": "string", "nullable": True})
    def get_means(self, row: Touched) -> str | None:
        return cited(row.means) if row.means else None

    @extend_schema_field({"type": "string", "nullable": True})
    def get_source(self, row: Touched) -> str | None:
        return row.source.key if row.source else None

    def get_waiting(self, row: Touched) -> int:
        waiting = get_waiting_name(row.name)
        return waiting.evidence if waiting is not None else 0

    @extend_schema_field(SuggestionSerializer(many=True))
    def get_suggestions(self, row: Touched) -> Any:
        return SuggestionSerializer(suggestions_for([row.name])[row.name], many=True).data

    @extend_schema_field({"type": "array", "items": {"type": "string", "format": "uuid"}})
    def get_evidence(self, row: Touched) -> list[str]:
        return [str(item.uid) for item in row.evidence[:SHOWN_EVIDENCE]]

    @extend_schema_field(TouchedGrantSerializer(many=True))
    def get_grants(self, row: Touched) -> Any:
        return TouchedGrantSerializer(grants_seen(row, self.context["sight"]), many=True).data

    def get_grants_touched(self, row: Touched) -> int:
        return len(row.grants)


class NameList(ListView):
    """Names that wait, newest first; and the way for a person to say whom one means."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT_EVIDENCE}
    find = staticmethod(find_waiting_names)  # type: ignore[assignment]  # asked as a queryset is, without being one
    page_key = "number"
    serializer_class = WaitingNameSerializer
    parser_classes = (ExactJSON,)

    def get_permissions(self) -> Sequence[Any]:
        return [PeopleAlone() if self.request.method == "POST" else HasScope()]

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        conflict = {"409": "What was shown has moved since, or the Idempotency-Key was used for something else."}
        return {**BODY_REFUSALS, **conflict} if method == "POST" else {}

    @extend_schema(
        request={"application/json": SETTLE},
        responses={201: MeaningSerializer},
        description=(
            "Say whom a name means, as a person with the role evidence_steward who was shown what that touches (`names/one`). "
            "The verdicts it touches are judged anew after it, and the grants reviewed. Null says that it means nobody: the "
            "evidence stays, and counts for nobody."
        ),
    )
    def post(self, request: Request) -> Response:
        body = read_body(
            request,
            "name",
            "means",
            "source",
            "effective_from",
            "reason",
            "seen",
            example='{"name": "GPT-5 (high)", "means": "gpt-5-high@1", "seen": "sha256:…"}',
        )
        name, seen = body.text("name", required=True, limit=MAX_NAME), body.text("seen", required=True)
        if "means" not in body:
            body.wrong("means", "it is missing", "write `key@number`, or null where the name means nobody", "missing")
        means, source = body.text("means"), body.text("source")
        since, reason = instant_in(body, "effective_from"), body.text("reason", limit=min(500, MAX_TEXT))
        body.done()
        settled = settle_name(
            name=name,
            means=version_called(means) if means else None,
            source=source_called(source) if source else None,
            effective_from=since,
            reason=reason,
            seen=seen,
            **act_of(request),
        )
        where = f"{reverse('api-v1:name', request=request)}?name="
        return Response(
            MeaningSerializer(settled.assignment).data, status=status.HTTP_201_CREATED, headers={"Location": where + quoted(name)}
        )


class NameDetail(ApiView):
    """One name: what it means now, what it may mean, and what saying so touches."""

    serializer_class = TouchedSerializer

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        whole = text("name", "The name as written.", limit=MAX_NAME)
        return (
            Parameter(whole.name, whole.read, whole.schema, whole.description, required=True),
            key("means", "What it would mean: `key@number`, or `key` for its newest version. Default: nobody."),
            key("source", "In this source alone. Default: in any."),
        )

    def get(self, request: Request) -> Response:
        means, source = self.asked.get("means"), self.asked.get("source")
        touched = touched_by(
            name=self.asked["name"],
            means=version_called(means) if means else None,
            source=source_called(source) if source else None,
        )
        context = {**self.get_serializer_context(), "sight": sight_for(request, Scope.READ, at=now())}
        return Response(TouchedSerializer(touched, context=context).data)


def version_called(name: str) -> SubjectVersion:
    """Return the version that `key@number` or `key` names. Raises `InputRefused`."""
    version = get_subject_version_named(name)
    if version is None:
        hint = "write `key@number`, or `key` for its newest version; register it first"
        raise InputRefused([Problem(f"no subject version `{name}`", field="means", code="unknown_subject", hint=hint)])
    return version


def source_called(name: str) -> Source:
    """Return the source with this key. Raises `InputRefused`."""
    source = Source.objects.filter(key=name).first()
    if source is None:
        raise InputRefused([Problem(f"no source `{name}`", field="source", code="unknown_source")])
    return source


def cited(version: SubjectVersion) -> str:
    return f"{version.subject.key}@{version.number}"
