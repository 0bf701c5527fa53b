"""Requests for signatures: asked, shown with where their quorum stands, signed, talked about, closed."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.asking import asked_schema, file_asked
from compliance.api.bodies import BODY_REFUSALS, REASON, object_schema, read_body, reason_in
from compliance.api.fields import Instant, Words
from compliance.api.parameters import Parameter, flag, key, word
from compliance.api.parsers import ExactJSON
from compliance.api.permissions import HasScopeOfAnySystem, ServiceJudges, ToBeRefused
from compliance.api.preconditions import IF_MATCH, PRECONDITIONS, etag
from compliance.api.sighted import account_of, act_of, narrowed_to, person_of, require_unchanged, seen, session_of, sight_for
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.v1.shapes import (
    DossierSerializer,
    PersonSerializer,
    RequestDetailSerializer,
    RequestSerializer,
    SignOffSerializer,
    sign_off_value,
)
from compliance.api.views import ApiView, ListView, existing, text_in_path
from compliance.models import Dossier, ServiceToken, SignOffRequest
from compliance.selectors.requests import (
    find_comments,
    find_dossiers,
    find_request,
    find_requests,
    find_sign_offs,
    read_dossier,
    version_of_request,
)
from compliance.selectors.standings import read_standing
from compliance.services.comments import comment_on_request
from compliance.services.requests import MAX_TEXT
from compliance.services.sign_offs import complete_request, sign, withdraw_request
from compliance.vocabulary import CommentKind, Meaning, RequestKind, RequestStatus, Scope
from evaluations.kernel.clock import now

UID = text_in_path("uid", "The request's id.", format="uuid")
SIGN_OFF = object_schema(
    ("meaning", "reason", "digest"),
    meaning={"type": "string", "enum": list(Meaning.values)},
    reason=REASON,
    digest={"type": "string", "description": "Of the dossier that you were shown; 409 where it has changed meanwhile."},
)
COMMENT = object_schema(
    ("text",),
    text={"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    change_requested={"type": "boolean", "description": "Whether a change is asked for. Default: false."},
)
WHY = object_schema(("reason",), reason=REASON)
_CONFLICT = {"409": "Its state does not allow it, or the Idempotency-Key was used for something else."}


class SightedList(ListView):
    """A list of what who asks may see, at this instant."""

    permission_classes = (HasScopeOfAnySystem,)

    def get_serializer_context(self) -> dict[str, Any]:
        if not hasattr(self, "at"):
            self.at = now()
        return {**super().get_serializer_context(), "at": self.at}


class RequestList(SightedList):
    """Requests that you may see, newest first; and the way to ask."""

    scopes = {"GET": Scope.READ, "POST": Scope.REQUEST}
    filters = (
        word("kind", RequestKind, "Only requests of this kind."),
        word("status", RequestStatus, "Only requests that stand so now; an open one past its end is expired."),
        key("system", "Only requests about the system with this key."),
        key("subject", "Only requests about the subject with this key."),
        flag("waiting_for_me", "Only those that wait for your signature, or only the others."),
        flag("mine", "Only your own, or only the others."),
    )
    serializer_class = RequestSerializer
    parser_classes = (ExactJSON,)

    _REFUSALS: ClassVar[Mapping[str, str]] = {
        **BODY_REFUSALS,
        "409": "It cannot be approved as things stand, or the Idempotency-Key was used with another body.",
    }

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS if method == "POST" else {}

    def get_queryset(self) -> Any:
        at = self.get_serializer_context()["at"]
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return find_requests(sight_for(self.request, Scope.READ, at=at), at=at, **chosen)

    @extend_schema(
        request={"application/json": asked_schema()},
        responses={201: RequestDetailSerializer},
        examples=[
            OpenApiExample(
                "a grant",
                request_only=True,
                value={
                    "kind": "grant",
                    "subject": "acme/assistant@2",
                    "systems": ["hr-prod"],
                    "actions": ["write"],
                    "ends_at": "2026-12-31T00:00:00Z",
                    "reason": "the nightly sync needs it",
                },
            )
        ],
        description=(
            "Ask for something that no one person may do. The roles of the person who asks count, a token's too. What cannot be "
            "approved as things stand, or could never be signed by enough people, is refused at once."
        ),
    )
    def post(self, request: Request) -> Response:
        at = now()
        made = file_asked(request, at=at)
        return shown(request, made.uid, code=status.HTTP_201_CREATED, scope=Scope.REQUEST)


class RequestView(ApiView):
    """Base of what belongs to one request."""

    permission_classes = (HasScopeOfAnySystem,)
    path_parameters = (UID,)

    def found(self, scope: str = Scope.READ) -> SignOffRequest:
        """Return the request of the address, for who may see it; 404 for everybody else."""
        found: SignOffRequest = seen(self.request, find_request, at=now(), scope=scope, uid=self.kwargs["uid"])
        return found


class RequestDetail(RequestView):
    """One request: where its quorum stands, who may still sign, and everybody's last word."""

    serializer_class = RequestDetailSerializer

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        return shown(request, uid)


class RequestDossier(RequestView):
    """The dossier that is signed now, in its canonical bytes: SHA-256 over them is the digest."""

    @extend_schema(responses={(200, "application/json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, uid: uuid.UUID) -> HttpResponse:
        dossier: Dossier = existing(read_dossier, request=self.found())
        headers = {"ETag": etag(dossier.digest), "X-Content-Type-Options": "nosniff"}
        return HttpResponse(bytes(dossier.content), content_type="application/json", headers=headers)


class OfRequest(RequestView, ListView):
    """A list of what belongs to one request, oldest first."""

    oldest_first = True

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self.row = self.found()
        return ListView.get(self, request, *args, **kwargs)


class RequestDossiers(OfRequest):
    """All dossiers of one request. A newer one voids the signatures on those before."""

    serializer_class = DossierSerializer

    def get_queryset(self) -> Any:
        return find_dossiers(request=self.row)


class RequestAct(RequestView):
    """Base of what is done to one request."""

    scopes = {"POST": Scope.REQUEST}
    permission_classes = (ServiceJudges,)
    parser_classes: Sequence[type[BaseParser]] = (ExactJSON,)
    serializer_class = RequestDetailSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY, IF_MATCH)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **BODY_REFUSALS, **PRECONDITIONS, **_CONFLICT}

    def unchanged(self) -> SignOffRequest:
        """Return the request of the address, as the caller saw it."""
        row = self.found(Scope.REQUEST)
        require_unchanged(self.request, version_of_request(row, now()))
        return row


class RequestSignOffs(OfRequest):
    """Everything that was said by signature on one request; and the way to sign."""

    scopes = {"GET": Scope.READ, "POST": Scope.REQUEST}
    serializer_class = SignOffSerializer
    parser_classes = (ExactJSON,)

    def get_permissions(self) -> list[Any]:
        # Whoever sees a request is told why she may not sign it; a token is told that none may, and that is on record.
        return [ToBeRefused() if self.request.method == "POST" else HasScopeOfAnySystem()]

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY, IF_MATCH) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        more = {**BODY_REFUSALS, **PRECONDITIONS, **_CONFLICT} if method == "POST" else {}
        return {**super().problems_of(method), **more}

    def get_queryset(self) -> Any:
        return find_sign_offs(request=self.row)

    def get_serializer(self, *args: Any, **options: Any) -> Any:
        if args and options.get("many"):
            present = self.row.dossier_id
            rows = [sign_off_value(row, name=row.signer_name, void=row.dossier_id != present) for row in args[0]]
            return SignOffSerializer(rows, many=True)
        return super().get_serializer(*args, **options)

    @extend_schema(
        request={"application/json": SIGN_OFF},
        responses={201: RequestDetailSerializer},
        description=(
            "Sign the present dossier as the signed-in person, who showed by a second factor a few minutes before that it is she. The "
            "last signature that is needed does what is asked, and one rejection ends the request. No token signs."
        ),
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        token = isinstance(request.auth, ServiceToken)
        row = self.found(Scope.REQUEST if token and narrowed_to(request, Scope.READ) == frozenset() else Scope.READ)
        if token:
            given: dict[str, Any] = {"meaning": "", "reason": "", "digest": ""}
        else:
            body = read_body(
                request, "meaning", "reason", "digest", example='{"meaning": "approved", "reason": "…", "digest": "sha256:…"}'
            )
            given = {"meaning": body.text("meaning", required=True), "digest": body.text("digest", required=True)}
            given["reason"] = reason_in(body)
            body.done()
            require_unchanged(request, version_of_request(row, now()))
        sign(request=row, account=account_of(request), session=session_of(request), **given, **act_of(request))
        location = reverse("api-v1:request-sign-offs", kwargs={"uid": uid}, request=request)
        return shown(request, uid, code=status.HTTP_201_CREATED, location=location)


class CommentSerializer(serializers.Serializer[Any]):
    """What somebody said about a request, or that she asks for a change. It is no signature."""

    uid = serializers.UUIDField()
    author = serializers.SerializerMethodField()
    kind = Words(CommentKind)
    text = serializers.CharField()
    recorded_at = Instant()

    @extend_schema_field(PersonSerializer)
    def get_author(self, row: Any) -> dict[str, Any]:
        return {"person": str(row.person_id), "name": row.author_name}


class RequestComments(OfRequest):
    """What was said about one request; and the way to say something."""

    permission_classes = (ServiceJudges,)
    scopes = {"GET": Scope.READ, "POST": Scope.REQUEST}
    serializer_class = CommentSerializer
    parser_classes = (ExactJSON,)

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,) if method == "POST" else ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), **({**BODY_REFUSALS, **_CONFLICT} if method == "POST" else {})}

    def get_queryset(self) -> Any:
        return find_comments(request=self.row)

    @extend_schema(
        request={"application/json": COMMENT},
        responses={201: CommentSerializer},
        description="Say something about a request, or ask for a change of it. Whoever asked is told.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        row = self.found(Scope.REQUEST)
        body = read_body(request, "text", "change_requested", example='{"text": "…"}')
        text, wished = reason_in(body, "text"), body.flag("change_requested", default=False)
        body.done()
        comment_on_request(request=row, text=text, change_requested=wished, **act_of(request))
        mine = find_comments(request=row).filter(text=text, person=person_of(request)).latest("id")
        location = reverse("api-v1:request-comments", kwargs={"uid": uid}, request=request)
        return Response(CommentSerializer(mine).data, status=status.HTTP_201_CREATED, headers={"Location": location})


class RequestWithdraw(RequestAct):
    """The end of one's own request."""

    @extend_schema(
        request={"application/json": WHY},
        responses={200: RequestDetailSerializer},
        description="Take your own request back.",
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        row = self.unchanged()
        body = read_body(request, "reason", example='{"reason": "…"}')
        reason = reason_in(body)
        body.done()
        withdraw_request(request=row, reason=reason, **act_of(request))
        return shown(request, uid, scope=Scope.REQUEST)


class RequestComplete(RequestAct):
    """Completion without a further signature."""

    parser_classes = ()

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**RequestView.problems_of(self, method), **PRECONDITIONS, **_CONFLICT}

    @extend_schema(
        request=None,
        responses={200: RequestDetailSerializer},
        description=(
            "Complete a request whose signatures are enough as they stand, such as after a role came back. The last signature does it "
            "by itself."
        ),
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        complete_request(request=self.unchanged(), **act_of(request))
        return shown(request, uid, scope=Scope.REQUEST)


def shown(
    request: Request, uid: uuid.UUID, *, code: int = status.HTTP_200_OK, scope: str = Scope.READ, location: str = ""
) -> Response:
    """Return one request as who asks sees it, with the tag of its state."""
    at = now()
    row = seen(request, find_request, at=at, scope=scope, uid=uid)
    context = {"request": request, "at": at, "standing": read_standing(row, at=at)}
    headers = {"ETag": etag(version_of_request(row, at))}
    if code == status.HTTP_201_CREATED:
        headers["Location"] = location or reverse("api-v1:request", kwargs={"uid": uid}, request=request)
    return Response(RequestDetailSerializer(row, context=context).data, status=code, headers=headers)
