"""Schedules stated and refreshes asked for over the API: bodies read strictly, and a key that makes a retry harmless."""

from uuid import UUID

from compliance.services.bodies import Body, read_object
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import digest
from evaluations.kernel.services import service
from evaluations.models import RefreshRun, Source, SourceSchedule
from evaluations.services.refresh import apply_request_refresh
from evaluations.services.schedules import MAX_ADDRESS, MAX_SUBJECT, ScheduleWish, apply_set_schedule

SCHEDULE_EXAMPLE = '{"connector": "http", "address": "https://example.org/results.json", "interval_minutes": 1440}'
REFRESH_EXAMPLE = '{"forced": false}'

_MEMBERS = ("connector", "address", "interval_minutes", "format", "profile", "subject", "key_name", "paused")
_REFERENCE = "refresh_run "


@service(refused="schedule.refused")
def accept_schedule(*, actor: Actor, source: Source, body: bytes, expected_digest: str, request_id: str = "") -> SourceSchedule:
    """State the schedule in a body, as long as it is still as `schedule_digest` gave it. Raises `InputRefused`, `ScheduleChanged`."""
    given = Body(read_object(body, example=SCHEDULE_EXAMPLE), _MEMBERS)
    minutes = given.count("interval_minutes")
    wish = ScheduleWish(
        connector=given.text("connector", required=True),
        address=given.text("address", limit=MAX_ADDRESS),
        interval_minutes=minutes or 0,
        format=given.text("format"),
        profile=given.text("profile"),
        subject=given.text("subject", limit=MAX_SUBJECT),
        key_name=given.text("key_name"),
        paused=given.flag("paused", default=False),
    )
    given.done()
    return apply_set_schedule(actor=actor, source=source, wish=wish, expected_digest=expected_digest, request_id=request_id)


@service(refused="refresh_run.refused")
def accept_refresh(
    *, actor: Actor, source: Source, body: bytes, idempotency_key: str | None = None, request_id: str = ""
) -> RefreshRun:
    """Ask for a run of a source; the same key again gets the same run.

    Raises `InputRefused`, `NotScheduled`, `IdempotencyKeyReused`.
    """
    given = Body(read_object(body, example=REFRESH_EXAMPLE) if body.strip() else {}, ("forced",))
    forced = given.flag("forced", default=False)
    given.done()
    claim = {"caller": actor.reference, "key": idempotency_key or "", "request_digest": digest(["refresh", source.key, forced])}
    known = apply_claim_key(**claim) if idempotency_key is not None else None
    if known is not None:
        if not known.startswith(_REFERENCE):
            raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
        return RefreshRun.objects.select_related("source").get(uid=UUID(known.removeprefix(_REFERENCE)))
    run = apply_request_refresh(actor=actor, source=source, forced=forced, request_id=request_id)
    if idempotency_key is not None:
        apply_use_key(**claim, reference=f"{_REFERENCE}{run.uid}")
    return run
