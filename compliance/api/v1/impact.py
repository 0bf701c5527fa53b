"""What a policy version would change if it came into force."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.fields import Digest, Exact, Instant, Words
from compliance.api.parameters import word
from compliance.api.v1.policies import NAME
from compliance.api.views import ApiView, NestedListView, existing, number_in_path
from compliance.selectors import policies
from compliance.selectors.impact import read_changes, read_impact, row_of
from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from policies.vocabulary import Change, Said

NUMBER = number_in_path("number", "The version's number.")


class ImpactRowSerializer(serializers.Serializer[Any]):
    """A subject version in a place: the systems and actions for which both texts are asked alike."""

    subject = serializers.CharField()
    subject_version = serializers.IntegerField()
    domain = serializers.CharField()
    systems = serializers.CharField(help_text="The first systems of the place; empty where none is registered.")
    before = Words(Said, help_text="What the version in force says.")
    after = Words(Said, help_text="What this version says.")
    distance = Exact(
        allow_null=True, help_text="How far, in percent, this version's answer is from turning; null where no number says."
    )


class ImpactChangeSerializer(ImpactRowSerializer):
    """A subject version in a place for which the two versions differ."""

    change = Words(Change)


class ImpactSerializer(serializers.Serializer[Any]):
    """What a version would change against the one in force. The lists hold the first fifty, the counts all."""

    no_new_access = serializers.BooleanField(help_text="It is sure that nobody is newly permitted.")
    why = serializers.ListField(child=serializers.CharField(), help_text="Why it may open access; empty where it opens none.")
    newly_permitted = ImpactRowSerializer(many=True)
    newly_permitted_count = serializers.IntegerField()
    newly_refused = ImpactRowSerializer(many=True)
    newly_refused_count = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    unjudged = serializers.IntegerField(help_text="Not judged by this version yet, so it may permit them.")
    near_edge_count = serializers.IntegerField(help_text="At most three points from turning.")
    nearest = ImpactRowSerializer(many=True, help_text="The ten nearest to the edge, on either side of it.")
    lists_digest = Digest(help_text="Of every row that differs, in order.")
    judged_at = Instant(allow_null=True, help_text="Of the newest verdict among those shown.")
    grants_refused = serializers.ListField(child=serializers.UUIDField(), help_text="Live grants that it would no longer carry.")
    grants_refused_count = serializers.IntegerField()
    grants_permitted = serializers.ListField(child=serializers.UUIDField(), help_text="Live grants that it would carry again.")
    grants_permitted_count = serializers.IntegerField()


class PolicyVersionImpact(ApiView):
    """What this version would change if it came into force now: four numbers, the first of each list, and a clear yes or no."""

    path_parameters = (NAME, NUMBER)
    serializer_class = ImpactSerializer

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        impact = read_impact(existing(policies.get_policy_version, **kwargs), at=now())
        whole = {**impact.as_value(), "newly_permitted": impact.newly_permitted, "newly_refused": impact.newly_refused}
        return Response(self.get_serializer({**whole, "nearest": impact.nearest}).data)


class PolicyVersionImpactRows(NestedListView):
    """Every answer that this version would change, in the order of subject versions.

    A page looks at so many subject versions: it may hold more rows than that, or none. Follow `next` until it is null.
    """

    owner = staticmethod(policies.get_policy_version)
    path_parameters = (NAME, NUMBER)
    filters = (word("change", Change, "Only what changes in this way."),)
    serializer_class = ImpactChangeSerializer
    oldest_first = True

    @staticmethod
    def find(**_: Any) -> Any:
        return SubjectVersion.objects.select_related("subject").defer("pin")

    @extend_schema(responses=ImpactChangeSerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        version = existing(policies.get_policy_version, **kwargs)
        looked_at = self.paginate_queryset(self.get_queryset())
        wanted = self.asked.get("change")
        rows = [
            {**row_of(compared)._asdict(), "change": compared.change}
            for compared in read_changes(version, looked_at or [], at=now())
            if wanted in (None, compared.change)
        ]
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)
