"""The conformance profile where it answers: switched on, on a database without a grant."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from compliance import checks
from compliance.deciding.replay import judge_again
from compliance.models import Decision
from compliance.selectors.deciding.conformance import read_attributes
from evaluations.kernel.canonical import timestamp
from policies.models import PolicyVersion
from policies.selectors.policies import compile_version
from tests.compliance.api.authzen.conftest import FIXTURE
from tests.compliance.api.authzen.doors import CERTIFIED, Doors, findings, obstacles
from tests.support import world


def test_no_row_allows_without_a_grant_unless_it_says_what_it_is(certified: Doors) -> None:
    certified.send("evaluation", CERTIFIED)
    row = Decision.objects.get()
    row.pk, row.conformance = None, False
    with pytest.raises(IntegrityError, match="allowed_decision_rests_on_a_grant"), transaction.atomic():
        Decision.objects.bulk_create([row])


def test_an_answer_can_be_judged_again_from_its_record(certified: Doors) -> None:
    certified.send("evaluation", {**CERTIFIED, "subject": {"type": "user", "id": "bob", "properties": {"x": 1.5}}})
    row = Decision.objects.get()
    body = json.loads(bytes(row.body.content))
    version = PolicyVersion.objects.get()
    again = judge_again(body, {version.digest: compile_version(version)}, row.at, timestamp(row.at))
    assert again.core == body["judgement"]
    assert again.core["allowed"] is True


def test_a_policy_that_cannot_be_judged_or_forbids_denies(certified: Doors) -> None:
    text = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: more, title: More, profile: conformance}
spec:
  appliesTo: {actions: [read]}
  forbid:
    - {id: mars, when: 'request.resource.properties.planet == "mars"'}
"""
    world.activate(world.propose_text(text))

    def ask(**properties: Any) -> tuple[bool, str | None]:
        body = {**CERTIFIED, "resource": {**CERTIFIED["resource"], "properties": properties}}
        answer = certified.send("evaluation", body).json()
        return answer["decision"], answer["context"].get("reason")

    assert ask(planet="earth") == (True, None)
    assert ask(planet="mars") == (False, "forbidden_by_guardrail")
    assert ask() == (False, "guardrail_error")


def test_an_action_that_no_policy_names_is_denied(certified: Doors) -> None:
    answer = certified.send("evaluation", {**CERTIFIED, "action": {"name": "fly"}}).json()
    assert (answer["decision"], answer["context"]["reason"]) == (False, "no_policy")


def test_its_policies_need_the_signatures_that_any_policy_needs(certified: Doors) -> None:
    other = (FIXTURE / "policy.yaml").read_bytes().replace(b"name: certification", b"name: another")
    assert obstacles(world.propose_text(other)) == []


class TestChecks:
    def test_it_starts_on_one_without(self, certified: Doors) -> None:
        assert findings() == []

    def test_attributes_that_cannot_be_read_are_told(self, settings: Any, tmp_path: Path) -> None:
        settings.CONFORMANCE = True
        assert checks.check_attributes(None) == []
        for name, content in (("none", None), ("list", "[]"), ("deep", '{"user": {"alice": 1}}'), ("torn", "{")):
            path = tmp_path / f"{name}.json"
            if content is not None:
                path.write_text(content, encoding="utf-8")
            settings.CONFORMANCE_ATTRIBUTES = str(path)
            (finding,) = checks.check_attributes(None)
            assert finding.id == "compliance.E006", name
        settings.CONFORMANCE_ATTRIBUTES = str(FIXTURE / "attributes.json")
        assert checks.check_attributes(None) == []
        assert read_attributes()["user"]["bob"] == {"role": "admin"}

    def test_a_key_of_the_discovery_document_that_is_none_is_told(self, settings: Any) -> None:
        assert checks.check_metadata_key(None) == []
        settings.METADATA_KEY = "no key"
        (finding,) = checks.check_metadata_key(None)
        assert finding.id == "compliance.E007"
        assert "no key" not in finding.msg
