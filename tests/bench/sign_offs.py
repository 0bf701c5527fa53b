"""The pages and the stroke that must stay fast: a dossier with much evidence behind it, a long inbox, many grants stopped at once.

`python -m tests.bench.sign_offs dossier|inbox|stop N`. Server time of the whole page, in process, as the median of seven.
"""

import json
import statistics
import sys
import time
from datetime import timedelta
from io import BytesIO
from typing import Any

from tests.bench.database import measured, prepare

TIMES = 7


def _page(client: Any, address: str) -> tuple[float, int]:
    """Return the median seconds of a page, and its queries."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client.get(address)
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        answer = client.get(address)
        taken.append(time.perf_counter() - started)
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answered {answer.status_code}")
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    return statistics.median(taken), len(queries)


def _signed_in(account: Any) -> Any:
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(account)
    return client


def _report(size: int, seconds: float, queries: int) -> None:
    print(json.dumps({"size": size, "seconds": seconds, "megabytes": 0, "note": f"{queries} queries"}))


def dossier(size: int) -> None:
    """A request page whose subject has `size` pieces of evidence."""
    from evaluations.kernel.clock import now
    from evaluations.services.evidence import import_files
    from tests.support import signing, world

    land = signing.ground()
    latest = now() - timedelta(days=1)
    rows = [
        world.submission(
            "model-a",
            world.observation("91"),
            run={"status": "complete", "ended_at": (latest - timedelta(seconds=number)).isoformat()},
        )
        for number in range(size)
    ]
    head = {name: value for name, value in rows[0].items() if name != "evidence"}
    body = json.dumps({**head, "evidence": [row["evidence"][0] for row in rows]}).encode()
    import_files(actor=world.ACTOR, files={"evidence.json": BytesIO(body)}, max_bytes=2**30)
    world.judge_all()
    request = signing.ask(land)
    _report(size, *_page(_signed_in(land.owner), f"/admin/compliance/signoffrequest/{request.pk}/change/"))


def inbox(size: int) -> None:
    """The home page of an approver with `size` requests waiting."""
    from tests.bench.crowd import copy_request
    from tests.support import signing

    land = signing.ground()
    copy_request(signing.ask(land), size)
    _report(size, *_page(_signed_in(land.owner), "/admin/"))


def stop(size: int) -> None:
    """Suspend `size` grants at one stroke, each with its event and its entry."""
    from compliance.models import GrantEvent, Reauthentication
    from compliance.services.stopping import stop_grants
    from tests.bench.crowd import copy_request, grant_all
    from tests.support import signing

    land = signing.ground()
    requests = copy_request(signing.ask(land), size)
    signers = []
    for account, role in ((land.owner, "system_owner"), (land.security, "security")):
        signing.prove(account)
        signers.append((account, role, Reauthentication.objects.get(user=account)))
    grant_all(requests, signers)

    def work() -> str:
        done = stop_grants(actor=signing.actor_of(land.security), scope="system", key=land.system.key, reason="bench")
        return f"{done.count} suspended, {GrantEvent.objects.filter(move='suspended').count()} events"

    measured(size, work)


if __name__ == "__main__":
    prepare()
    {"dossier": dossier, "inbox": inbox, "stop": stop}[sys.argv[1]](int(sys.argv[2]))
