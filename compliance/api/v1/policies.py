"""Policies and their versions."""

import json
from typing import Any

from rest_framework import serializers

from compliance.api.fields import Digest, Instant, Link, Words
from compliance.api.views import DetailView, ListView, NestedListView, key_in_path, number_in_path
from compliance.selectors import policies
from policies.models import PolicyVersion
from policies.vocabulary import VersionState

NAME = key_in_path("name", "The policy's name.")


class PolicySerializer(serializers.Serializer[Any]):
    """The name under which versions are kept."""

    name = serializers.CharField()
    title = serializers.CharField()
    registered_at = Instant()
    active_version = serializers.IntegerField(allow_null=True, help_text="The one in force; null where none is.")
    latest_version = serializers.IntegerField(allow_null=True)
    versions_url = Link("api-v1:policy-versions", {"name": "name"})


class PolicyVersionSerializer(serializers.Serializer[Any]):
    """One immutable version: what it is, and where it stands in its life."""

    policy = serializers.CharField(source="policy.name")
    number = serializers.IntegerField()
    title = serializers.CharField()
    state = Words(VersionState)
    digest = Digest(help_text="Of the exact bytes given, which are `text`.")
    resolved_digest = Digest(help_text="Of the canonical JSON of `resolved`.")
    semantics = serializers.IntegerField()
    proposed_by = serializers.CharField()
    recorded_at = Instant()


class PolicyTextSerializer(PolicyVersionSerializer):
    """One immutable version, with its text and what that means once every default is filled in."""

    text = serializers.SerializerMethodField()
    resolved = serializers.SerializerMethodField()

    def get_text(self, version: PolicyVersion) -> str:
        return bytes(version.text).decode("utf-8")

    def get_resolved(self, version: PolicyVersion) -> dict[str, Any]:
        return dict(json.loads(bytes(version.resolved)))


class PolicyList(ListView):
    """Policies, oldest first."""

    find = staticmethod(policies.find_policies)
    serializer_class = PolicySerializer
    oldest_first = True


class PolicyDetail(DetailView):
    """One policy."""

    find = staticmethod(policies.get_policy)
    path_parameters = (NAME,)
    serializer_class = PolicySerializer


class PolicyVersionList(NestedListView):
    """A policy's versions, newest first, without their texts."""

    owner = staticmethod(policies.get_policy)
    find = staticmethod(policies.find_policy_versions)
    path_parameters = (NAME,)
    serializer_class = PolicyVersionSerializer


class PolicyVersionDetail(DetailView):
    """One version of a policy, with its text."""

    find = staticmethod(policies.get_policy_version)
    path_parameters = (NAME, number_in_path("number", "The version's number."))
    serializer_class = PolicyTextSerializer
