"""Filing about a denial under fire: whoever files at the same moment, one denial and one open question make one request."""

from functools import partial
from uuid import uuid4

from compliance.models import LedgerEntry, SignOffRequest
from compliance.services.sign_offs import withdraw_request
from compliance.vocabulary import RequestKind
from tests.support import signing
from tests.support.asking import ask_gate, ask_token, file_about
from tests.support.racing import codes, racers


def filed() -> list[SignOffRequest]:
    return list(SignOffRequest.objects.filter(kind=RequestKind.GRANT).order_by("id"))


def test_one_denial_and_one_question_make_one_request_whoever_is_first(committed_db) -> None:
    land = signing.ground()
    secret = ask_token(land.asker, "decide", "request")
    with racers(4) as race:
        for number in range(1, 5):
            denied, again = ask_gate(secret), ask_gate(secret)
            calls = [partial(file_about, answer, secret) for answer in (denied, denied, again, again)]
            assert codes(race.run(*calls)) == ["", *["duplicate_request"] * 3]
            assert len(filed()) == number
            withdraw_request(actor=signing.actor_of(land.asker), request=filed()[-1], reason="for the next round")
    assert LedgerEntry.objects.filter(action="request.filed").count() == 4


def test_one_key_makes_one_request_and_each_call_gets_it(committed_db) -> None:
    land = signing.ground()
    secret = ask_token(land.asker, "decide", "request")
    denied = ask_gate(secret)
    with racers(4) as race:
        outcomes = race.run(*[partial(file_about, denied, secret, key=uuid4().hex)] * 4)
    assert [outcome.refused for outcome in outcomes] == [""] * 4
    assert {outcome.value.uid for outcome in outcomes} == {request.uid for request in filed()}
    assert len(filed()) == 1
