"""Offline bundles: what is allowed at one system, signed, for an enforcement point that may lose the gate."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

from django.conf import settings
from django.http import HttpResponse
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request

from compliance.api.authentication import actor_of
from compliance.api.parameters import Parameter
from compliance.api.permissions import HasScopeOfSystem
from compliance.api.preconditions import etag
from compliance.api.requests import request_id_of
from compliance.api.v1.systems import KEY
from compliance.api.views import ApiView, existing
from compliance.ledger import opa
from compliance.ledger.note import SignerKey
from compliance.ledger.offline import MEDIA_TYPE, MOST_LINES, PAYLOAD_TYPE, bundle_tag, seal_statement
from compliance.models import OfflineBundle
from compliance.selectors.systems import find_system
from compliance.services.offline import current_bundle, hand_out_bundle
from compliance.services.sealing import keyring
from compliance.vocabulary import Scope
from evaluations.kernel.canonical import DIGEST_PREFIX
from evaluations.kernel.errors import DomainError, ErrorKind

IF_NONE_MATCH = Parameter(
    "If-None-Match",
    str,
    {"type": "string", "minLength": 1, "maxLength": 1_000},
    "The ETag of the bundle you hold: 304 while it is still the newest.",
)


HELD = OpenApiResponse(description="The bundle whose ETag you sent is still the newest.")
ENVELOPE = {
    "type": "object",
    "required": ["payload", "payloadType", "signatures"],
    "properties": {
        "payload": {"type": "string", "format": "byte", "description": "The statement, in base64."},
        "payloadType": {"type": "string", "enum": [PAYLOAD_TYPE]},
        "signatures": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["keyid", "sig"],
                "properties": {"keyid": {"type": "string"}, "sig": {"type": "string", "format": "byte"}},
            },
        },
    },
}
EXAMPLE = OpenApiExample(
    "shortened",
    media_type=MEDIA_TYPE,
    response_only=True,
    value={
        "payload": "eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEi…",
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": "gate.example.org/ledger+1a2b3c4d", "sig": "iQ/IPZpXtPcBplC6OKolP4…"}],
    },
)


class OpaKeyMissing(DomainError):
    """No key is given that OPA could verify a signature of."""

    code = "opa_key_missing"
    kind = ErrorKind.CONFLICT


class Form(NamedTuple):
    """One form of a bundle: its word in the trail, its media type, what its ETag adds, and how its bytes are made."""

    word: str
    media_type: str
    tag: Callable[[OfflineBundle, SignerKey], str]
    content: Callable[[bytes, SignerKey], bytes]


class _BundleView(ApiView):
    """What every form has in common. Nothing goes out that is not on record; whoever holds the newest bundle gets no other."""

    permission_classes = (HasScopeOfSystem,)
    scopes = {"GET": Scope.DECIDE}
    path_parameters = (KEY,)
    form: ClassVar[Form]

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IF_NONE_MATCH,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {
            **super().problems_of(method),
            "409": f"More than {MOST_LINES} lines would be allowed, which no bundle holds; or the gate has no key for this form.",
            "503": "It is being made for somebody else, or cannot be made now: ask again in `Retry-After` seconds.",
        }

    def answer(self, request: Request, key: str) -> HttpResponse:
        actor, request_id = actor_of(request), request_id_of(request._request)
        token: Any = request.auth
        system = existing(find_system, key=key)
        bundle = current_bundle(actor=actor, token=token, system=system, request_id=request_id)
        signer = keyring().current
        headers = {
            "ETag": etag(self.form.tag(bundle, signer)),
            "Cache-Control": "private, no-cache",
            # An enforcement point holds its clock against ours: where it is behind, every bundle would count for longer.
            "Date": http_date(),
            "X-Content-Type-Options": "nosniff",
        }
        if headers["ETag"] in _held(request):
            return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        payload = hand_out_bundle(actor=actor, bundle=bundle, form=self.form.word, request_id=request_id)
        return HttpResponse(self.form.content(payload, signer), content_type=self.form.media_type, headers=headers)


def _held(request: Request) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(",")}


def _tag(bundle: OfflineBundle, signer: SignerKey) -> str:
    return bundle_tag(_hexadecimal(bundle), signer.verifier)


def _opa_signer() -> opa.Signer:
    if not settings.OPA_KEY:
        raise OpaKeyMissing("bundles for OPA are signed by a key of their own: set WRITEGATE_OPA_KEY")
    return opa.read_signer(settings.OPA_KEY)


def _archive(payload: bytes, signer: SignerKey) -> bytes:
    return opa.write_archive(payload, _opa_signer())


def _archive_tag(bundle: OfflineBundle, signer: SignerKey) -> str:
    return f"{_hexadecimal(bundle)}.opa.{_opa_signer().short}"


def _hexadecimal(bundle: OfflineBundle) -> str:
    return bundle.digest.removeprefix(DIGEST_PREFIX)


class SystemBundle(_BundleView):
    """The bundle as a DSSE envelope over an in-toto statement."""

    form = Form("dsse", MEDIA_TYPE, _tag, seal_statement)

    @extend_schema(
        responses={(200, MEDIA_TYPE): OpenApiResponse(ENVELOPE, "The newest bundle.", examples=[EXAMPLE]), 304: HELD},
        description=(
            "What every subject version may do at the system now, as the gate would answer at this instant: a DSSE envelope over an "
            "in-toto statement of the type `urn:writegate:offline-bundle:v1`, signed by the key of the log, with the checkpoint it was "
            "made under, a serial number and an end. What cannot be decided without asking is left out. For tokens with the scope "
            "`decide`, or `decide:SYSTEM`. `writegate bundle fetch --system hr-prod --out hr-prod.bundle "
            "--key ledger.key.pub` fetches and verifies it."
        ),
    )
    def get(self, request: Request, key: str) -> HttpResponse:
        return self.answer(request, key)


class SystemOpaBundle(_BundleView):
    """The same as a bundle that Open Policy Agent loads."""

    form = Form("opa", "application/gzip", _archive_tag, _archive)

    @extend_schema(
        responses={(200, "application/gzip"): OpenApiResponse(OpenApiTypes.BINARY, "The newest bundle."), 304: HELD},
        description=(
            "The same list as a signed bundle of Open Policy Agent, with a policy that denies by default and from the bundle's end on. "
            "Ask OPA for `data.writegate[SYSTEM].allow`, where `/` in the key is `~`, with the question of AuthZEN as its input: "
            '`{"input": {"subject": {"type": "agent", "id": "hr-agent"}, "action": {"name": "write"}, "resource": {"type": "system", '
            '"id": "hr-prod"}}}`.'
        ),
    )
    def get(self, request: Request, key: str) -> HttpResponse:
        return self.answer(request, key)
