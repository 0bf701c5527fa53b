"""An auditor reads everything and changes nothing, by any road; with another role beside it she acts by that one."""

from collections.abc import Callable

import pytest

from compliance.models import LedgerEntry
from compliance.services.administration import ReaderAlone
from compliance.services.comments import comment_on_request
from compliance.services.disputes import file_dispute
from compliance.services.sign_offs import complete_request
from compliance.vocabulary import Role
from evaluations.models import Evidence
from tests.support import signing

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("act", ["comment", "dispute", "complete"])
def test_an_auditor_changes_nothing(act: str) -> None:
    land = signing.ground()
    request = signing.ask(land)
    acts: dict[str, Callable[..., object]] = {
        "comment": lambda actor: comment_on_request(actor=actor, request=request, text="narrow it, please"),
        "dispute": lambda actor: file_dispute(actor=actor, evidence=Evidence.objects.get(), reason="it leaked"),
        "complete": lambda actor: complete_request(actor=actor, request=request),
    }
    auditor = signing.human("Anna Auditor", Role.AUDITOR)
    with pytest.raises(ReaderAlone):
        acts[act](signing.actor_of(auditor))
    assert LedgerEntry.objects.filter(action__endswith=".refused", actor=signing.actor_of(auditor).reference).count() == 1
    both = signing.human("Berta Both", Role.AUDITOR, Role.SECURITY)
    if act != "complete":
        acts[act](signing.actor_of(both))
