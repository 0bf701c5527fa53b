"""Questions put to the gate in tests: a token that may ask, and the answer as services give it."""

from compliance.deciding.facts import Question
from compliance.models import ServiceToken, SignOffRequest, User
from compliance.services.access_requests import Denial, Wanted, request_denied_access, requestable_until
from compliance.services.decisions import decide
from compliance.services.people import create_token, token_digest
from compliance.services.recording import Decided
from evaluations.kernel.actor import person, service
from evaluations.kernel.canonical import digest
from tests.support import world


def ask_token(account: User, *scopes: str) -> str:
    """Make a token of somebody's, by default one that may ask about every system, and return its secret."""
    return create_token(actor=world.ACTOR, name="pipeline", scopes=scopes or ("decide",), person=account.person).secret


def ask_gate(
    token: str, subject: str = "model-a", system: str = "hr-prod", *, action: str = "write", kind: str = "model", **more: str
) -> Decided:
    """Ask one question, and return the answer."""
    question = Question(subject_type=kind, subject=subject, action=action, system=system, **more)
    (answer,) = decide(questions=[question], token_digest=token_digest(token))
    return answer


def codes_of(answer: Decided) -> list[str]:
    """Return the reason codes of an answer, in their order."""
    return [reason.code.value for reason in answer.judgement.reasons]


def file_about(answer: Decided, token: str, *, key: str | None = None, emergency: bool = False) -> SignOffRequest:
    """File about a denial as the agent whose token it was given to, or another one of the same person."""
    assert answer.uid is not None
    made = ServiceToken.objects.get(token_digest=token_digest(token))
    asked = {name: text for name, text in answer.facts["question"].items() if name != "claims"}
    return request_denied_access(
        actor=service(made.pk, on_behalf_of=person(made.person_id)),
        denial=Denial(answer.uid, Question(**asked), requestable_until(answer.at)),
        wanted=Wanted(justification="the nightly sync", emergency=emergency),
        body_digest=digest([str(answer.uid)]),
        idempotency_key=key,
    )
