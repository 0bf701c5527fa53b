"""Whatever a test had the gate decide is judged once more when the test ends: it must come out the same."""

import json

from django.db import connection

from compliance.models import Decision
from compliance.selectors.decisions import replay_decision


def every_decision_replays() -> None:
    """Judge every recorded decision again, and fail where one comes out otherwise."""
    if connection.needs_rollback:
        return
    for decision in Decision.objects.select_related("body"):
        done = replay_decision(decision)
        assert done.same, (str(decision), done.outcome, json.loads(done.stored), json.loads(done.replayed or b"null"))
