"""The trust in a source, moved with the least that the database takes for signatures."""

from compliance.selectors.proposals import SourceProposal
from compliance.vocabulary import RequestKind
from evaluations.kernel.services import service_transaction
from evaluations.models import Source, TrustAssignment
from evaluations.services.sources import apply_assign_trust
from tests.support import world
from tests.support.quorum import signed_request


def move_trust(key: str, tier: str) -> TrustAssignment:
    """Trust a registered source as far as a tier says, from here on."""
    uid = signed_request(RequestKind.SOURCE, proposal=SourceProposal(key, "", "", "", tier).to_bytes())
    with service_transaction("test"):
        return apply_assign_trust(
            actor=world.ACTOR, source=Source.objects.get(key=key), tier=tier, reason="for a test", sign_off_request=uid
        )
