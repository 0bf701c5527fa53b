"""Many questions at once on real grants: defaults, the three semantics, items that are no questions, and limits."""

from typing import Any

import pytest

from compliance.models import Decision, LedgerEntry
from tests.compliance.api.authzen.doors import Doors, question
from tests.support import signing
from tests.support.asking import ask_token

YES, NO, ODD = question(), question("nobody"), {"subject": "odd"}


def answered(doors: Doors, semantic: str, *items: Any) -> list[bool]:
    return doors.decisions({"options": {"evaluations_semantic": semantic}, "evaluations": list(items)})


@pytest.mark.parametrize(
    ("semantic", "items", "expected"),
    [
        ("execute_all", [YES, NO, ODD, YES], [True, False, False, True]),
        ("deny_on_first_deny", [YES, NO, YES], [True, False]),
        ("deny_on_first_deny", [YES, ODD, YES], [True, False]),
        ("deny_on_first_deny", [ODD, YES], [False]),
        ("deny_on_first_deny", [YES, YES], [True, True]),
        ("permit_on_first_permit", [NO, YES, NO], [False, True]),
        ("permit_on_first_permit", [NO, ODD, YES, ODD], [False, False, True]),
        ("permit_on_first_permit", [ODD, NO], [False, False]),
        ("permit_on_first_permit", [NO, ODD], [False, False]),
        ("execute_all", [ODD, ODD], [False, False]),
    ],
)
def test_the_three_semantics(doors: Doors, semantic: str, items: list[Any], expected: list[bool]) -> None:
    assert answered(doors, semantic, *items) == expected
    # What was answered is on record, and nothing else.
    asked = sum(1 for item, _ in zip(items, expected, strict=False) if item is not ODD)
    assert Decision.objects.count() == asked
    assert LedgerEntry.objects.filter(action="decision.made").count() == asked


def test_every_answer_has_a_record_of_its_own_and_one_instant(doors: Doors) -> None:
    body = doors.send("evaluations", {"evaluations": [YES, NO, YES]}, X_Request_ID="batch-1").json()
    contexts = [one["context"] for one in body["evaluations"]]
    assert len({context["evaluation_id"] for context in contexts}) == 3
    assert len({context["evaluated_at"] for context in contexts}) == 1
    assert Decision.objects.filter(request_id="batch-1").count() == 3


def test_a_key_inside_an_item_takes_the_place_of_the_whole_entity(doors: Doors, granted: signing.Ground) -> None:
    wrong = {"fingerprint": "sha256:" + "0" * 64}
    defaults = {**YES, "subject": {**YES["subject"], "properties": wrong}}
    items = [{}, {"subject": YES["subject"]}, {"subject": {"id": "model-a"}}, {"resource": {"id": "hr-prod"}}, {"subject": None}]
    body = doors.send("evaluations", {**defaults, "evaluations": items}).json()["evaluations"]
    assert [one["decision"] for one in body] == [False, True, False, False, False]
    assert body[0]["context"]["reason"] == "unknown_fingerprint"
    assert [one["context"]["error"]["message"] for one in body[2:]] == [
        "`subject.type` is missing",
        "`resource.type` is missing",
        "`subject` is missing",
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({**YES, "evaluations": {}}, "`evaluations` is a list"),
        ({**YES, "evaluations": "all"}, "`evaluations` is a list"),
        ({"evaluations": [YES], "options": {"evaluations_semantic": "first"}}, "execute_all"),
        ({"evaluations": [YES], "options": {"evaluations_semantic": 1}}, "execute_all"),
        ({"evaluations": [YES], "options": []}, "`options` is an object"),
        ({"evaluations": [YES], "subject": "model-a"}, "`subject` is an object"),
        ({"evaluations": [YES], "context": 1}, "`context` is an object"),
        ({"evaluations": [{}] * 1_001}, "at most 1000 questions"),
        ({"evaluations": []}, "`subject` is missing"),
        ({}, "`subject` is missing"),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_is_400(doors: Doors, body: dict[str, Any], said: str) -> None:
    answer = doors.send("evaluations", body)
    assert answer.status_code == 400
    assert said in answer.content.decode()


def test_a_thousand_questions_are_answered(doors: Doors) -> None:
    assert doors.decisions({**YES, "evaluations": [{}] * 1_000}) == [True] * 1_000


def test_who_is_nobody_learns_nothing_from_items_that_are_wrong(doors: Doors, granted: signing.Ground) -> None:
    for token, status in ((f"{doors.token}x", 401), (ask_token(granted.asker, "read"), 403)):
        assert Doors(token).send("evaluations", {"evaluations": [ODD, 7, None]}).status_code == status
    assert doors.decisions({"evaluations": [ODD, 7, None]}) == [False] * 3


def test_a_batch_is_observed_where_every_question_says_so(doors: Doors) -> None:
    watching = {"context": {"observe": True}}
    doors.send("evaluations", {**watching, "evaluations": [YES, {**NO, "context": {}}]}, X_Request_ID="some")
    doors.send("evaluations", {**watching, "evaluations": [YES, NO]}, X_Request_ID="all")
    observed = {row.request_id: row.observed for row in Decision.objects.all()}
    assert observed == {"some": False, "all": True}


def test_a_narrow_token_gets_answers_about_its_system_alone(granted: signing.Ground) -> None:
    narrow = Doors(ask_token(granted.asker, "decide:hr-prod"))
    assert narrow.decisions({"evaluations": [YES, question(system="it-prod")]}) == [True, False]
