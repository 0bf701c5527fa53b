"""Re-judging across transactions that commit: one that takes long, and one that planted a text."""

import io
import json
import threading
from datetime import timedelta

from django.db import connection

from compliance.deciding.codes import Code
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence
from evaluations.services.evidence import apply_import_files
from policies.models import Standing
from policies.selectors.verdicts import due_subject_version_ids
from policies.services.rejudging import judge_everywhere
from policies.services.systems import register_system
from policies.services.verdicts import Judged
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token


def catch_up() -> Judged:
    """Judge narrowly whatever the facts have marked."""
    return judge_everywhere(actor=world.ACTOR, subject_version_ids=due_subject_version_ids())


def test_what_is_committed_late_is_judged_though_it_states_an_earlier_instant(committed_db, monkeypatch) -> None:
    for module in ("standings", "verdicts"):  # a transaction of a second counts as one of an hour
        monkeypatch.setattr(f"policies.selectors.{module}.LONGEST_COMMIT", timedelta(0))
    world.register("a", "b")
    world.propose()
    world.judge_all()
    recorded, looked = threading.Event(), threading.Event()

    def slowly() -> None:
        try:
            content = json.dumps(world.submission("a", world.observation("90"))).encode()
            with service_transaction("test"):
                with connection.cursor() as cursor:
                    cursor.execute("SELECT set_config('writegate.longest_transaction', '0', true)")
                apply_import_files(actor=world.ACTOR, files={"late.json": io.BytesIO(content)}, max_bytes=world.MEGABYTE)
                recorded.set()
                looked.wait(30)
        finally:
            recorded.set()
            connection.close()

    import_ = threading.Thread(target=slowly)
    import_.start()
    recorded.wait(30)
    with service_transaction("test"):  # something else is news about it, so that it is looked at meanwhile
        Standing.objects.update(checked_at=now())
    looked.set()
    import_.join()
    assert Evidence.objects.get().recorded_at < Standing.objects.get(subject_version__subject__key="a").checked_at
    assert catch_up().new == 1
    assert Standing.objects.get(subject_version__subject__key="a").verdict.outcome == "pass"


def test_a_text_that_was_tampered_with_leaves_the_others_judged(committed_db, superuser_connection, caplog) -> None:
    world.register("a")
    broken = world.propose(20, name="broken")
    world.activate(broken)
    world.propose(80, name="sound")
    world.submit(world.submission("a", world.observation("90")))
    superuser = superuser_connection()
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("UPDATE policies_policyversion SET text = text || ' ' WHERE id = %s", [broken.pk])
    assert catch_up() == Judged(1, 1)
    assert [standing.verdict.policy_version.policy.name for standing in Standing.objects.all()] == ["sound"]
    assert "policy broken v1 cannot be read" in caplog.text
    register_system(actor=world.ACTOR, key="hr-prod", title="HR", domain="hr")
    answer = ask_gate(ask_token(signing.human("Rita Asker", Role.REQUESTER)), "a")
    assert Code.POLICY_UNREADABLE in {reason.code for reason in answer.judgement.reasons}
