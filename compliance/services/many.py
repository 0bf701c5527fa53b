"""What is never done to many at once. The door that is asked for it refuses through here, so that the attempt stands in the trail."""

from typing import NoReturn

from evaluations.kernel.actor import Actor
from evaluations.kernel.errors import DomainError, ErrorKind
from evaluations.kernel.services import service


class OneAtATime(DomainError):
    """Somebody tried to sign several requests by one act."""

    code = "one_at_a_time"
    kind = ErrorKind.FORBIDDEN


@service(refused="sign_off.refused")
def sign_many(*, actor: Actor, request_id: str = "") -> NoReturn:
    """Refuse to sign many at once, for everybody: each dossier is read and signed by itself. Raises `OneAtATime`, always."""
    raise OneAtATime("requests are signed one at a time, each on its own page: nobody reads many dossiers by one click")
