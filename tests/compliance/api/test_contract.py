"""The published description held against live answers: made-up requests by schemathesis, and a real one for every address."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CheckFunction
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from compliance.services.comments import comment_on_request
from compliance.services.people import create_token
from compliance.services.uploads import read_upload
from compliance.vocabulary import Role
from evaluations.services.refresh import request_refresh
from tests.compliance.api.callers import as_person, as_token
from tests.compliance.api.test_drafts import WRONG, save
from tests.compliance.api.test_reading import SIGHTED, addresses
from tests.compliance.api.test_uploads import HEADER, ROW, hand_in
from tests.compliance.api.world import V1, Api, World, evidence_body
from tests.support import signing, world
from tests.support.sources import Reply, run, scheduled, source_server, table

CHECKS: list[CheckFunction] = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]

# So many made-up requests an operation and mode; a long run asks for more (100 make some 20,000).
CASES = int(os.environ.get("WRITEGATE_TEST_API_CASES", "5"))
TESTED_ELSEWHERE = (
    *("decisions", "routing", "notices", "webhooks", "requests", "grants", "waivers", "people", "me"),
    *("names", "refresh-runs"),
)
IMPACTS = {"policy-version-impact": "impact", "policy-version-impact-rows": "impact/rows"}
PARTS_TESTED_ELSEWHERE = ("/drafts", "/schedule", "/uploads", "/bundle")


@pytest.fixture(autouse=True)
def _keep_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that come over WSGI end by closing the connection, which here is the test's own, with its transaction."""
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)


@pytest.fixture
def api_schema(world: World) -> Any:
    return schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_made_up_requests_get_answers_that_the_schema_describes(api_schema: Any, world: World, mode: GenerationMode) -> None:
    headers = world.api().headers
    tried = set()
    for found in api_schema.get_all_operations():
        operation = found.ok()

        @settings(max_examples=CASES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=CHECKS, headers=headers)
            tried.add((case.method, case.operation.path))

        try:
            check()
        except Unsatisfiable:
            # Nothing about it can be wrong: it takes no parameter that has a shape.
            assert mode is GenerationMode.NEGATIVE
    assert len(tried) >= 30


def test_real_answers_of_every_address_are_as_the_schema_describes_them(api_schema: Any, world: World, api: Api) -> None:
    made = api.send(evidence_body("1", "2"))
    assert made.status_code == 201
    described = {
        path
        for path, methods in api_schema.raw_schema["paths"].items()
        if "get" in methods
        and path.startswith(V1)
        and path.removeprefix(f"{V1}/").partition("/")[0] not in TESTED_ELSEWHERE
        and not any(part in path for part in PARTS_TESTED_ELSEWHERE)
    }
    parameters = {
        "subject": {"key": "labs/model-one"},
        "subject-versions": {"key": "labs/model-one"},
        "subject-version": {"key": "labs/model-one", "number": 1},
        "benchmark": {"key": "gym"},
        "metric": {"key": "infeasible_refusal_rate"},
        "source": {"key": "board"},
        "policy": {"name": "refusal-only"},
        "system": {"key": "payroll-prod"},
        "policy-versions": {"name": "refusal-only"},
        "policy-version": {"name": "refusal-only", "number": 1},
        "policy-version-changes": {"name": "refusal-only", "number": 1},
        "policy-version-checks": {"name": "refusal-only", "number": 1},
        **{name: {"name": "refusal-only", "number": 1} for name in IMPACTS},
        **{name: {} for name in addresses(world) if name.startswith("ledger-")},
        **{name: {"uid": str(world.entry.uid)} for name in ("ledger-entry", "ledger-entry-proof")},
        **{name: {"uid": str(world.export.uid)} for name in ("ledger-export", "ledger-export-content")},
    }
    queries = {"ledger-consistency": {"from": 1}}
    seen = set()
    impacts = {name: f"policies/refusal-only/versions/1/{part}" for name, part in IMPACTS.items()}
    for name, address in {**addresses(world), **impacts}.items():
        values = parameters.get(name, {})
        path = address.partition("?")[0]
        parts = path.split("/")
        template = path
        for key, value in values.items():
            template = (
                template.replace(str(value), f"{{{key}}}", 1)
                if key != "number"
                else template.replace("versions/1", "versions/{number}")
            )
        if name not in parameters and len(parts) > 1:
            key = "digest" if parts[0] == "documents" else "uid"
            values = {key: parts[1]}
            template = path.replace(parts[1], f"{{{key}}}")
        operation = api_schema[f"{V1}/{template}"]["GET"]
        seen.add(f"{V1}/{template}")
        answer = operation.Case(path_parameters=values, query=queries.get(name, {})).call(headers=api.headers)
        assert answer.status_code == 200, path
        operation.validate_response(answer)
    assert seen == described


def test_real_answers_about_requests_and_grants_are_as_the_schema_describes_them(land: signing.Ground) -> None:
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    request, grant = signing.ask(land), signing.granted(land)
    comment_on_request(actor=signing.actor_of(land.owner), request=request, text="why?")
    signing.sign(land.owner, request)
    secret = create_token(actor=world.ACTOR, name="ci", scopes=["read"], person=land.security.person).secret
    uids = {"request": str(request.uid), "grant": str(grant.uid)}
    for path in SIGHTED.values():
        named = next((uid for name, uid in uids.items() if f"{{{name}}}" in path), None)
        if "{waiver}" in path:
            continue
        operation = described[f"{V1}/{re.sub('{.*}', '{uid}', path)}"]["GET"]
        answer = operation.Case(path_parameters={} if named is None else {"uid": named}).call(
            headers={"Authorization": f"Bearer {secret}"}
        )
        assert answer.status_code == 200, path
        operation.validate_response(answer)


def test_real_answers_about_names_drafts_and_uploads_are_as_the_schema_describes_them(
    land: signing.Ground, tmp_path: Path, settings: Any
) -> None:
    settings.UPLOAD_DIR = tmp_path / "uploads"
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    world.submit(world.submission("stranger"))
    draft = save(as_person(signing.human("Alice Author", Role.POLICY_AUTHOR)), WRONG, Idempotency_Key="d1").json()
    machine = as_token(signing.human("Stella Steward", Role.EVIDENCE_STEWARD), "submit_evidence", "read")
    upload = hand_in(machine, HEADER + ROW.format(name="nobody")).json()
    read_upload(upload["uid"])
    for path, parts, query in (
        ("names", {}, {}),
        ("names/one", {}, {"name": "stranger", "means": "model-a"}),
        ("policies/{name}/drafts", {"name": "two-keys"}, {}),
        ("policies/{name}/drafts/{uid}", {"name": "two-keys", "uid": draft["uid"]}, {}),
        ("evidence/uploads", {}, {}),
        ("evidence/uploads/{uid}", {"uid": upload["uid"]}, {}),
    ):
        operation = described[f"{V1}/{path}"]["GET"]
        answer = operation.Case(path_parameters=parts, query=query).call(headers=machine.headers)
        assert answer.status_code == 200, path
        operation.validate_response(answer)


def test_real_answers_about_schedules_and_refresh_runs_are_as_the_schema_describes_them(
    land: signing.Ground, settings: Any
) -> None:
    described = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())
    machine = as_token(signing.human("Stella Steward", Role.EVIDENCE_STEWARD), "submit_evidence", "read")
    with source_server() as server:
        settings.REFRESH_ALLOW, settings.REFRESH_HOST_RATE = [server.place], 1000
        server.say("/results.csv", Reply(table(stranger=84), headers={"ETag": '"one"'}))
        schedule = scheduled(server.url())
        runs = [run(schedule), run(schedule)]
        server.say("/results.csv", Reply(b"{}"))
        runs.append(run(schedule))
    request_refresh(actor=world.ACTOR, source=schedule.source)
    assert [each.outcome for each in runs] == ["taken", "unchanged", "failed"]
    for path, parts in (
        ("sources/{key}/schedule", {"key": "lab"}),
        ("refresh-runs", {}),
        *(("refresh-runs/{uid}", {"uid": str(each.uid)}) for each in runs),
    ):
        operation = described[f"{V1}/{path}"]["GET"]
        answer = operation.Case(path_parameters=parts).call(headers=machine.headers)
        assert answer.status_code == 200, path
        operation.validate_response(answer)
