"""What the case tests share: asking the gate, and writing a row by hand."""

from django.db import connection

from evaluations.kernel.clock import now
from policies.models import PolicyVersion
from policies.selectors.gate import ask_gate


def ask(version: PolicyVersion) -> dict[str, str]:
    """Return the result of each candidate, now."""
    moment = now()
    return {row.version.subject.key: row.result for row in ask_gate(version, as_of=moment, known_at=moment).rows}


def insert_by_hand(value: str) -> None:
    """Write an observation with this value straight into the table, beside the first one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evaluations_observation (evidence_id, ordinal, benchmark_version_id, metric_id, slice, value, "
            "value_as_written, locator) SELECT evidence_id, ordinal + 1, benchmark_version_id, metric_id, slice, %s::numeric, "
            "%s, '' FROM evaluations_observation ORDER BY id LIMIT 1",
            [value, value],
        )
