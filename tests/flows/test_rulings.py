"""A ruling finds what rests on the evidence, before and after; what was known before it stays as it was.

Tasks run as they are sent, in the caller's thread; everything commits.
"""

import json

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import Grant, User
from compliance.selectors.resting import RestsOnIt, read_resting
from compliance.services.disputes import file_dispute
from compliance.services.filing import request_ruling
from compliance.services.people import create_person
from compliance.vocabulary import GrantStatus, Role
from evaluations.kernel.clock import now
from evaluations.models import Evidence
from policies.models import Verdict
from policies.selectors.gate import ask_gate
from tests.compliance.api.callers import as_person
from tests.support import signing, world


@pytest.fixture
def land(committed_db, run_tasks_inline) -> signing.Ground:
    return signing.ground("84")


def resting(evidence: Evidence) -> RestsOnIt:
    return read_resting(evidence, at=now())


def words(found: RestsOnIt) -> list[tuple[str, str, bool]]:
    return [(item.before.result if item.before else "", item.now.result, item.rests) for item in found.verdicts]


def stewards() -> list[User]:
    return [signing.human(f"Steward {name}", Role.EVIDENCE_STEWARD) for name in ("one", "two", "three")]


def rule(evidence: Evidence, kind: str, people: list[User]) -> None:
    request = request_ruling(actor=signing.actor_of(people[0]), evidence=evidence, kind=kind, reason=f"{kind} for a test")
    for steward in people[1:]:
        signing.sign(steward, request)


def test_a_dispute_makes_the_next_verdict_contested_lists_what_rested_and_changes_nothing_that_was_known(
    land: signing.Ground,
) -> None:
    grant = signing.granted(land)
    evidence = Evidence.objects.get()
    passed = Verdict.objects.get()
    assert words(resting(evidence)) == [("pass", "pass", True)]
    yesterday = now()
    before = ask_gate(land.policy, as_of=yesterday, known_at=yesterday)
    file_dispute(actor=signing.actor_of(land.security), evidence=evidence, reason="the counts were swapped")
    found = resting(evidence)
    assert words(found) == [("pass", "contested", True)]
    assert found.verdicts[0].before == passed
    assert Grant.objects.get().status == GrantStatus.SUSPENDED
    today = ask_gate(land.policy, as_of=now(), known_at=now())
    again = ask_gate(land.policy, as_of=yesterday, known_at=yesterday)
    assert [row.result for row in today.rows] == ["contested"]
    assert again.as_value() == before.as_value()
    assert [row.result for row in again.rows] == ["pass"]
    answer = as_person(signing.human("Ada Auditor", Role.AUDITOR)).get(f"evidence/{evidence.uid}/resting").json()
    (told,) = answer["verdicts"]
    assert (told["before"], told["now"]["result"]) == ({"uid": str(passed.uid), "result": "pass"}, "contested")
    assert (told["subject"], told["policy"], told["rests"]) == ("model-a", "two-keys", True)
    assert answer["grants"] == [{"uid": str(grant.uid), "status": "suspended"}]


def test_a_dismissed_dispute_restores_the_verdict_and_an_upheld_one_does_not(land: signing.Ground) -> None:
    evidence, people = Evidence.objects.get(), stewards()
    file_dispute(actor=signing.actor_of(land.security), evidence=evidence, reason="the counts were swapped")
    rule(evidence, "dispute_upheld", people)
    assert words(resting(evidence)) == [("contested", "contested", True)]
    rule(evidence, "dispute_dismissed", people)
    assert words(resting(evidence)) == [("contested", "pass", True)]


ROADS = {
    "the same bytes": lambda: world.submit(world.submission("model-a", world.observation("84"))),
    "another document": lambda: world.submit(json.dumps(world.submission("model-a"), indent=1).encode()),
    "a newer revision": lambda: world.submit(world.submission("model-a", supersedes=str(Evidence.objects.earliest("id").uid))),
}


@pytest.mark.parametrize("road", ROADS)
def test_case_o20_no_road_revives_what_was_retracted(land: signing.Ground, road: str) -> None:
    grant = signing.granted(land)
    evidence = Evidence.objects.get()
    rule(evidence, "retracted", stewards())
    assert words(resting(evidence)) == [("pass", "missing", True)]
    ROADS[road]()
    world.judge_all()
    assert grant.reload().status == GrantStatus.SUSPENDED
    moment = now()
    assert [row.result for row in ask_gate(land.policy, as_of=moment, known_at=moment).rows] == ["missing"]


@pytest.mark.parametrize("road", ROADS)
def test_case_o20_no_road_settles_a_dispute(land: signing.Ground, road: str) -> None:
    file_dispute(actor=signing.actor_of(land.security), evidence=Evidence.objects.get(), reason="the counts were swapped")
    ROADS[road]()
    world.judge_all()
    moment = now()
    assert [row.result for row in ask_gate(land.policy, as_of=moment, known_at=moment).rows] == ["contested"]


def test_the_page_of_evidence_and_its_form_tell_what_rests_on_it(land: signing.Ground) -> None:
    signing.granted(land)
    evidence = Evidence.objects.get()
    client = Client()
    staff = create_person(actor=world.ACTOR, name="Sue Staff", email="sue@example.org", is_staff=True, roles=[Role.SECURITY])
    client.force_login(staff)
    page = reverse("admin:evaluations_evidence_change", args=[evidence.pk])
    html = client.get(page).content.decode()
    assert "What it decides now." in html
    assert "Grants that may fall with it" in html
    form = client.get(reverse("admin:compliance_signoffrequest_ask_dispute", args=[evidence.pk])).content.decode()
    assert "Verdicts that it decides now: 1." in form
    assert "Grants of yours to see that may fall with it: 1." in form
    file_dispute(actor=signing.actor_of(land.security), evidence=evidence, reason="the counts were swapped")
    html = client.get(page).content.decode()
    assert "Before the ruling" in html
    assert html.index("passes") < html.rindex("contested")
