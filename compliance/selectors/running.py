"""Which version of a subject runs now: the one registered last, or rolled back to since."""

from django.db import connection

from evaluations.models import Subject, SubjectVersion


def running_version(subject: Subject) -> SubjectVersion | None:
    """Return the version that began to run last, None before the first is registered. A roll-back stands in the ledger alone."""
    with connection.cursor() as cursor:
        # As decisions are answered by (migration 0013), so that nobody sees another version than the gate does.
        cursor.execute("SELECT id FROM writegate_running(%s, %s)", [subject.pk, subject.key])
        ((pk,),) = cursor.fetchall()
    return None if pk is None else SubjectVersion.objects.get(pk=pk)
