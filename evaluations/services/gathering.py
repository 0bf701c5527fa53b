"""What a connector brings in: files in batches that are imported each as a whole, and what to remember of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from evaluations.services.fetching import UNKNOWN, Validators
from evaluations.vocabulary import RefreshCause


class Batch(NamedTuple):
    """Files that are imported all or none, and the marks under which they are known from then on."""

    files: Mapping[str, BinaryIO]
    marks: Mapping[str, Any]


class Gathered(NamedTuple):
    """`marks` is what is known of whatever lies there unchanged; `cause` is why nothing new may come of it all."""

    batches: tuple[Batch, ...]
    marks: Mapping[str, Any]
    cause: RefreshCause
    http_status: int | None = None
    validators: Validators = UNKNOWN
    published_at: datetime | None = None
