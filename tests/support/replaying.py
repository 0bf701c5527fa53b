"""Whatever a test had judged or decided is judged once more when the test ends: it must come out the same."""

import json

from django.db import connection

from compliance.models import Decision
from compliance.selectors.decisions import replay_decision
from compliance.selectors.replays import replay_all
from policies.models import Verdict

MOST = 300
"""So many verdicts of one test are judged once more, the newest: tests with crowds make thousands that are alike."""


def every_decision_replays() -> None:
    """Judge every recorded decision again, and fail where one comes out otherwise."""
    if connection.needs_rollback:
        return
    for decision in Decision.objects.select_related("body"):
        done = replay_decision(decision)
        assert done.same, (str(decision), done.outcome, json.loads(done.stored), json.loads(done.replayed or b"null"))


def every_verdict_replays() -> None:
    """Judge every verdict again, and fail where one does not match and nobody has noted that."""
    if connection.needs_rollback:
        return
    related = ("facts", "policy_version__policy", "subject_version__subject")
    verdicts = list(Verdict.objects.filter(mismatch=None).select_related(*related).order_by("-pk")[:MOST])
    for verdict, replay in replay_all(verdicts):
        assert replay.same, (str(verdict), replay.outcome, replay.differs, replay.trouble, replay.stored, replay.replayed)
