"""What people say about a request without signing it."""

from compliance.models import SignOffRequest
from compliance.services.administration import apply_refuse_reader
from compliance.services.idempotency import apply_first_time
from compliance.services.notices import apply_tell_request
from compliance.services.requests import apply_comment, person_behind
from compliance.vocabulary import CommentKind, NoticeKind
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.services import service


@service(refused="request.refused")
def comment_on_request(
    *,
    actor: Actor,
    request: SignOffRequest,
    text: str,
    change_requested: bool = False,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> SignOffRequest:
    """Say something about a request, or ask for a change of it; the requester is told. It is no signature."""
    at = now()
    kind = CommentKind.CHANGE_REQUESTED if change_requested else CommentKind.COMMENT
    author = person_behind(actor)
    apply_refuse_reader(actor)
    act = f"request.commented {request.uid} {kind} {digest_of(text.encode())}"
    if not apply_first_time(actor=actor, key=idempotency_key, act=act):
        return request.reload()
    comment = apply_comment(actor=actor, request=request, person_id=author, kind=kind, text=text, at=at, request_id=request_id)
    if author != request.requester_id:
        apply_tell_request(
            request=request,
            kind=NoticeKind.REQUEST_CHANGED,
            title=f"Your request has a {kind.label}",
            cause=f"comment:{comment.uid}",
            people=[request.requester_id],
            at=at,
            lines=[text],
        )
    return request.reload()
