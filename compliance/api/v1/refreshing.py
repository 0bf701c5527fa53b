"""From where and how often sources are refreshed, and the runs of it."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.authentication import actor_of
from compliance.api.bodies import BODY_REFUSALS, object_schema
from compliance.api.fields import Digest, Instant, Words
from compliance.api.parameters import Parameter, key, word
from compliance.api.parsers import ExactJSON, body_of
from compliance.api.permissions import KeepsSources
from compliance.api.preconditions import IF_MATCH, PRECONDITIONS, PreconditionFailed, etag, seen_digest
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import ApiView, DetailView, ListView, existing, key_in_path, text_in_path
from compliance.selectors import registry
from compliance.services.refreshing import accept_refresh, accept_schedule
from compliance.vocabulary import Scope
from evaluations.models import Source, SourceSchedule
from evaluations.selectors.refreshing import find_runs, get_run, schedule_digest, schedule_of
from evaluations.services.schedules import MAX_ADDRESS, MAX_INTERVAL_MINUTES, MAX_KEY_NAME, MAX_SUBJECT, ScheduleChanged
from evaluations.vocabulary import Connector, RefreshCause, RefreshOutcome

KEY = key_in_path("key", "The source's key.")
UID = text_in_path("uid", "The run's id.", format="uuid")
RETRY_SECONDS = 2
SCHEDULE = object_schema(
    ("connector", "interval_minutes"),
    connector={"type": "string", "enum": list(Connector.values)},
    address={
        "type": "string",
        "maxLength": MAX_ADDRESS,
        "description": (
            "An https address; a folder below the watched one; `datasets/owner/name@revision:path` (hugging_face); "
            "`owner/name@revision:path` (github). May be left out for artificial_analysis."
        ),
    },
    interval_minutes={"type": "integer", "minimum": 1, "maximum": MAX_INTERVAL_MINUTES},
    format={"type": "string", "description": "Name of a format. Default: recognised from the files."},
    profile={"type": "string", "description": "Name of a profile that comes with the service."},
    subject={"type": "string", "maxLength": MAX_SUBJECT, "description": "The model as written, where the format names none."},
    key_name={
        "type": "string",
        "maxLength": MAX_KEY_NAME,
        "description": "The variable of the service's environment that holds the key to send; never the key itself.",
    },
    paused={"type": "boolean", "description": "Refreshed only when somebody asks. Default: false."},
)
REFRESH = object_schema(forced={"type": "boolean", "description": "Fetch anew what is known to be unchanged. Default: false."})


class ScheduleSerializer(serializers.Serializer[Any]):
    """From where and how often a source is refreshed. `set_by` vouches for the address: what comes from it is hers."""

    source = serializers.CharField(source="source.key")  # type: ignore[assignment]
    connector = Words(Connector)
    address = serializers.CharField()
    interval_minutes = serializers.IntegerField()
    format = serializers.CharField()
    profile = serializers.CharField()
    subject = serializers.CharField()
    key_name = serializers.CharField()
    paused_at = Instant(allow_null=True)
    set_by = serializers.CharField()
    set_at = Instant()
    due_at = Instant()
    failed_runs = serializers.IntegerField(help_text="How many runs in a row have failed by now.")
    succeeded_at = Instant(allow_null=True)
    alarmed_at = Instant(allow_null=True, help_text="Since when evidence stewards are told that the source is dead.")


class RunProblemSerializer(serializers.Serializer[Any]):
    """One problem for which a file was refused: only what is known of its place is given."""

    message = serializers.CharField()
    file = serializers.CharField(required=False)
    line = serializers.IntegerField(required=False)
    column = serializers.IntegerField(required=False)
    row = serializers.IntegerField(required=False)
    field = serializers.CharField(required=False)
    code = serializers.CharField(required=False)
    hint = serializers.CharField(required=False)


class RefreshRunSerializer(serializers.Serializer[Any]):
    """One run. `taken` and `held` count observations: held are those whose names nobody has assigned, and they count for nobody."""

    uid = serializers.UUIDField()
    source = serializers.CharField(source="source.key")  # type: ignore[assignment]
    outcome = Words(RefreshOutcome)
    cause = Words(RefreshCause, help_text="Empty while the run is open.", allow_blank=True)
    detail = serializers.CharField()
    http_status = serializers.IntegerField(allow_null=True)
    requests = serializers.IntegerField()
    bytes_received = serializers.IntegerField()
    documents = serializers.ListField(child=Digest())
    evidence = serializers.IntegerField()
    taken = serializers.IntegerField()
    held = serializers.IntegerField()
    repeated = serializers.IntegerField(help_text="Pieces of evidence that were recorded before, from the same bytes.")
    refused = serializers.IntegerField()
    problems = RunProblemSerializer(many=True)
    etag = serializers.CharField()
    last_modified = serializers.CharField()
    forced = serializers.BooleanField()
    asked_by = serializers.CharField()
    asked_at = Instant()
    started_at = Instant(allow_null=True)
    ended_at = Instant(allow_null=True)


class SourceSchedulePage(ApiView):
    """From where and how often one source is refreshed; and the way to state it."""

    permission_classes = (KeepsSources,)
    scopes = {"GET": Scope.READ, "PUT": Scope.SUBMIT_EVIDENCE}
    http_method_names = ("get", "head", "put")
    path_parameters = (KEY,)
    serializer_class = ScheduleSerializer
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IF_MATCH,) if method == "PUT" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        missing = {"404": "There is no such source, or it has no schedule."}
        return {**missing, **({**BODY_REFUSALS, **PRECONDITIONS} if method == "PUT" else {})}

    def get(self, request: Request, key: str) -> Response:
        return _shown(existing(_schedule_at, key=key))

    @extend_schema(
        request={"application/json": SCHEDULE},
        responses={200: ScheduleSerializer},
        examples=[
            OpenApiExample(
                "one",
                request_only=True,
                value={"connector": "http", "address": "https://example.org/results.json", "interval_minutes": 1440},
            )
        ],
        description=(
            "State the whole schedule, for evidence stewards and administrators. The first one needs no If-Match. What it brings in "
            "counts as submitted by whoever stated it last."
        ),
    )
    def put(self, request: Request, key: str) -> Response:
        source: Source = existing(registry.get_source, key=key)
        schedule = schedule_of(source.pk)
        expected = schedule_digest(None) if schedule is None else seen_digest(request)
        try:
            stated = accept_schedule(
                actor=actor_of(request),
                source=source,
                body=body_of(request),
                expected_digest=expected,
                request_id=request_id_of(request._request),
            )
        except ScheduleChanged as refusal:
            raise PreconditionFailed(refusal.detail) from None
        return _shown(stated)


class SourceRefresh(ApiView):
    """A run of one source, now."""

    permission_classes = (KeepsSources,)
    scopes = {"POST": Scope.SUBMIT_EVIDENCE}
    path_parameters = (KEY,)
    serializer_class = RefreshRunSerializer
    parser_classes = (ExactJSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        **BODY_REFUSALS,
        "409": "The source has no schedule, or the Idempotency-Key was used for something else.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **self._REFUSALS}

    @extend_schema(
        request={"application/json": REFRESH},
        responses={202: RefreshRunSerializer},
        description="Have a source refreshed by a worker, due or not; an open run is that run. Ask its address how it went.",
    )
    def post(self, request: Request, key: str) -> Response:
        run = accept_refresh(
            actor=actor_of(request),
            source=existing(registry.get_source, key=key),
            body=body_of(request),
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        location = reverse("api-v1:refresh-run", kwargs={"uid": run.uid}, request=request)
        headers = {"Location": location, "Retry-After": str(RETRY_SECONDS)}
        return Response(self.get_serializer(run).data, status=status.HTTP_202_ACCEPTED, headers=headers)


class RefreshRunList(ListView):
    """Refresh runs, newest first."""

    find = staticmethod(find_runs)
    filters = (
        key("source", "Only runs of this source."),
        word("outcome", RefreshOutcome, "Only runs that stand so."),
    )
    serializer_class = RefreshRunSerializer


class RefreshRunDetail(DetailView):
    """One refresh run."""

    find = staticmethod(get_run)
    path_parameters = (UID,)
    serializer_class = RefreshRunSerializer

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        return super().get(request, uid=uid)


def _schedule_at(*, key: str) -> SourceSchedule | None:
    source = registry.get_source(key=key)
    return None if source is None else schedule_of(source.pk)


def _shown(schedule: SourceSchedule) -> Response:
    return Response(ScheduleSerializer(schedule).data, headers={"ETag": etag(schedule_digest(schedule))})
