"""Questions put to the gate in tests: a token that may ask, and the answer as services give it."""

from compliance.deciding.facts import Question
from compliance.models import User
from compliance.services.decisions import decide
from compliance.services.people import create_token, token_digest
from compliance.services.recording import Decided
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
