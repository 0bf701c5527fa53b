"""Policies and their versions."""

import json
from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.fields import Digest, Instant, Link, Words
from compliance.api.parameters import Parameter, number
from compliance.api.views import ApiView, DetailView, ListView, NestedListView, existing, key_in_path, number_in_path
from compliance.selectors import policies
from policies.language.lint import Code, Level
from policies.language.meaning import Direction, MeaningChange, unified
from policies.models import PolicyVersion
from policies.selectors.linting import Checked, check_version
from policies.selectors.policies import changes_between, version_to_compare
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


class MeaningChangeSerializer(serializers.Serializer[Any]):
    """One difference in meaning. `before` and `after` are empty where that side has no such part."""

    path = serializers.CharField(help_text="The part as the text names it, such as `spec.evidence.refusal.max_age_days`.")
    what = serializers.CharField()
    before = serializers.CharField(allow_blank=True)
    after = serializers.CharField(allow_blank=True)
    direction = serializers.ChoiceField(
        choices=[word.value for word in Direction], help_text="Whether it asks less than before, more, or something else."
    )
    sentence = serializers.CharField()


class PolicyChangesSerializer(serializers.Serializer[Any]):
    """What a version differs in from another one of its policy."""

    policy = serializers.CharField()
    number = serializers.IntegerField()
    against = serializers.IntegerField(allow_null=True, help_text="Null where there is nothing to compare with.")
    changes = MeaningChangeSerializer(many=True)
    text_diff = serializers.CharField(allow_blank=True, help_text="The unified diff of the two texts.")


class LintFindingSerializer(serializers.Serializer[Any]):
    """What the lint finds, and what to write instead."""

    code = serializers.ChoiceField(choices=[word.value for word in Code])
    level = serializers.ChoiceField(
        choices=[word.value for word in Level], help_text="`block` keeps it from coming into force; `warn` is shown to signers."
    )
    message = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    hint = serializers.CharField()
    place = serializers.CharField()


class PolicyTestSerializer(serializers.Serializer[Any]):
    """How one of the policy's own tests comes out."""

    name = serializers.CharField()
    line = serializers.IntegerField()
    passed = serializers.BooleanField()
    problems = serializers.ListField(child=serializers.CharField())


class PolicyChecksSerializer(serializers.Serializer[Any]):
    """What is said of a version's exact bytes by lint and tests, and whether that lets it come into force."""

    policy = serializers.CharField()
    number = serializers.IntegerField()
    digest = Digest()
    blocked = serializers.BooleanField(help_text="Whether its activation is refused: a blocking finding, a red test, or no test.")
    findings = LintFindingSerializer(many=True)
    tests = PolicyTestSerializer(many=True)


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


class OfVersion(ApiView):
    """Base of what is said about one version."""

    path_parameters = (NAME, number_in_path("number", "The version's number."))

    def version(self) -> PolicyVersion:
        """Return the version of the address, or raise 404."""
        found: PolicyVersion = existing(policies.get_policy_version, **self.kwargs)
        return found


class PolicyVersionChanges(OfVersion):
    """What a version changes, in meaning and in text: against what it would replace, or against the version that is named."""

    serializer_class = PolicyChangesSerializer

    def parameters_of(self, method: str) -> Sequence[Parameter]:
        return (number("against", "The number of the version to compare with. Default: the one in force, else the one before."),)

    def get(self, request: Request, **_: Any) -> Response:
        version = self.version()
        against = self.asked.get("against")
        if against is None:
            before = version_to_compare(version)
        else:
            before = existing(policies.get_policy_version, name=version.policy.name, number=against)
        value: dict[str, Any] = {"policy": version.policy.name, "number": version.number, "against": None, "changes": []}
        value["text_diff"] = ""
        if before is not None:
            named = (f"{version.policy.name}@{before.number}", f"{version.policy.name}@{version.number}")
            value |= {
                "against": before.number,
                "changes": [change_value(change) for change in changes_between(before, version)],
                "text_diff": "\n".join(unified(bytes(before.text), bytes(version.text), named=named)),
            }
        return Response(value)


class PolicyVersionChecks(OfVersion):
    """What lint and the policy's own tests say of a version: what blocks its activation, and what signers are warned of."""

    serializer_class = PolicyChecksSerializer

    def get(self, request: Request, **_: Any) -> Response:
        version = self.version()
        checked = check_version(version)
        about = {"policy": version.policy.name, "number": version.number, "digest": version.digest}
        return Response({**about, **checked_value(checked)})


def change_value(change: MeaningChange) -> dict[str, str]:
    """Return a change as the API shows it."""
    return {**change._asdict(), "sentence": change.sentence}


def checked_value(checked: Checked) -> dict[str, Any]:
    """Return findings and tests as the API shows them."""
    return {
        "blocked": checked.blocked,
        "findings": [finding._asdict() for finding in checked.findings],
        "tests": [
            {"name": report.name, "line": line, "passed": report.passed, "problems": list(report.problems)}
            for report, line in checked.tests
        ],
    }
