"""Decisions read back: what was asked, what was answered and why; judged once more; and the proof that the answer is on record.

Asking is for `/access/v1/`; nothing here asks anything.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from compliance.api.bodies import instant
from compliance.api.fields import Digest, Hash, Instant, Words
from compliance.api.parameters import Parameter, flag, text, uid
from compliance.api.permissions import HasScopeOfAnySystem
from compliance.api.sighted import seen, sight_for
from compliance.api.v1.ledger import AskAgain
from compliance.api.v1.requests import SightedList
from compliance.api.v1.shapes import LINK
from compliance.api.views import ApiView, existing, text_in_path
from compliance.deciding.codes import Code
from compliance.deciding.facts import SEMANTICS
from compliance.deciding.meanings import MEANINGS
from compliance.deciding.next_steps import STEPS, NextAction
from compliance.ledger.merkle import leaf_hash
from compliance.ledger.stored import NotSealedYet, proof_file_of
from compliance.selectors.access_tasks import find_request_about
from compliance.selectors.decisions import entry_of, explain, find_decision, find_decisions, replay_decision
from compliance.vocabulary import ReplayOutcome, Scope
from evaluations.kernel.clock import now

UID = text_in_path("uid", "The decision's id: `evaluation_id` of the answer.", format="uuid")
CODES = [code.value for code in Code]
CODE = {"type": "string", "enum": CODES}
CHOICES = [(code.value, code.name) for code in Code]
OBJECT = {"type": "object", "additionalProperties": True}


def read_code(given: str) -> str:
    """Read a reason code."""
    if given not in CODES:
        raise ValueError(f"write one of {', '.join(CODES)}")
    return given


class DecisionSerializer(serializers.Serializer[Any]):
    """The recorded answer to one question. Subject, action and resource stand as they were asked about."""

    uid = serializers.UUIDField()
    allowed = serializers.BooleanField()
    observed = serializers.BooleanField(help_text="Asked by a client that only looks on: a denial stopped nobody there.")
    conformance = serializers.BooleanField(
        help_text="Answered by the conformance profile, which rests on no grant: it clears nobody."
    )
    codes = serializers.ListField(
        child=serializers.ChoiceField(choices=CHOICES), help_text="Why not, the first reason first; empty for an allow."
    )
    subject = serializers.CharField()
    action = serializers.CharField()
    resource = serializers.CharField()
    subject_version = serializers.SerializerMethodField(help_text="Who was meant, as `key@number`; null where nobody was.")
    system = serializers.SerializerMethodField(help_text="The registered system; null where there was none.")
    grant = serializers.SerializerMethodField(
        help_text="The grant it rests on or was refused by, the first of several; null where there is none that you see."
    )
    token = serializers.UUIDField(allow_null=True, help_text="Who asked.")
    request_id = serializers.CharField(help_text="The X-Request-ID of the question, or empty.")
    at = Instant()
    entry = serializers.UUIDField(help_text="The id of its entry in the log.")

    @extend_schema_field({"type": "string", "nullable": True})
    def get_subject_version(self, row: Any) -> str | None:
        return None if row.subject_version is None else f"{row.subject_version.subject.key}@{row.subject_version.number}"

    @extend_schema_field({"type": "string", "nullable": True})
    def get_system(self, row: Any) -> str | None:
        return None if row.system is None else row.system.key

    @extend_schema_field(LINK)
    def get_grant(self, row: Any) -> str | None:
        return None if row.seen_grant is None else str(row.seen_grant)


class ReasonSerializer(serializers.Serializer[Any]):
    """One reason against it: the word for machines, the sentence for people, and what it is about."""

    code = serializers.ChoiceField(choices=CHOICES)
    message = serializers.CharField()
    detail = serializers.SerializerMethodField()

    @extend_schema_field(OBJECT)
    def get_detail(self, reason: Mapping[str, Any]) -> Any:
        return reason["detail"]


class AskedPolicySerializer(serializers.Serializer[Any]):
    """A policy that was asked, and what its verdict said; both null where it had judged nothing."""

    policy = serializers.CharField()
    version = serializers.IntegerField()
    digest = Digest()
    domain = serializers.CharField()
    verdict = serializers.UUIDField(allow_null=True)
    outcome = serializers.CharField(allow_null=True)


class WaivedSerializer(serializers.Serializer[Any]):
    """A rule that failed, and the waiver that covered it."""

    policy = serializers.CharField()
    rule = serializers.CharField()
    waiver = serializers.UUIDField()


class ExplanationSerializer(serializers.Serializer[Any]):
    """Why the answer was what it was, and everything it was read from."""

    sentence = serializers.CharField()
    reasons = ReasonSerializer(many=True)
    policies = AskedPolicySerializer(many=True)
    grants = serializers.ListField(child=serializers.UUIDField(), help_text="Of an allow: the grants it rests on.")
    evidence = serializers.ListField(child=serializers.UUIDField(), help_text="Of an allow: what its verdicts rest on.")
    waived = WaivedSerializer(many=True)
    valid_until = serializers.CharField(allow_null=True, help_text="Of an allow: when time alone ended it.")
    break_glass = serializers.BooleanField(help_text="One person's word, which goes round the policies.")
    replaced_by = serializers.CharField(
        allow_null=True, help_text="The reason code that took the place of what the facts gave; null where none did."
    )
    semantics = serializers.IntegerField(help_text="The meaning under which it was judged.")
    facts = serializers.SerializerMethodField(help_text="What was read, under the digest of the body.")

    @extend_schema_field(OBJECT)
    def get_facts(self, explanation: Any) -> Any:
        return explanation.facts


class DecisionDetailSerializer(DecisionSerializer):
    """A decision, explained."""

    body_digest = Digest(source="body.digest", help_text="Of facts and judgement: the entry cites it.")
    index = serializers.SerializerMethodField(help_text="Its entry's place in the log; null for the moment until it is sealed.")
    leaf_hash = serializers.SerializerMethodField()
    request = serializers.SerializerMethodField(
        help_text="The request that was filed about this denial; null where there is none that you see."
    )
    proof_url = serializers.SerializerMethodField()
    replay_url = serializers.SerializerMethodField()
    explanation = serializers.SerializerMethodField()

    @extend_schema_field({"type": "integer", "nullable": True})
    def get_index(self, row: Any) -> int | None:
        leaf = getattr(row.shown_entry, "leaf", None)
        return None if leaf is None else leaf.index

    @extend_schema_field(Hash())
    def get_leaf_hash(self, row: Any) -> str:
        return Hash().to_representation(leaf_hash(bytes(row.shown_entry.content)))

    @extend_schema_field(LINK)
    def get_request(self, row: Any) -> str | None:
        return None if row.shown_request is None else str(row.shown_request.uid)

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_proof_url(self, row: Any) -> str:
        return self._address("decision-proof", row)

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_replay_url(self, row: Any) -> str:
        return self._address("decision-replay", row)

    @extend_schema_field(ExplanationSerializer())
    def get_explanation(self, row: Any) -> Any:
        return ExplanationSerializer(explain(row)).data

    def _address(self, name: str, row: Any) -> str:
        return str(reverse(f"api-v1:{name}", kwargs={"uid": row.uid}, request=self.context.get("request")))


class ReplaySerializer(serializers.Serializer[Any]):
    """What came of judging once more, from the stored facts and the policy texts by digest, at the recorded instant."""

    outcome = Words(ReplayOutcome)
    same = serializers.BooleanField()
    replaced_by = serializers.CharField(
        allow_null=True, help_text="The reason code that took the place of what the facts gave, in the record and in the replay."
    )
    stored = serializers.SerializerMethodField()
    replayed = serializers.SerializerMethodField(help_text="Null where nothing can be judged.")
    judged = serializers.SerializerMethodField(help_text="What the facts give, whatever took its place; null where nothing.")

    @extend_schema_field(OBJECT)
    def get_stored(self, done: Any) -> Any:
        return json.loads(done.stored)

    @extend_schema_field({**OBJECT, "nullable": True})
    def get_replayed(self, done: Any) -> Any:
        return json.loads(done.replayed) if done.replayed else None

    @extend_schema_field({**OBJECT, "nullable": True})
    def get_judged(self, done: Any) -> Any:
        return done.judged


class ReasonCodeSerializer(serializers.Serializer[Any]):
    """One word of the vocabulary."""

    code = serializers.ChoiceField(choices=CHOICES)
    means = serializers.CharField(help_text="What the gate found.")
    remedy = serializers.CharField(help_text="What would change the answer.")
    next_action = serializers.ChoiceField(
        choices=[(word.value, word.name) for word in NextAction],
        help_text=(
            "What a machine does about it: `request` files an access request, `retry` asks again, `none` does neither. Of several "
            "reasons `none` counts first, then `retry`."
        ),
    )
    retry_after = serializers.IntegerField(
        allow_null=True, help_text="In how many seconds it asks again; an answer may say it more exactly. Null unless `retry`."
    )


class ReasonCodesSerializer(serializers.Serializer[Any]):
    """Every reason an answer can give, in the order in which an answer names its first. Words may come; none changes its meaning."""

    semantics = serializers.IntegerField(help_text="The meaning under which the gate judges now.")
    reason_codes = ReasonCodeSerializer(many=True)


class DecisionList(SightedList):
    """Decisions that you may see, newest first."""

    filters = (
        text("system", "Only those about the system with this key, also one that was not registered."),
        text("subject", "Only those about this subject, as it was asked about or by its key."),
        uid("grant", "Only those that rest on this grant, or were refused by it."),
        Parameter("code", read_code, CODE, "Only those with this among their reasons."),
        flag("allowed", "Only allows, or only denials."),
        flag("observed", "Only those asked by clients that look on, or only the others."),
        instant("since", "Only from this instant on."),
        instant("until", "Only before this instant."),
    )
    serializer_class = DecisionSerializer

    def get_queryset(self) -> Any:
        chosen = {name: value for name, value in self.asked.items() if name not in self.page}
        return find_decisions(sight_for(self.request, Scope.READ, at=now()), **chosen)


class DecisionView(ApiView):
    """Base of what belongs to one decision."""

    permission_classes = (HasScopeOfAnySystem,)
    path_parameters = (UID,)


class DecisionDetail(DecisionView):
    """One decision, explained: every reason with its numbers, what it rests on, and what it was read from."""

    serializer_class = DecisionDetailSerializer

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        at = now()
        row = seen(request, find_decision, at=at, uid=uid)
        row.shown_entry = existing(entry_of, decision=row)
        sight = sight_for(request, Scope.READ, at=at)
        row.shown_request = None if row.allowed else find_request_about(sight, denial=row.uid)
        return Response(self.get_serializer(row).data)


class DecisionReplay(DecisionView):
    """One decision, judged once more. It reads, and records nothing."""

    serializer_class = ReplaySerializer

    def get(self, request: Request, uid: uuid.UUID) -> Response:
        return Response(self.get_serializer(replay_decision(seen(request, find_decision, at=now(), uid=uid))).data)


class DecisionProof(DecisionView):
    """The proof that a decision's entry stands in the log: a file of its own, which holds the entry and needs no server."""

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), "409": "The entry is not sealed yet: ask again in `Retry-After` seconds."}

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, uid: uuid.UUID) -> HttpResponse:
        row = seen(request, find_decision, at=now(), uid=uid)
        try:
            proof = proof_file_of(existing(entry_of, decision=row))
        except NotSealedYet as refusal:
            raise AskAgain(refusal.detail) from None
        headers = {
            "Content-Disposition": f'attachment; filename="decision-{row.uid}.tlog-proof"',
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(proof, content_type="text/plain; charset=utf-8", headers=headers)


class ReasonCodes(ApiView):
    """The closed vocabulary of reasons, each with what it means and what to do about it."""

    serializer_class = ReasonCodesSerializer

    def get(self, request: Request) -> Response:
        codes = [
            {
                "code": code.value,
                **MEANINGS[code]._asdict(),
                "next_action": STEPS[code].action.value,
                "retry_after": STEPS[code].retry_after,
            }
            for code in Code
        ]
        return Response(self.get_serializer({"semantics": SEMANTICS, "reason_codes": codes}).data)
