"""Sources that have fallen silent: evidence stewards are told once, before what such a source vouched for grows too old."""

from datetime import datetime

from compliance.selectors.recipients import holders_of
from compliance.selectors.silence import Silence, silences
from compliance.services.outbox import Notice, apply_notify_all
from compliance.vocabulary import NoticeKind, Role
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.canonical import timestamp
from evaluations.kernel.clock import now
from evaluations.kernel.services import service
from evaluations.services.schedules import apply_alarm_source

JOB = "watch-sources"


def watch_sources(*, task_id: str = "", at: datetime | None = None) -> int:
    """Tell of every source that has fallen silent; return how many. Needs to be outside of any transaction."""
    moment = at or now()
    actor = system_job(JOB, task_id=task_id)
    return sum(tell_of_silence(actor=actor, silence=each, at=moment) for each in list(silences(at=moment)))


@service(refused="source_alarm.refused")
def tell_of_silence(*, actor: Actor, silence: Silence, at: datetime) -> bool:
    """Mark a source as dead and queue the notice of it; False where another was faster, or the source has come back."""
    schedule, run = silence.schedule, silence.last_run
    if not apply_alarm_source(actor=actor, schedule=schedule, why=silence.why, at=at):
        return False
    source = schedule.source
    lines = [f"{source.title} (`{source.key}`): {silence.why}."]
    if run is not None and run.cause:
        lines.append(f"The last run ended with: {run.get_cause_display()}{f'; {run.detail}' if run.detail else ''}.")
    if silence.ages_at is not None:
        lines.append(f"A verdict that its evidence can bear on changes by age at {silence.ages_at:%Y-%m-%d %H:%M} UTC.")
    notice = Notice(
        NoticeKind.SOURCE_FAILED,
        ("source", source.key),
        f"A source is dead: {source.title}",
        cause=f"alarm:{timestamp(at)}",
        lines=lines,
        link=f"/admin/evaluations/source/{source.pk}/change/",
        data={
            "source": source.key,
            "why": silence.why,
            "failed_runs": schedule.failed_runs,
            "run": str(run.uid) if run is not None else None,
            "cause": str(run.cause) if run is not None else None,
            "ages_at": timestamp(silence.ages_at) if silence.ages_at is not None else None,
        },
        people=holders_of((Role.EVIDENCE_STEWARD,), at=at),
    )
    apply_notify_all([notice], at=at)
    return True
