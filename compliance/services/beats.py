"""Signs of life of worker and scheduler: the one write that is not audited, since it decides nothing."""

from datetime import datetime

from compliance.models import ServiceBeat


def record_beat(*, name: str, beat_at: datetime) -> None:
    """Note that a service was heard of at an instant; an older report never replaces a newer one."""
    row, is_new = ServiceBeat.objects.get_or_create(name=name, defaults={"beat_at": beat_at})
    if not is_new:
        ServiceBeat.objects.filter(pk=row.pk, beat_at__lt=beat_at).update(beat_at=beat_at)
