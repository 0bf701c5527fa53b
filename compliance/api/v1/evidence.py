"""Evidence: what was measured, as written, and the way in for more of it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.fields import Digest, Exact, Instant, Link, Words
from compliance.api.parameters import Parameter, digest, key, text, word
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.requests import request_id_of
from compliance.api.views import DetailView, ListView, NestedListView, text_in_path
from compliance.selectors.evidence import SHOWN_OBSERVATIONS, find_evidence, find_observations, get_evidence, uids_in_document
from compliance.services.submissions import Submission, submit_evidence
from compliance.vocabulary import Scope
from evaluations.importers import writegate_json
from evaluations.models import Evidence
from evaluations.selectors.evidence import is_self_judged
from evaluations.vocabulary import About, Exposure, Provenance, RulingKind, RunStatus, Unit

UID = text_in_path("uid", "The evidence's id.", format="uuid")
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    str,
    {"type": "string", "pattern": "^[!-~]{1,200}$"},
    "Makes a retry harmless: the same key with the same body gets the first answer, with another body a 409.",
)


class ObservationSerializer(serializers.Serializer[Any]):
    """One measured value. Percent is 0 to 100; `n` counts planned distinct tasks, errored and unscored ones included."""

    ordinal = serializers.IntegerField()
    metric = serializers.CharField(source="metric.key")
    benchmark = serializers.CharField(source="benchmark_version.benchmark.key")
    version = serializers.CharField(source="benchmark_version.version")
    exposure = Words(
        Exposure,
        source="benchmark_version.exposure",
        help_text="Whether its tasks lie open: a model may have been trained on those.",
    )
    slice = serializers.CharField()
    value = Exact()
    unit = Words(Unit, source="metric.unit")
    value_as_written = serializers.CharField()
    k = Exact(allow_null=True)
    n = serializers.IntegerField(allow_null=True)
    repeats = serializers.IntegerField(allow_null=True)
    errored = serializers.IntegerField(allow_null=True)
    unscored = serializers.IntegerField(allow_null=True)
    judge = serializers.SerializerMethodField()
    self_judged = serializers.SerializerMethodField(help_text="The subject judged its own answers, as far as that is stated.")
    locator = serializers.CharField()

    @extend_schema_field({"type": "object", "nullable": True, "additionalProperties": True})
    def get_judge(self, observation: Any) -> Any:
        return observation.judge

    def get_self_judged(self, observation: Any) -> bool:
        evidence = observation.evidence
        return is_self_judged(observation.judge, {evidence.subject_as_written, *evidence.answered_as_written})


class RulingSerializer(serializers.Serializer[Any]):
    """A recorded judgement on evidence; the newest counts, but a retraction stays."""

    kind = Words(RulingKind)
    reason = serializers.CharField()
    link = serializers.CharField()
    ruled_by = serializers.CharField()
    recorded_at = Instant()


class EvidenceSerializer(serializers.Serializer[Any]):
    """One submission about one subject as written in one document. Which subject version that is, alias assignments say."""

    uid = serializers.UUIDField()
    digest = Digest()
    subject_as_written = serializers.CharField()
    answered_as_written = serializers.ListField(child=serializers.CharField())
    about = Words(About)
    source = serializers.CharField(source="source.key")  # type: ignore[assignment]
    document = Digest(source="document.digest")
    locator = serializers.CharField()
    importer = serializers.CharField()
    importer_version = serializers.IntegerField()
    provenance = Words(Provenance)
    attested = serializers.BooleanField()
    run_status = Words(RunStatus)
    harness = serializers.CharField()
    run_ended_at = Instant(allow_null=True)
    published_at = Instant(allow_null=True)
    supersedes = serializers.CharField()
    note = serializers.CharField()
    submitted_by = serializers.CharField()
    recorded_at = Instant()
    rulings = RulingSerializer(many=True)
    observations = serializers.SerializerMethodField(help_text=f"The first {SHOWN_OBSERVATIONS}.")
    observations_complete = serializers.SerializerMethodField(help_text="False when `observations_url` has more.")
    observations_url = Link("api-v1:evidence-observations", {"uid": "uid"})

    @extend_schema_field(ObservationSerializer(many=True))
    def get_observations(self, evidence: Evidence) -> list[Any]:
        shown: Sequence[Any] = list(evidence.observations.all())[:SHOWN_OBSERVATIONS]
        return list(ObservationSerializer(shown, many=True).data)

    def get_observations_complete(self, evidence: Evidence) -> bool:
        return len(evidence.observations.all()) <= SHOWN_OBSERVATIONS


class SubmissionSerializer(serializers.Serializer[Any]):
    """What a body made."""

    document = Digest(source="document.digest")
    evidence = serializers.SerializerMethodField(help_text="The ids of all evidence in the body, in its order.")
    recorded = serializers.IntegerField(source="evidence", help_text="How many of them this request recorded.")
    repeated = serializers.IntegerField(help_text="How many had been recorded before, from the same bytes.")
    observations = serializers.IntegerField(help_text="How many observations this request recorded.")

    @extend_schema_field({"type": "array", "items": {"type": "string", "format": "uuid"}})
    def get_evidence(self, submission: Submission) -> list[str]:
        return uids_in_document(document_id=submission.document.pk, importer=writegate_json.NAME)


EXAMPLE = OpenApiExample(
    "one claim",
    request_only=True,
    value={
        "format": writegate_json.FORMAT,
        "source": "example-leaderboard",
        "provenance": "claim",
        "evidence": [
            {
                "subject": "Example Model 5",
                "run": {"status": "complete", "ended_at": "2026-11-01T12:00:00Z"},
                "observations": [
                    {
                        "metric": "infeasible_refusal_rate",
                        "benchmark": "enterpriseops-gym-aa",
                        "version": "2026-07",
                        "value": "53.9",
                        "unit": "percent",
                    }
                ],
            }
        ],
    },
)


class EvidenceList(ListView):
    """Evidence, newest first; and the way in for more."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT_EVIDENCE}
    find = staticmethod(find_evidence)
    filters = (
        key("subject", "Only what counts for the subject with this key, by what its name means now."),
        text("name", "Only what was written under exactly this name."),
        key("source", "Only from the source with this key."),
        key("benchmark", "Only with an observation on this benchmark (and of this metric, where both are given)."),
        key("metric", "Only with an observation of this metric."),
        word("provenance", Provenance, "Only of this provenance."),
        word("run_status", RunStatus, "Only of runs that ended so."),
        digest("document", "Only from the document with this digest."),
    )
    serializer_class = EvidenceSerializer
    parser_classes = (ExactJSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        "409": "The Idempotency-Key was used with another body.",
        "411": "The body came without its length.",
        "413": "The body is larger than 20 MiB.",
        "415": "The body is not application/json.",
        "422": "The body is well formed, but what it says is not acceptable.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    @extend_schema(
        request={"application/json": OpenApiTypes.OBJECT},
        responses={201: SubmissionSerializer, 200: SubmissionSerializer},
        examples=[EXAMPLE],
        description=(
            f"Hand in evidence in our own format, `{writegate_json.FORMAT}` (its JSON Schema is "
            "`evaluations/data/evidence.schema.json`). The body's very bytes are kept as the document. All of it is recorded, or "
            "nothing: 201, or 200 where every evidence in it had been recorded before."
        ),
    )
    def post(self, request: Request) -> Response:
        submission = submit_evidence(
            actor=actor_of(request),
            body=body_of(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        data = SubmissionSerializer(submission).data
        headers = {}
        if len(data["evidence"]) == 1:
            headers["Location"] = reverse("api-v1:evidence-detail", kwargs={"uid": data["evidence"][0]}, request=request)
        made = status.HTTP_201_CREATED if submission.evidence else status.HTTP_200_OK
        return Response(data, status=made, headers=headers)


class EvidenceDetail(DetailView):
    """One evidence."""

    find = staticmethod(get_evidence)
    path_parameters = (UID,)
    serializer_class = EvidenceSerializer


class EvidenceObservations(NestedListView):
    """All observations of one evidence, in its order."""

    owner = staticmethod(get_evidence)
    find = staticmethod(find_observations)
    path_parameters = (UID,)
    serializer_class = ObservationSerializer
    page_key = "ordinal"
    oldest_first = True
