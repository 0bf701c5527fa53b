"""What signing in leaves on record: sessions begun and refused, factors added and removed, proofs given once more.

Called by the receivers of allauth's signals and by its adapters. The attempts of somebody unknown are a system job's to record: there
is no anonymous actor.
"""

from collections.abc import Sequence
from typing import Any

from allauth.socialaccount.models import SocialAccount

from compliance.models import Reauthentication, User
from compliance.models.signing_in import session_digest
from compliance.vocabulary import ReauthenticationMethod
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.actor import person as person_actor
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.services import service

METHOD_OF_FACTOR = {
    "totp": ReauthenticationMethod.TOTP,
    "webauthn": ReauthenticationMethod.WEBAUTHN,
    "recovery_codes": ReauthenticationMethod.RECOVERY_CODE,
}
"""allauth's names of the types of factors → ours."""
NOBODY = ("account", "unknown")


@service(refused="reauthentication.refused")
def record_reauthentication(*, actor: Actor, user: User, session_key: str, method: ReauthenticationMethod) -> Reauthentication:
    """Record that a signed-in person proved once more that it is she, in the session that she has."""
    given = Reauthentication.objects.create(
        person_id=user.person_id, user=user, session_digest=session_digest(session_key), method=method
    )
    _record(
        actor,
        "reauthentication.recorded",
        ("person", str(user.person_id)),
        {"account": user.pk, "reauthentication": given.pk, "method": str(method), "session": given.session_digest},
    )
    return given


@service(refused="session.refused")
def start_session(*, actor: Actor, user: User, session_key: str, methods: Sequence[str]) -> None:
    """Record that somebody signed in, and by which methods."""
    new = {"account": user.pk, "methods": list(methods), "session": session_digest(session_key)}
    _record(actor, "session.started", ("person", str(user.person_id)), new)


@service(refused="session.refused")
def refuse_session(*, actor: Actor, user: User | None, cause: str) -> None:
    """Record that somebody was not let in. What was typed is not kept: it may be a password in the wrong field."""
    if user is None:
        _record(actor, "session.refused", NOBODY, {"code": cause})
    else:
        _record(actor, "session.refused", ("person", str(user.person_id)), {"account": user.pk, "code": cause})


@service(refused="factor.refused")
def record_factor(*, actor: Actor, user: User, action: str, type: str) -> None:  # noqa: A002 - allauth's word
    """Record that a person added, removed or renewed a second factor (`action` is the participle)."""
    _record(actor, f"factor.{action}", ("person", str(user.person_id)), {"account": user.pk, "type": type})


@service(refused="company_account.refused")
def connect_company_account(*, actor: Actor, user: User, provider: str, uid: str) -> None:
    """Let an account be opened by the company's sign-in too, under the number that the company gave the person."""
    SocialAccount.objects.create(user=user, provider=provider, uid=uid, extra_data={})
    _record(
        actor,
        "company_account.connected",
        ("person", str(user.person_id)),
        {"account": user.pk, "provider": provider, "uid": digest_of(uid.encode())},
    )


def account_actor(user: User) -> Actor:
    """Return the actor for the person who uses an account."""
    return person_actor(user.person_id)


def _record(actor: Actor, action: str, target: tuple[str, str], new: dict[str, Any]) -> None:
    audit.record(audit.Event(action=action, actor=actor, target=target, new=new))
