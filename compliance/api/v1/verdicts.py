"""Verdicts, their rule results, and the facts they rest on."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.authentication import actor_of
from compliance.api.fields import Digest, Instant, Link, Words
from compliance.api.parameters import Parameter, key, number, text, word
from compliance.api.requests import request_id_of
from compliance.api.v1.evidence import IDEMPOTENCY_KEY
from compliance.api.views import ApiView, DetailView, ListView, existing, text_in_path
from compliance.selectors import policies
from compliance.selectors.replays import Replayed
from compliance.services.replays import replay_verdicts
from compliance.vocabulary import Scope
from evaluations.kernel.canonical import digest_of
from policies.language.flipping import Remedy
from policies.models import FactsDocument, Verdict
from policies.selectors.replays import core_of
from policies.vocabulary import Differing, Outcome, Result, VerdictReplay

UID = text_in_path("uid", "The verdict's id.", format="uuid")


class VerdictSerializer(serializers.Serializer[Any]):
    """Pass or fail of one policy version on one subject version in one domain."""

    uid = serializers.UUIDField()
    policy = serializers.CharField(source="policy_version.policy.name")
    version = serializers.IntegerField(source="policy_version.number")
    policy_digest = Digest(source="policy_version.digest")
    params_digest = Digest()
    subject = serializers.CharField(source="subject_version.subject.key")
    subject_version = serializers.IntegerField(source="subject_version.number")
    subject_version_digest = Digest(source="subject_version.digest")
    domain = serializers.CharField()
    outcome = Words(Outcome)
    result = Words(Result, help_text="The worst word among hard and soft rules.")
    blocking = serializers.ListField(child=serializers.CharField(), help_text="Rules that no waiver can cover.")
    waivable = serializers.ListField(child=serializers.CharField())
    core_digest = Digest()
    facts_digest = Digest(source="facts.digest")
    semantics = serializers.IntegerField()
    as_of = Instant(help_text="The instant judged; it ages evidence.")
    known_at = Instant(help_text="What had been recorded by then was judged.")
    judged_by = serializers.CharField()
    recorded_at = Instant()
    facts_url = Link("api-v1:verdict-facts", {"uid": "uid"})


class WaySerializer(serializers.Serializer[Any]):
    """One measurement that clears the bar."""

    k = serializers.IntegerField(
        help_text="Successes where higher is better, else failures; lost tasks count against the subject."
    )
    n = serializers.IntegerField(help_text="Planned tasks.")
    rate = serializers.CharField(help_text="k of n in percent.")
    bound = serializers.CharField(
        allow_null=True, help_text="Its confidence bound; null where the policy compares the rate itself."
    )
    onward = serializers.BooleanField(help_text="Every larger sample with this very rate clears the bar too.")
    cost_usd = serializers.CharField(allow_null=True, help_text="What so many tasks likely cost; null where no cost is known.")


class FlipSerializer(serializers.Serializer[Any]):
    """What one part of a rule lacks. All flips of a rule are needed together."""

    remedy = serializers.ChoiceField(
        choices=[word.value for word in Remedy], read_only=True, help_text="What kind of thing would make this part pass."
    )
    clause = serializers.CharField(help_text="The evidence in the policy that it is about.")
    model = serializers.CharField(help_text="The model of an agent's route; empty for models.")
    evidence = serializers.UUIDField(allow_null=True, help_text="The evidence that decided.")
    source = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # the stubs give every field a `source`
    gap = serializers.CharField(
        allow_null=True, help_text="How far the judged statistic is from the bar; null where nothing was measured."
    )
    unit = serializers.CharField()
    sources = serializers.ListField(
        child=serializers.CharField(), help_text="Whose runs are asked for; empty: any trusted source."
    )
    since = serializers.DateTimeField(allow_null=True, help_text="Runs that ended before are too old; null: no limit.")
    ways = WaySerializer(many=True, help_text="The fewest tasks first; empty where the metric is no rate: then at the bar.")
    message = serializers.CharField(help_text="The same in plain sentences.")


class RuleSerializer(serializers.Serializer[Any]):
    """What one rule gave, for people: as the gate shows it. The numbers behind it stand in `core`."""

    id = serializers.CharField()
    result = Words(Result)
    message = serializers.CharField(help_text="A plain sentence; empty where the judgement cannot be made again.")
    evidence = serializers.ListField(child=serializers.UUIDField(), help_text="Ids of the evidence that decided.")
    flips = FlipSerializer(many=True, help_text="What would flip the rule; empty where it passes or never decides.")


class VerdictCoreSerializer(VerdictSerializer):
    """A verdict with its rule results, and its judgement core: all that was decided, under `core_digest` as canonical JSON."""

    rules = serializers.SerializerMethodField()
    core = serializers.SerializerMethodField()

    @extend_schema_field(RuleSerializer(many=True))
    def get_rules(self, verdict: Verdict) -> list[Any]:
        told = policies.sentences_of(verdict)
        found = []
        for rule in self.get_core(verdict)["rules"]:
            said = told.get(rule["id"], policies.NOTHING_TOLD)
            held = {"id": rule["id"], "result": rule["result"], "message": said.message, "evidence": rule["deciding"]}
            found.append({**held, "flips": list(said.flips)})
        return found

    @extend_schema_field(
        {
            "type": "object",
            "required": ["outcome", "result", "rules"],
            "properties": {
                "outcome": {"type": "string"},
                "result": {"type": "string"},
                "rules": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
            },
            "additionalProperties": True,
        }
    )
    def get_core(self, verdict: Verdict) -> dict[str, Any]:
        return dict(json.loads(bytes(verdict.core)))


class ReplayedVerdictSerializer(serializers.Serializer[Any]):
    """What came of judging a verdict once more, from its facts document and its policy's text, as of the recorded instant."""

    outcome = Words(VerdictReplay, source="replay.outcome")
    same = serializers.BooleanField(source="replay.same")
    differs = serializers.ListField(
        child=serializers.ChoiceField(choices=Differing.choices), source="replay.differs", help_text="Empty unless mismatched."
    )
    trouble = serializers.CharField(source="replay.trouble", help_text="Why nothing could be judged; empty where it could.")
    core_digest = Digest(source="verdict.core_digest", help_text="Of the judgement core, as its row says it.")
    replayed_digest = serializers.SerializerMethodField(
        help_text="Of the judgement core as judged once more; null where none came of it."
    )
    replayed = serializers.SerializerMethodField(help_text="The judgement core as judged once more; null where none came of it.")

    @extend_schema_field({"type": "string", "nullable": True})
    def get_replayed_digest(self, done: Replayed) -> str | None:
        return digest_of(done.replay.replayed) if done.replay.replayed else None

    @extend_schema_field({"type": "object", "additionalProperties": True, "nullable": True})
    def get_replayed(self, done: Replayed) -> dict[str, Any] | None:
        return dict(core_of(done.replay.replayed)) if done.replay.replayed else None


class VerdictList(ListView):
    """Verdicts, newest first."""

    find = staticmethod(policies.find_verdicts)
    filters = (
        key("policy", "Only by the policy with this name."),
        number("version", "Only by the policy version with this number."),
        key("subject", "Only on versions of the subject with this key."),
        text("domain", "Only in this domain; `any` for policies that do not read one.", limit=40),
        word("outcome", Outcome, "Only with this outcome."),
    )
    serializer_class = VerdictSerializer


class VerdictDetail(DetailView):
    """One verdict, with its rule results."""

    find = staticmethod(policies.get_verdict)
    path_parameters = (UID,)
    serializer_class = VerdictCoreSerializer


class VerdictFacts(ApiView):
    """The facts document of one verdict: its very bytes, canonical JSON, under the verdict's `facts_digest`."""

    path_parameters = (UID,)

    @extend_schema(responses={(200, "application/json"): {"type": "object", "additionalProperties": True}})
    def get(self, request: Request, uid: uuid.UUID) -> HttpResponse:
        facts: FactsDocument = existing(policies.get_facts, uid=uid)
        return HttpResponse(bytes(facts.content), content_type="application/json", headers={"ETag": f'"{facts.digest}"'})


class ReplayOfVerdict(ApiView):
    """One verdict, judged once more."""

    scopes: ClassVar[Mapping[str, str]] = {"POST": Scope.READ}
    path_parameters = (UID,)
    serializer_class = ReplayedVerdictSerializer

    def headers_of(self, method: str) -> Sequence[Parameter]:
        return (IDEMPOTENCY_KEY,)

    def problems_of(self, method: str) -> Mapping[str, str]:
        return {**super().problems_of(method), "409": "The Idempotency-Key was used for something else."}

    @extend_schema(
        request=None,
        responses={200: ReplayedVerdictSerializer},
        description=(
            "Judge a verdict once more. Where it matches nothing is written but the key, however often it is asked. Where not, that is "
            "noted and told once, and what stands on it denies until it is judged anew."
        ),
    )
    def post(self, request: Request, uid: uuid.UUID) -> Response:
        verdict = existing(policies.get_verdict, uid=uid)
        (done,) = replay_verdicts(
            actor=actor_of(request),
            verdicts=[verdict],
            idempotency_key=request.headers.get("Idempotency-Key"),
            request_id=request_id_of(request._request),
        )
        return Response(self.get_serializer(done).data)
