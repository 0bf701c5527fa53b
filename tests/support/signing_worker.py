"""What the processes of the kill tests of sign-offs do. Started as `python -m tests.support.signing_worker KILLS REQUESTS`.

A story of so many requests: filed, signed twice, every fifth grant suspended, every tenth brought back by its quorum; in the end news
below the bar suspends them all. It is told by a child that is forked from this warm process and killed by SIGKILL at a random point,
KILLS times; then it is told to the end. Each child begins where the story stands, as a person does who comes back to a page: it
looks, and does what is missing. What was asked twice is asked under the same key.
"""

import os
import random
import signal
import sys
import time
from datetime import datetime

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")
django.setup()

from django.db import connections  # noqa: E402

from compliance.models import Grant, SignOff, SignOffRequest, User  # noqa: E402
from compliance.services.drift import review_grants  # noqa: E402
from compliance.services.filing import request_grant, request_reinstatement  # noqa: E402
from compliance.services.stopping import suspend_grant  # noqa: E402
from compliance.vocabulary import RequestKind, RequestStatus  # noqa: E402
from evaluations.models import Evidence, SubjectVersion  # noqa: E402
from policies.models import System  # noqa: E402
from tests.support.signing import actor_of, prove, sign  # noqa: E402
from tests.support.world import ACTOR, judge_all, observation, submission, submit  # noqa: E402

LONGEST_PAUSE, KILLED_IN_DRIFT = 0.25, 2
PROVEN_FOR = 60  # seconds
SUSPENDED_EVERY, BACK_EVERY = 5, 10
ENDS_AT = "2027-01-15T00:00:00+00:00"


class Story:
    """The people and the system that the test has made, found by name."""

    def __init__(self) -> None:
        self.asker, self.owner, self.security = (
            User.objects.select_related("person").get(email=f"{name}@example.org")
            for name in ("rita.asker", "olga.owner", "sven.security")
        )
        self.system = System.objects.get(key="hr-prod")
        self.sessions: dict[int, tuple[float, str]] = {}
        self.version = SubjectVersion.objects.select_related("subject").get(subject__key="model-a")

    def tell(self, requests: int, *, beginning: int = 0) -> None:
        for number in range(beginning, requests):
            grant = self.granted(number)
            if number % SUSPENDED_EVERY == 0:
                suspend_grant(
                    actor=actor_of(self.security), grant=grant, reason="a look is needed", idempotency_key=f"suspend-{number}"
                )
            if number % BACK_EVERY == 0:
                back = request_reinstatement(
                    actor=actor_of(self.asker), grant=grant.reload(), reason="looked at", idempotency_key=f"back-{number}"
                )
                self.signed(back)
        self.drift()

    def drift(self) -> None:
        """News arrives below the bar: what stands on the old result is suspended."""
        ended = {"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
        submit(submission("model-a", observation("40"), run=ended))
        judge_all()
        review_grants(actor=ACTOR, subject_version_ids=[self.version.pk])

    def granted(self, number: int) -> Grant:
        request = request_grant(
            actor=actor_of(self.asker),
            subject_version=self.version,
            systems=[self.system],
            actions=["write"],
            ends_at=datetime.fromisoformat(ENDS_AT),
            reason=f"chapter {number}",
            idempotency_key=f"chapter-{number}",
        )
        self.signed(request)
        return Grant.objects.get(request=request)

    def signed(self, request: SignOffRequest) -> None:
        for signer in (self.owner, self.security):
            done = SignOff.objects.filter(request=request, person=signer.person_id).exists()
            if not done and request.reload().status == RequestStatus.OPEN:
                sign(signer, request, proven=self.proven(signer))

    def proven(self, signer: User) -> str:
        """Return the session in which she showed within the last minute that it is she."""
        at, session = self.sessions.get(signer.pk, (0.0, ""))
        if time.monotonic() - at > PROVEN_FOR:
            session = prove(signer)
            self.sessions[signer.pk] = (time.monotonic(), session)
        return session


def tell_and_die(kills: int, requests: int) -> None:
    """Kill a teller at every so manieth request, a random moment later, and twice while what was granted is taken back by drift."""
    chance = random.Random(kills)
    for number in range(kills):
        in_drift = number >= kills - KILLED_IN_DRIFT
        target = requests * (number + 1) // (kills - KILLED_IN_DRIFT + 1)
        connections.close_all()
        child = os.fork()
        if child == 0:
            # The chapter before the last that was filed is told to its end, for certain.
            Story().tell(requests, beginning=max(0, _filed() - 1))
            os._exit(0)
        while not (_drifting() if in_drift else _filed() >= target):
            ended, _ = os.waitpid(child, os.WNOHANG)
            if ended:
                raise SystemExit(f"a teller ended by itself before kill {number}")
            time.sleep(0.02)
        time.sleep(chance.uniform(0, LONGEST_PAUSE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"a teller ended by itself: {status}")
        print("killed", flush=True)
    # From the beginning: whoever hears a story twice must not live it twice.
    Story().tell(requests)
    print("told", flush=True)


def _filed() -> int:
    return SignOffRequest.objects.filter(kind=RequestKind.GRANT).count()


def _drifting() -> bool:
    return Evidence.objects.count() > 1


if __name__ == "__main__":
    tell_and_die(int(sys.argv[1]), int(sys.argv[2]))
