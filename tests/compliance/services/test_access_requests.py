"""Filing about a denial under fire: whoever files at the same moment, one denial and one open question make one request."""

from functools import partial
from uuid import uuid4

from compliance.deciding.facts import Question
from compliance.models import LedgerEntry, ServiceToken, SignOffRequest, User
from compliance.services.access_requests import Denial, Wanted, request_denied_access, requestable_until
from compliance.services.people import token_digest
from compliance.services.recording import Decided
from compliance.services.sign_offs import withdraw_request
from compliance.vocabulary import RequestKind
from evaluations.kernel.actor import person, service
from evaluations.kernel.canonical import digest
from tests.support import signing
from tests.support.asking import ask_gate, ask_token
from tests.support.racing import codes, racers

QUESTION = Question("model", "model-a", "write", "hr-prod")


def files(account: User, secret: str, answer: Decided, key: str | None = None) -> partial:
    """Return the call by which the agent of somebody files about what it was answered."""
    assert answer.uid is not None
    token = ServiceToken.objects.get(token_digest=token_digest(secret))
    return partial(
        request_denied_access,
        actor=service(token.pk, on_behalf_of=person(account.person_id)),
        denial=Denial(answer.uid, QUESTION, requestable_until(answer.at)),
        wanted=Wanted(justification="the sync"),
        body_digest=digest([str(answer.uid)]),
        idempotency_key=key,
    )


def filed() -> list[SignOffRequest]:
    return list(SignOffRequest.objects.filter(kind=RequestKind.GRANT).order_by("id"))


def test_one_denial_and_one_question_make_one_request_whoever_is_first(committed_db) -> None:
    land = signing.ground()
    secret = ask_token(land.asker, "decide", "request")
    with racers(4) as race:
        for number in range(1, 5):
            denied, again = ask_gate(secret), ask_gate(secret)
            calls = [files(land.asker, secret, answer) for answer in (denied, denied, again, again)]
            assert codes(race.run(*calls)) == ["", *["duplicate_request"] * 3]
            assert len(filed()) == number
            withdraw_request(actor=signing.actor_of(land.asker), request=filed()[-1], reason="for the next round")
    assert LedgerEntry.objects.filter(action="request.filed").count() == 4


def test_one_key_makes_one_request_and_each_call_gets_it(committed_db) -> None:
    land = signing.ground()
    secret = ask_token(land.asker, "decide", "request")
    denied = ask_gate(secret)
    with racers(4) as race:
        outcomes = race.run(*[files(land.asker, secret, denied, key=uuid4().hex)] * 4)
    assert [outcome.refused for outcome in outcomes] == [""] * 4
    assert {outcome.value.uid for outcome in outcomes} == {request.uid for request in filed()}
    assert len(filed()) == 1
