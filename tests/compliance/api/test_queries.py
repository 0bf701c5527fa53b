"""The number of queries of each address does not grow with its rows; what it is now stands in a file that a change must touch."""

import json
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from compliance.services.comments import comment_on_request
from compliance.vocabulary import Role
from evaluations.kernel.services import service_transaction
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version
from evaluations.services.sources import apply_assign_trust, apply_register_source
from evaluations.services.subjects import apply_register_subject, register_subject_version
from policies.services.policies import propose_policy_version
from policies.services.systems import register_system
from policies.services.verdicts import judge_subject_versions
from tests.compliance.api.callers import as_person
from tests.compliance.api.test_reading import SIGHTED, addresses
from tests.compliance.api.world import POLICY, Api, World, evidence_body
from tests.support import signing, world

BASELINE = Path("tests/baselines/api-queries.json")


def count_queries(api: Api, paths: dict[str, str]) -> dict[str, int]:
    api.get("subjects")  # notes the token's use
    counts = {}
    for name, path in paths.items():
        with CaptureQueriesContext(connection) as queries:
            answer = api.get(path)
            if answer.streaming:
                b"".join(answer.streaming_content)
        assert answer.status_code == 200
        counts[name] = len(queries)
    return counts


def test_each_address_makes_the_queries_that_the_baseline_states(world: World, api: Api) -> None:
    paths = addresses(world)
    counts = count_queries(api, paths)
    more_rows(world, api)
    assert count_queries(api, paths) == counts
    assert counts == stated(*paths), f"the queries changed; if that is meant, write them to {BASELINE}: {counts}"


def stated(*names: str) -> dict[str, int]:
    whole = json.loads(BASELINE.read_text(encoding="utf-8"))
    return {name: whole[name] for name in names if name in whole}


def test_each_address_of_requests_and_grants_makes_the_queries_that_the_baseline_states(land: signing.Ground) -> None:
    grant = signing.granted(land)
    request = signing.ask(land)
    comment_on_request(actor=signing.actor_of(land.owner), request=request, text="why?")
    signing.sign(land.owner, request)
    whole = {**SIGHTED, "request (completed)": "requests/{made}", "people": "people"}
    found = {"request": request.uid, "grant": grant.uid, "made": grant.request.uid}
    paths = {name: path.format(**found) for name, path in whole.items() if "{waiver}" not in path}
    reader = as_person(signing.human("Ada Auditor", Role.AUDITOR))
    counts = count_queries(reader, paths)
    for number in range(3):
        elsewhere = register_system(actor=world.ACTOR, key=f"hr-{number}", title="HR", domain="hr", owner="hr")
        another = signing.granted(land, systems=[elsewhere, land.system])
        signing.human(f"Sven {number}", Role.SECURITY, team="sec")
        comment_on_request(actor=signing.actor_of(land.owner), request=request, text=f"why {number}?")
        assert another.status == "active"
    assert count_queries(reader, paths) == counts
    assert counts == stated(*paths), f"the queries changed; if that is meant, write them to {BASELINE}: {counts}"


def more_rows(world: World, api: Api) -> None:
    """Add several rows to every list."""
    actor = world.actor
    with service_transaction("load_bundle"):
        for number in range(4):
            benchmark = apply_register_benchmark(actor=actor, key=f"gym-{number}", title="Gym")
            apply_register_benchmark_version(actor=actor, benchmark=benchmark, version="1")
            source = apply_register_source(actor=actor, key=f"board-{number}", title="Board")
            apply_assign_trust(actor=actor, source=source, tier="archive", reason="old")
            apply_register_subject(actor=actor, key=f"model-{number}x", kind="model")
    versions = [
        register_subject_version(actor=actor, subject=world.version.subject, pin={"snapshot": str(number)}) for number in range(3)
    ]
    for number in range(3):
        assert api.send(evidence_body(str(number), "5")).status_code == 201
        propose_policy_version(actor=actor, text=POLICY + b"\n" * (number + 1), filename="p.yaml")
    judge_subject_versions(actor=actor, policy_version=world.policy_version, versions=versions, domain="any")
    for number in range(3):
        # Each order seals what came before it.
        assert api.order({"to_index": number}).status_code == 202
