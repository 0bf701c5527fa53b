"""Orders at once, on committed data and connections of their own."""

import pytest

from compliance import tasks
from compliance.models import AuditExport, IdempotencyKey
from tests.compliance.api.test_races import at_once
from tests.compliance.api.world import build_world


@pytest.mark.slow
def test_retries_at_once_under_one_key_make_one_export(committed_db: object, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.advance_audit_export, "delay", sent.append)
    world = build_world()
    before = AuditExport.objects.count()
    answers = at_once([lambda: world.api().order({"to_index": 3}, **{"Idempotency-Key": "k"})] * 6)
    assert [answer.status_code for answer in answers] == [202] * 6, [answer.content for answer in answers]
    assert len({answer.json()["uid"] for answer in answers}) == 1
    assert AuditExport.objects.count() == before + 1
    assert set(sent) == {answers[0].json()["uid"]}
    assert IdempotencyKey.objects.count() == 1
