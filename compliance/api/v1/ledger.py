"""The trail: who did what to what, when, and what it changed; each entry with its place in the log and its proof.

For auditors and administrators, and for tokens of theirs. A server that vouches for itself proves little, so nothing here is called
a verification: the proofs, the checkpoint and the exports are what `writegate verify` checks elsewhere.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.fields import Digest, Hash, Instant
from compliance.api.parameters import Parameter, number
from compliance.api.permissions import ReadsTrail
from compliance.api.views import ApiView, DetailView, ListView, existing, text_in_path
from compliance.ledger.decoded import TrailEntry, read_trail
from compliance.ledger.note import encode_hash
from compliance.ledger.recheck import recheck
from compliance.ledger.stored import NotSealedYet, StoredTree, proof_file_of
from compliance.models import Checkpoint, LedgerEntry
from compliance.selectors import entries
from compliance.selectors.ledger import last_checkpoint, signing_keys
from compliance.selectors.population import population_report
from evaluations.kernel.errors import DomainError, ErrorKind

MAX_INDEX = 2**53
SEALED_WITHIN_SECONDS = 2
CHECK_SECONDS = 1.0
VALUES = {"type": "object", "nullable": True, "additionalProperties": True}

ENTRY = text_in_path("uid", "The entry's id.", format="uuid")


class AskAgain(NotSealedYet):
    """Not sealed yet, with the header that says when to ask again."""

    wait = SEALED_WITHIN_SECONDS


class LedgerShorter(DomainError):
    """Somebody holds a checkpoint of more entries than this log has."""

    code = "ledger_shorter"
    kind = ErrorKind.CONFLICT


class TrailView(ApiView):
    """Base of the trail's views: one rule for who may, whatever the address."""

    permission_classes = (ReadsTrail,)


class PrincipalSerializer(serializers.Serializer[Any]):
    """Who acted. The id stays; the name is shown as long as it is kept."""

    kind = serializers.CharField()
    id = serializers.CharField()
    name = serializers.CharField(allow_null=True, help_text="The name borne then; null once it was erased.")
    task_id = serializers.CharField(help_text="The background task, or empty.")


class TargetSerializer(serializers.Serializer[Any]):
    """What an entry is about."""

    kind = serializers.CharField(source="target_kind")
    id = serializers.CharField(source="target_id")


class EntrySerializer(serializers.Serializer[Any]):
    """One entry, read from the bytes that were hashed."""

    uid = serializers.UUIDField()
    index = serializers.IntegerField(allow_null=True, help_text="Its place in the log; null for the moment until it is sealed.")
    leaf_hash = Hash(allow_null=True)
    digest = Digest(help_text="Over the entry's bytes.")
    intact = serializers.BooleanField(
        help_text="False where the stored bytes do not hash to what is stored beside them. A hint; the proof is what proves."
    )
    at = serializers.CharField()
    action = serializers.CharField()
    actor = PrincipalSerializer()
    on_behalf_of = PrincipalSerializer(
        many=True, help_text="For whom the actor acts, and for whom that one does; empty for itself."
    )
    target = TargetSerializer(source="*")
    old = serializers.SerializerMethodField()
    new = serializers.SerializerMethodField()
    changed = serializers.ListField(child=serializers.CharField(), help_text="The members of `old` and `new` that differ.")
    digests = serializers.SerializerMethodField()
    request_id = serializers.CharField(help_text="The X-Request-ID of the request it came by, or empty.")
    proof_url = serializers.SerializerMethodField()

    @extend_schema_field(VALUES)
    def get_old(self, entry: TrailEntry) -> Any:
        return entry.old

    @extend_schema_field(VALUES)
    def get_new(self, entry: TrailEntry) -> Any:
        return entry.new

    @extend_schema_field({**VALUES, "nullable": False})
    def get_digests(self, entry: TrailEntry) -> Any:
        return entry.digests

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_proof_url(self, entry: TrailEntry) -> str:
        return str(reverse("api-v1:ledger-entry-proof", kwargs={"uid": entry.uid}, request=self.context.get("request")))


class EntryContentSerializer(EntrySerializer):
    """One entry, with its very bytes."""

    content = serializers.CharField(help_text="The bytes that were hashed, as the UTF-8 text they are.")


class CheckpointSerializer(serializers.Serializer[Any]):
    """The log's signed statement of its size and root. Keep it: whatever comes later must be consistent with it."""

    size = serializers.IntegerField()
    root = Hash()  # type: ignore[assignment]
    note = serializers.CharField(help_text="The signed note, verbatim (c2sp.org/tlog-checkpoint).")
    signed_at = Instant(help_text="Our own word: a checkpoint carries no time.")
    verifier_keys = serializers.SerializerMethodField(
        help_text="The log's keys, oldest first, to compare with the one that you were given by another road than this."
    )

    def get_verifier_keys(self, checkpoint: Checkpoint) -> list[str]:
        return [key.verifier_key for key in signing_keys(up_to_size=checkpoint.size)]


class ConsistencySerializer(serializers.Serializer[Any]):
    """The proof (RFC 6962, 2.1.2) that the first `from_size` entries of a checkpoint you hold still begin the log."""

    from_size = serializers.IntegerField()
    to_size = serializers.IntegerField()
    path = serializers.ListField(child=serializers.CharField(), help_text="Hashes in base64.")
    note = serializers.CharField(help_text="The signed checkpoint of `to_size`, verbatim.")


class FindingOfLogSerializer(serializers.Serializer[Any]):
    """One fault of the stored log."""

    kind = serializers.CharField()
    detail = serializers.CharField()
    index = serializers.IntegerField(allow_null=True)
    part = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    """What the server found in its own log: a watch for damage, and no proof against the server."""

    size = serializers.IntegerField()
    root = Hash(source="signed_root")  # type: ignore[assignment]
    head_agrees = serializers.BooleanField(help_text="The tiles and the leaves behind them hash to the signed root.")
    signed_by = serializers.CharField(help_text="The key of this log whose signature fits, or empty.")
    entries_read = serializers.IntegerField(source="read", help_text="How many entries were hashed anew from their bytes.")
    is_whole = serializers.BooleanField(help_text="Every entry was.")
    findings = FindingOfLogSerializer(many=True)


class PopulationLineSerializer(serializers.Serializer[Any]):
    """One table: its rows, beside the rows that its entries tell of."""

    table = serializers.CharField()
    rows = serializers.IntegerField()
    events = serializers.IntegerField()
    differing = serializers.IntegerField(help_text="How many ids differ.")
    examples = serializers.ListField(child=serializers.CharField(), help_text="The first of them.")


class PopulationSerializer(serializers.Serializer[Any]):
    """Whether every governed row has its entry, and every entry its row."""

    agrees = serializers.BooleanField()
    lines = PopulationLineSerializer(many=True)


def _words(name: str, description: str, **schema: Any) -> Parameter:
    return Parameter(name, entries.READERS[name], {"type": "string", "minLength": 1, **schema}, description)


class EntryList(TrailView, ListView):
    """Entries, newest first. New ones never move a page."""

    find = staticmethod(entries.find_entries)
    filters = (
        _words("actor", "Only what this actor did, as `kind:id`.", pattern=entries.ACTOR_PATTERN, maxLength=entries.WORD_LIMIT),
        _words("action", "Only this action.", pattern=entries.ACTION_PATTERN, maxLength=entries.WORD_LIMIT),
        _words(
            "target",
            "Only what was done to this: `kind:id`, such as `verdict:…`, or a kind alone.",
            pattern=entries.TARGET_PATTERN,
            maxLength=entries.WORD_LIMIT,
        ),
        _words("since", "Only from this instant on, or from a day's beginning in UTC.", format="date-time"),
        _words("until", "Only before this instant.", format="date-time"),
        number("from_index", "Only sealed entries from this index on.", minimum=0, maximum=MAX_INDEX),
        number("to_index", "Only sealed entries up to this index.", minimum=0, maximum=MAX_INDEX),
    )
    serializer_class = EntrySerializer

    def paginate_queryset(self, queryset: Any) -> Any:
        page: Iterable[LedgerEntry] = super().paginate_queryset(queryset) or ()
        return read_trail(page)


class EntryDetail(TrailView, DetailView):
    """One entry, with its bytes."""

    find = staticmethod(entries.get_entry)
    path_parameters = (ENTRY,)
    serializer_class = EntryContentSerializer

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        (shown,) = read_trail([existing(entries.get_entry, **kwargs)])
        return Response(self.get_serializer(shown).data)


class EntryProof(TrailView):
    """The proof that an entry stands in the log at its index: a file of its own, which holds the entry and needs no server."""

    path_parameters = (ENTRY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), "409": "The entry is not sealed yet: ask again in `Retry-After` seconds."}

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, uid: uuid.UUID) -> HttpResponse:
        entry: LedgerEntry = existing(entries.get_entry, uid=uid)
        try:
            proof = proof_file_of(entry)
        except NotSealedYet as refusal:
            raise AskAgain(refusal.detail) from None
        headers = {
            "Content-Disposition": f'attachment; filename="{entry.uid}.tlog-proof"',
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(proof, content_type="text/plain; charset=utf-8", headers=headers)


class _OfSealedLog(TrailView):
    """What needs a checkpoint: 404 before the first sealing."""

    _REFUSALS: ClassVar[Mapping[str, str]] = {"404": "Nothing is sealed yet."}

    def problems_of(self, method: str) -> Mapping[str, str]:
        return self._REFUSALS


class LatestCheckpoint(_OfSealedLog, DetailView):
    """The newest checkpoint."""

    find = staticmethod(last_checkpoint)
    serializer_class = CheckpointSerializer


class Consistency(_OfSealedLog):
    """That the log still begins as a checkpoint that you hold says."""

    serializer_class = ConsistencySerializer
    _REFUSALS = {
        "404": "Nothing is sealed yet.",
        "409": "The log has fewer entries than the checkpoint you hold. A log never shrinks: keep the checkpoint.",
    }

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return (number("from", "The size of the checkpoint you hold.", maximum=MAX_INDEX, required=True),)

    def get(self, request: Request) -> Response:
        newest = last_checkpoint()
        if newest is None:
            raise Http404
        size: int = self.asked["from"]
        if size > newest.size:
            raise LedgerShorter(
                f"the log has {newest.size} entries, and a checkpoint of {size} cannot be one of it: keep that one"
            )
        path = [encode_hash(one) for one in StoredTree(newest.size).consistency(size)]
        shown = {"from_size": size, "to_size": newest.size, "path": path, "note": newest.note}
        return Response(self.get_serializer(shown).data)


class Check(_OfSealedLog):
    """The server's look at its own log, for about a second: the tree head, the newest entries, and others chosen at random."""

    serializer_class = CheckSerializer

    def get(self, request: Request) -> Response:
        done = recheck(seconds=CHECK_SECONDS)
        if done is None:
            raise Http404
        return Response(self.get_serializer(done).data)


class Population(TrailView):
    """Every governed table beside its entries. Reads whole tables: ask for it now and then, not every minute."""

    serializer_class = PopulationSerializer

    def get(self, request: Request) -> Response:
        lines = population_report()
        shown = {"agrees": not any(line.differing for line in lines), "lines": lines}
        return Response(self.get_serializer(shown).data)
