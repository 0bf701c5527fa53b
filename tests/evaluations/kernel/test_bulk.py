"""Rows read by a statement over arrays: what they hold is what Django's cursor reads."""

from datetime import UTC

import pytest
from django.db import connection

from evaluations.kernel.bulk import fetch_with_arrays

pytestmark = pytest.mark.django_db

INSTANTS = """
SELECT given.at, NULL::timestamptz, 0.10::numeric, given.place FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS given(at, place)
"""


def test_instants_are_read_to_the_microsecond_and_in_utc() -> None:
    given = ["2026-11-30 01:02:03+00", "2026-11-30 01:02:03.1+05:30", "1999-12-31 23:59:59.123456-08", "0001-01-01 00:00:00+00"]
    with connection.cursor() as cursor:
        cursor.execute(INSTANTS, [given])
        expected = cursor.fetchall()
    rows = fetch_with_arrays(INSTANTS, [given])
    assert rows == expected
    assert {row[0].tzinfo for row in rows} == {UTC}
