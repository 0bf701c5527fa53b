"""Reactions to what signing in announces: one line each, call the service that records it.

The console's own rights are not at stake here: whoever may come in was decided before. What fails to be recorded fails the request.
"""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.account.signals import authentication_step_completed, user_logged_in
from allauth.mfa.signals import authentication_failed, authenticator_added, authenticator_removed, authenticator_reset
from django.dispatch import receiver
from django.http import HttpRequest

from compliance import tasks
from compliance.models import User
from compliance.services.signing_in import (
    METHOD_OF_FACTOR,
    account_actor,
    record_factor,
    record_reauthentication,
    refuse_session,
    start_session,
)
from compliance.signals import grants_to_review, notices_queued
from compliance.vocabulary import ReauthenticationMethod
from evaluations.signals import subject_version_registered
from policies.signals import policies_rejudged, standings_moved, system_changed


@receiver(authentication_step_completed)
def record_proof(*, request: HttpRequest, user: User, method: str, reauthenticated: bool = False, **extra: Any) -> None:
    """Record a proof given in a session that stands. A step of signing in is none: its session gets its key at the end."""
    if reauthenticated:
        word = ReauthenticationMethod.PASSWORD if method == "password" else METHOD_OF_FACTOR[extra["type"]]
        key = str(request.session.session_key)
        record_reauthentication(actor=account_actor(user), user=user, session_key=key, method=word)


@receiver(user_logged_in)
def record_session(*, request: HttpRequest, user: User, **_: Any) -> None:
    methods = [record.get("type") or record["method"] for record in get_authentication_records(request, user)]
    start_session(actor=account_actor(user), user=user, session_key=str(request.session.session_key), methods=methods)


@receiver(authentication_failed)
def record_refused_factor(*, user: User, **_: Any) -> None:
    refuse_session(actor=account_actor(user), user=user, cause="wrong_code")


@receiver(authenticator_added)
def record_added_factor(*, user: User, authenticator: Any, **_: Any) -> None:
    record_factor(actor=account_actor(user), user=user, action="added", type=str(authenticator.type))


@receiver(authenticator_removed)
def record_removed_factor(*, user: User, authenticator: Any, **_: Any) -> None:
    record_factor(actor=account_actor(user), user=user, action="removed", type=str(authenticator.type))


@receiver(authenticator_reset)
def record_renewed_factor(*, user: User, authenticator: Any, **_: Any) -> None:
    record_factor(actor=account_actor(user), user=user, action="renewed", type=str(authenticator.type))


@receiver(notices_queued)
def deliver_after_commit(**_: Any) -> None:
    tasks.deliver_notices.delay()


@receiver(standings_moved)
def review_after_new_verdicts(
    *, subject_version_ids: list[int], verdict_uids: list[str], on_behalf_of: dict[str, Any] | None, **_: Any
) -> None:
    tasks.review_after_verdicts.delay(subject_version_ids, verdict_uids, on_behalf_of)


@receiver(policies_rejudged)
def review_after_policy_change(
    *, policy_ids: list[int], subject_version_ids: list[int], on_behalf_of: dict[str, Any] | None, **_: Any
) -> None:
    tasks.review_grants.delay(subject_version_ids, on_behalf_of, policy_ids)


@receiver(system_changed)
def review_after_system_change(*, system_id: int, **_: Any) -> None:
    tasks.review_grants_at_system.delay(system_id)


@receiver(subject_version_registered)
def review_after_registration(*, subject_id: int, **_: Any) -> None:
    tasks.review_grants_of_subject.delay(subject_id)


@receiver(grants_to_review)
def review_when_asked(*, subject_version_ids: list[int], **_: Any) -> None:
    tasks.review_grants.delay(subject_version_ids)
