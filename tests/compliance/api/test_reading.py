"""Each address answers whoever may read, and refuses whoever may not, in one set-up."""

import pytest

from compliance.selectors.policies import sentences_of
from compliance.vocabulary import Scope
from evaluations.kernel.canonical import digest_of
from policies.models import Verdict
from policies.services.policies import propose_policy_version
from tests.compliance.api.world import POLICY, Api, World, nobody
from tests.support.trust import move_trust


def addresses(world: World) -> dict[str, str]:
    """Return every address of the API, by the name of its route."""
    verdict = Verdict.objects.get()
    digest = world.evidence.document.digest
    return {
        "subjects": "subjects",
        "subject": "subjects/labs/model-one",
        "subject-versions": "subjects/labs/model-one/versions",
        "subject-version": "subjects/labs/model-one/versions/1",
        "benchmarks": "benchmarks",
        "benchmark": "benchmarks/gym",
        "metrics": "metrics",
        "metric": "metrics/infeasible_refusal_rate",
        "sources": "sources",
        "source": "sources/board",
        "documents": "documents",
        "document": f"documents/{digest}",
        "document-content": f"documents/{digest}/content",
        "evidence": "evidence",
        "evidence-detail": f"evidence/{world.evidence.uid}",
        "evidence-observations": f"evidence/{world.evidence.uid}/observations",
        "evidence-resting": f"evidence/{world.evidence.uid}/resting",
        "policies": "policies",
        "policy": "policies/refusal-only",
        "policy-versions": "policies/refusal-only/versions",
        "policy-version": "policies/refusal-only/versions/1",
        "policy-version-changes": "policies/refusal-only/versions/1/changes",
        "policy-version-checks": "policies/refusal-only/versions/1/checks",
        "systems": "systems",
        "system": "systems/payroll-prod",
        "verdicts": "verdicts",
        "verdict": f"verdicts/{verdict.uid}",
        "verdict-facts": f"verdicts/{verdict.uid}/facts",
        "reason-codes": "reason-codes",
        "ledger-entries": "ledger/entries",
        "ledger-entry": f"ledger/entries/{world.entry.uid}",
        "ledger-entry-proof": f"ledger/entries/{world.entry.uid}/proof",
        "ledger-checkpoint": "ledger/checkpoint",
        "ledger-consistency": "ledger/consistency?from=1",
        "ledger-check": "ledger/check",
        "ledger-population": "ledger/population",
        "ledger-exports": "ledger/exports",
        "ledger-export": f"ledger/exports/{world.export.uid}",
        "ledger-export-content": f"ledger/exports/{world.export.uid}/content",
    }


ADMINISTERED = {"notices", "notice", "notice-replay", "webhooks", "webhook", "webhook-disable", "webhook-rotate-secret"}
"""Routes that no token opens: tested in test_webhooks.py."""


DECISIONS = {"decisions", "decision", "decision-replay", "decision-proof"}
"""Routes of what was answered: tested in test_decisions.py."""


IMPACTS = {"policy-version-impact", "policy-version-impact-rows"}
"""Routes of what a policy would change: tested in test_impact.py."""


NAMES = {"names", "name"}
"""Routes of names that wait for a person: tested in test_names.py."""


REFRESHING = {"source-schedule", "source-refresh", "refresh-runs", "refresh-run"}
"""Routes of fetching from sources: tested in test_refreshing.py."""


UPLOADS = {"uploads", "upload"}
"""Routes of evidence files as they are: tested in test_uploads.py."""


DRAFTS = {"policy-drafts", "policy-draft", "policy-draft-propose"}
"""Routes of policies that are being written: tested in test_drafts.py."""


ROUTING = {"routing", "routing-allowed", "routing-inventory"}
"""Routes of what gateways serve: tested in test_routing.py."""


OFFLINE = {"system-bundle", "system-opa-bundle"}
"""Routes that a token which may ask opens: tested in test_offline.py."""


ACTS = {
    "system-incident",
    "request-withdraw",
    "request-complete",
    "grants-stop",
    "grants-break-glass",
    "grant-suspend",
    "grant-revoke",
    "waiver-revoke",
    "evidence-dispute",
    "verdict-replay",
    "people",
    "person-roles",
    "person-role-end",
}
"""Routes that only take something, and those of people, which no token opens: tested in files of their own."""
SIGHTED = {
    "requests": "requests",
    "request": "requests/{request}",
    "request-dossier": "requests/{request}/dossier",
    "request-dossiers": "requests/{request}/dossiers",
    "request-sign-offs": "requests/{request}/sign-offs",
    "request-comments": "requests/{request}/comments",
    "grants": "grants",
    "grant": "grants/{grant}",
    "waivers": "waivers",
    "waiver": "waivers/{waiver}",
    "me": "me",
}
"""Routes of which everybody sees her own part: tested in files of their own too."""


def test_every_route_is_among_the_addresses_tested_here(world: World) -> None:
    from compliance.api.v1.urls import urlpatterns

    elsewhere = (ADMINISTERED, DECISIONS, IMPACTS, NAMES, REFRESHING, UPLOADS, DRAFTS, ROUTING, OFFLINE, ACTS, SIGHTED)
    assert {pattern.name for pattern in urlpatterns} == set(addresses(world)).union(*elsewhere)


def test_each_address_answers_a_reader_and_refuses_everybody_else(world: World, api: Api) -> None:
    submitter, narrowed = world.api_with(Scope.SUBMIT_EVIDENCE), world.api_with("read:hr-prod")
    for path in addresses(world).values():
        answer = api.get(path)
        assert answer.status_code == 200, path
        unknown = nobody().get(path)
        assert (unknown.status_code, unknown.json()["code"]) == (401, "not_authenticated"), path
        assert unknown.headers["WWW-Authenticate"] == "Bearer"
        for other in (submitter, narrowed):
            refused = other.get(path)
            assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), path
            assert refused.headers["Content-Type"] == "application/problem+json"


def test_no_address_takes_a_parameter_it_does_not_know(world: World, api: Api) -> None:
    for path in addresses(world).values():
        answer = api.get(path, {"subjekt": "labs/model-one"})
        assert answer.status_code == 400, path
        assert answer.json()["problems"][0]["field"] == "subjekt"


@pytest.mark.parametrize(
    "path",
    [
        "subjects/nobody",
        "subjects/nobody/versions",
        "subjects/labs/model-one/versions/2",
        "subjects/labs/model-one/versions/99999999999999999999",
        "subjects/labs/model-one/versions/0",
        "subjects/LABS/MODEL-ONE",
        "subjects/labs%00/x",
        "subjects/" + "a" * 5000,
        "benchmarks/none",
        "metrics/none",
        "sources/none%0A",
        "documents/sha256:00",
        "documents/%00",
        "documents/sha256:" + "0" * 64 + "/content",
        "evidence/00000000-0000-0000-0000-000000000000",
        "evidence/00000000-0000-0000-0000-000000000000/observations",
        "evidence/00000000-0000-0000-0000-000000000000/resting",
        "evidence/not-a-uuid",
        "policies/none",
        "policies/none/versions",
        "policies/refusal-only/versions/7",
        "policies/refusal-only/versions/7/changes",
        "policies/refusal-only/versions/1/changes?against=7",
        "policies/refusal-only/versions/7/checks",
        "verdicts/00000000-0000-0000-0000-000000000000",
        "verdicts/00000000-0000-0000-0000-000000000000/facts",
        "ledger/entries/00000000-0000-0000-0000-000000000000",
        "ledger/entries/00000000-0000-0000-0000-000000000000/proof",
        "ledger/entries/0",
        "ledger/exports/00000000-0000-0000-0000-000000000000",
        "ledger/exports/00000000-0000-0000-0000-000000000000/content",
        "ledger",
        "subjects/",
        "nothing-here",
    ],
)
def test_what_is_not_there_is_404_with_problem_details(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"


def test_numbers_are_exact_plain_text_and_times_are_utc(world: World, api: Api) -> None:
    shown = api.get(f"evidence/{world.evidence.uid}").json()
    assert [each["value"] for each in shown["observations"]] == ["53.9", "80", "79.9995"]
    assert shown["observations"][0]["value_as_written"] == "53.900"
    assert shown["observations"][0]["unit"] == "percent"
    assert shown["observations_complete"] is True
    assert shown["run_ended_at"] == "2026-07-01T00:00:00.000000Z"
    assert shown["document"] == world.evidence.document.digest


def test_evidence_with_many_observations_shows_the_first_and_says_so(world: World, api: Api) -> None:
    from tests.compliance.api.world import evidence_body

    made = api.send(evidence_body(*[str(place) for place in range(60)])).json()
    shown = api.get(f"evidence/{made['evidence'][0]}").json()
    assert len(shown["observations"]) == 50
    assert shown["observations_complete"] is False
    first = api.client.get(shown["observations_url"], headers=api.headers).json()
    rest = api.client.get(first["next"], headers=api.headers).json()
    assert [each["ordinal"] for each in first["results"] + rest["results"]] == list(range(1, 61))
    assert rest["next"] is None


def test_a_policy_version_shows_the_bytes_that_its_digest_covers(world: World, api: Api) -> None:
    shown = api.get("policies/refusal-only/versions/1").json()
    assert shown["text"].encode() == POLICY
    assert digest_of(shown["text"].encode()) == shown["digest"]
    assert shown["state"] == "proposed"
    assert shown["resolved"]["spec"]["rules"][0]["at_least"] == "80"
    assert api.get("policies/refusal-only").json()["active_version"] is None
    assert "text" not in api.get("policies/refusal-only/versions").json()["results"][0]


def test_a_verdict_leads_to_its_rules_its_evidence_and_its_facts(world: World, api: Api) -> None:
    verdict = api.get("verdicts").json()["results"][0]
    assert (verdict["outcome"], verdict["result"], verdict["subject"]) == ("fail", "fail", "labs/model-one")
    detail = api.get(f"verdicts/{verdict['uid']}").json()
    assert detail["rules"] == [
        {
            "id": "refuses-enough",
            "result": "fail",
            "message": detail["rules"][0]["message"],
            "evidence": [str(world.evidence.uid)],
            "flips": detail["rules"][0]["flips"],
        }
    ]
    assert "53.9 %" in detail["rules"][0]["message"]
    (flip,) = detail["rules"][0]["flips"]
    assert (flip["remedy"], flip["evidence"], flip["gap"], flip["sources"]) == (
        "later_run",
        str(world.evidence.uid),
        "26.1",
        ["board"],
    )
    assert flip["message"].startswith("Short by 26.1 percentage points (`board`). It passes by a later run of `board`")
    rule = detail["core"]["rules"][0]
    assert (rule["id"], rule["measured"], rule["bar"]) == ("refuses-enough", "53.9", "80")
    assert rule["deciding"] == [str(world.evidence.uid)]
    facts = api.client.get(detail["facts_url"], headers=api.headers)
    assert digest_of(facts.content) == detail["facts_digest"]
    assert facts.headers["Content-Type"] == "application/json"


def test_a_subject_version_shows_what_is_pinned(world: World, api: Api) -> None:
    shown = api.get("subjects/labs/model-one/versions").json()["results"]
    assert [each["pin"] for each in shown] == [{"snapshot": "2026-06-01"}]
    assert shown[0]["digest"] == world.version.digest
    assert api.get("subjects/labs/model-one").json()["latest_version"] == 1
    assert api.get("subjects/model-two").json()["latest_version"] is None


def test_a_source_shows_the_trust_in_force_or_none(world: World, api: Api) -> None:
    assert api.get("sources/other-board").json()["trust"] is None
    moved = move_trust("board", "archive")
    assert api.get("sources/board").json()["trust"]["tier"] == "archive"
    assert api.get("sources/board").json()["trust"]["sign_off_request"] == str(moved.sign_off_request)
    assert [each["key"] for each in api.get("sources", {"tier": "archive"}).json()["results"]] == ["board"]
    assert api.get("sources", {"tier": "independent"}).json()["results"] == []


def test_a_judgement_that_cannot_be_made_again_shows_its_core_without_sentences(world: World) -> None:
    verdict = Verdict.objects.select_related("facts", "policy_version").get()
    assert set(sentences_of(verdict)) == {"refuses-enough"}
    for field, value in (("semantics", 99), ("core", b"{}")):
        changed = Verdict.objects.select_related("facts", "policy_version").get()
        setattr(changed, field, value)
        assert sentences_of(changed) == {}
    verdict.facts.content = b"{}"
    assert sentences_of(verdict) == {}


def test_a_version_tells_what_it_changes_in_meaning_and_in_text(world: World, api: Api) -> None:
    first = "policies/refusal-only/versions/1"
    assert api.get(f"{first}/changes").json() | {"policy": ""} == {
        "policy": "",
        "number": 1,
        "against": None,
        "changes": [],
        "text_diff": "",
    }
    propose_policy_version(actor=world.actor, text=POLICY.replace(b"at_least: 80.0", b"at_least: 75.0"))
    told = api.get("policies/refusal-only/versions/2/changes").json()
    assert told["against"] == 1
    (change,) = told["changes"]
    assert (change["direction"], change["before"], change["after"]) == ("looser", "80 %", "75 %")
    assert change["sentence"].endswith("80 % → 75 %, looser")
    assert told["text_diff"].startswith("--- refusal-only@1\n+++ refusal-only@2\n")
    back = api.get(f"{first}/changes", {"against": "2"}).json()
    assert [item["direction"] for item in back["changes"]] == ["tighter"]
    assert api.get(f"{first}/changes", {"against": "0"}).status_code == 400


def test_a_version_tells_what_lint_and_tests_say_of_it(api: Api) -> None:
    told = api.get("policies/refusal-only/versions/1/checks").json()
    assert told["blocked"] is True
    (finding,) = (item for item in told["findings"] if item["code"] == "refusal-only")
    assert (finding["level"], finding["place"]) == ("block", "spec.rules")
    assert finding["hint"].startswith("require a metric of harm")
