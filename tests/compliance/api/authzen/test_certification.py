"""AuthZEN 1.0's certification scenario, a test a line: every level, on its fixture, over HTTP."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from compliance.models import Decision
from tests.compliance.api.authzen.doors import Doors
from tests.compliance.api.authzen.test_discovery import claims_of, read

R1, R2 = {"type": "record", "id": "record-1"}, {"type": "record", "id": "record-2"}
ALICE, BOB = {"type": "user", "id": "alice"}, {"type": "user", "id": "bob"}
ADMIN = {**BOB, "properties": {"role": "admin"}}
ACTIVE, ARCHIVED = ({**R1, "properties": {"status": "active"}}, {**R2, "properties": {"status": "archived"}})


def ask(subject: Any, action: str, resource: Any, **more: Any) -> dict[str, Any]:
    return {"subject": subject, "action": {"name": action}, "resource": resource, **more}


def delete(*, soft: bool) -> dict[str, Any]:
    return {"subject": ALICE, "action": {"name": "delete", "properties": {"soft": soft}}, "resource": R1}


def without(body: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return a body with one member left out."""
    name, *rest = path
    if rest:
        return {**body, name: without(body[name], *rest)}
    return {held: value for held, value in body.items() if held != name}


GOOD = ask(ALICE, "read", R1)


class TestBasicCore:
    def test_the_fixture_s_answers(self, certified: Doors) -> None:
        rules = [(ALICE, "read", True), (ALICE, "write", True), (BOB, "read", True), (BOB, "write", False)]
        for subject, action, allowed in rules:
            assert certified.decide(ask(subject, action, R1)) is allowed, (subject, action)

    def test_a_context_changes_nothing(self, certified: Doors) -> None:
        context = {"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}
        assert certified.decide({**GOOD, "context": context}) is True
        assert certified.decide(ask(BOB, "write", R1, context=context)) is False

    def test_further_properties_are_taken(self, certified: Doors) -> None:
        body = {
            "subject": {**ALICE, "properties": {"department": "Sales", "role": "manager"}},
            "action": {"name": "read", "properties": {"method": "GET"}},
            "resource": {**R1, "properties": {"status": "active", "owner": "bob"}},
        }
        assert certified.decide(body) is True

    def test_unknown_fields_are_ignored(self, certified: Doors) -> None:
        assert certified.decide({**GOOD, "foo": "bar", "futureField": {"nested": True}}) is True

    def test_an_answer_has_a_decision_and_a_context_that_is_an_object(self, certified: Doors) -> None:
        body = certified.send("evaluation", GOOD).json()
        assert body["decision"] is True
        assert isinstance(body["context"], dict)

    @pytest.mark.parametrize(
        "path",
        [
            ("subject",),
            ("action",),
            ("resource",),
            ("subject", "type"),
            ("subject", "id"),
            ("action", "name"),
            ("resource", "type"),
            ("resource", "id"),
        ],
        ids=".".join,
    )
    def test_what_is_missing_is_refused(self, certified: Doors, path: tuple[str, ...]) -> None:
        answer = certified.send("evaluation", without(GOOD, *path))
        assert answer.status_code == 400
        assert f"`{'.'.join(path)}` is missing" in answer.content.decode()

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
    def test_another_content_type_is_refused(self, certified: Doors, kind: str) -> None:
        assert certified.send("evaluation", GOOD, Content_Type=kind).status_code == 400

    @pytest.mark.parametrize("body", [b"{", b"{'subject': 1}", b"not json", b"[]", b'"text"', b"null", b"", b"   "])
    def test_what_is_no_json_object_is_refused(self, certified: Doors, body: bytes) -> None:
        answer = certified.send("evaluation", body)
        assert answer.status_code == 400
        assert answer.headers["Content-Type"].startswith("text/plain")

    @pytest.mark.parametrize(
        "wrong", [{"subject": "alice"}, {"action": {"name": 123}}, {"resource": []}, {"subject": {"type": "user", "id": True}}]
    )
    def test_wrong_types_are_refused(self, certified: Doors, wrong: dict[str, Any]) -> None:
        assert certified.send("evaluation", {**GOOD, **wrong}).status_code == 400

    def test_the_request_s_id_comes_back(self, certified: Doors) -> None:
        assert certified.send("evaluation", GOOD, X_Request_ID="bfe9eb29-ab87").headers["X-Request-ID"] == "bfe9eb29-ab87"
        assert certified.send("evaluation", b"{", X_Request_ID="of an error").headers["X-Request-ID"] == "of an error"

    def test_without_an_id_one_is_made(self, certified: Doors) -> None:
        assert certified.send("evaluation", GOOD).headers["X-Request-ID"]

    def test_the_same_question_has_the_same_answer(self, certified: Doors) -> None:
        assert [certified.decide(GOOD) for _ in range(5)] == [True] * 5
        assert [certified.decide(ask(BOB, "write", R1)) for _ in range(5)] == [False] * 5


class TestBasicProperties:
    def test_nobody_but_an_admin_writes_what_is_archived(self, certified: Doors) -> None:
        assert certified.decide(ask(ALICE, "write", ARCHIVED)) is False

    def test_an_admin_does(self, certified: Doors) -> None:
        assert certified.decide(ask(ADMIN, "write", ARCHIVED)) is True

    def test_a_soft_deletion_is_allowed(self, certified: Doors) -> None:
        assert certified.decide(delete(soft=True)) is True

    def test_a_hard_one_is_not(self, certified: Doors) -> None:
        assert certified.decide(delete(soft=False)) is False

    def test_what_is_claimed_goes_before_what_is_registered(self, certified: Doors) -> None:
        assert certified.decide(ask(ALICE, "write", {**R1, "properties": {"status": "archived"}})) is False
        assert certified.decide(ask(BOB, "write", R2)) is True
        assert certified.decide(ask({**BOB, "properties": {"role": "guest"}}, "write", R2)) is False


class TestBatchCore:
    def test_defaults_hold_for_every_item(self, certified: Doors) -> None:
        body = {"subject": ALICE, "action": {"name": "read"}, "evaluations": [{"resource": R1}, {"resource": R2}]}
        assert certified.decisions(body) == [True, True]

    def test_answers_come_in_the_order_of_the_items(self, certified: Doors) -> None:
        items = [{"action": {"name": "read"}}, {"action": {"name": "write"}}]
        assert certified.decisions({"subject": BOB, "resource": R1, "evaluations": items}) == [True, False]

    def test_items_may_be_whole(self, certified: Doors) -> None:
        assert certified.decisions({"evaluations": [GOOD, ask(BOB, "write", R1)]}) == [True, False]

    def test_an_item_may_have_a_context_of_its_own(self, certified: Doors) -> None:
        items = [{"resource": R1}, {"resource": R2, "context": {"source": "batch-override"}}]
        body = {"subject": ALICE, "action": {"name": "read"}, "context": {"time": "now"}, "evaluations": items}
        assert len(certified.decisions(body)) == 2

    def test_there_is_a_decision_for_each_item(self, certified: Doors) -> None:
        body = {"subject": ALICE, "resource": R1, "evaluations": [{"action": {"name": "read"}}] * 25}
        answer = certified.send("evaluations", body).json()
        assert len(answer["evaluations"]) == 25
        assert all(one["decision"] is True for one in answer["evaluations"])

    def test_an_item_that_is_no_question_is_denied_in_its_place(self, certified: Doors) -> None:
        body = {"subject": ALICE, "action": {"name": "read"}, "evaluations": [{"resource": R1}, {}]}
        answer = certified.send("evaluations", body)
        assert answer.status_code == 200
        first, second = answer.json()["evaluations"]
        assert first["decision"] is True
        assert second == {"decision": False, "context": {"error": {"status": 400, "message": "`resource` is missing"}}}

    @pytest.mark.parametrize("more", [{}, {"evaluations": []}], ids=["missing", "empty"])
    def test_without_items_it_is_one_question(self, certified: Doors, more: dict[str, Any]) -> None:
        answer = certified.send("evaluations", {**GOOD, **more})
        assert (answer.status_code, answer.json()["decision"]) == (200, True)
        assert "evaluations" not in answer.json()


class TestBatchProperties:
    def test_resources_have_properties_by_item(self, certified: Doors) -> None:
        body = {"subject": ALICE, "action": {"name": "write"}, "evaluations": [{"resource": ACTIVE}, {"resource": ARCHIVED}]}
        assert certified.decisions(body) == [True, False]

    def test_subjects_have_properties_by_item(self, certified: Doors) -> None:
        body = {"action": {"name": "write"}, "resource": ARCHIVED, "evaluations": [{"subject": ALICE}, {"subject": ADMIN}]}
        assert certified.decisions(body) == [False, True]

    def test_an_empty_item_has_every_default_whole(self, certified: Doors) -> None:
        assert certified.decisions({**delete(soft=True), "evaluations": [{}, {"action": {"name": "delete"}}]}) == [True, False]
        assert certified.decisions({**ask(ADMIN, "write", ARCHIVED), "evaluations": [{}]}) == [True]


class TestSearchCore:
    def test_subjects(self, certified: Doors) -> None:
        body = {"subject": {"type": "user"}, "action": {"name": "read"}, "resource": R1}
        answer = certified.send("search/subject", {**body, "context": {"ip": "192.0.2.1"}}).json()
        assert answer["results"] == [{"type": "user", "id": "alice"}, {"type": "user", "id": "bob"}]

    def test_resources(self, certified: Doors) -> None:
        answer = certified.send("search/resource", ask(ALICE, "read", {"type": "record"})).json()
        assert {"type": "record", "id": "record-1"} in answer["results"]

    def test_actions(self, certified: Doors) -> None:
        answer = certified.send("search/action", {"subject": ALICE, "resource": R1, "context": {}}).json()
        assert answer["results"] == [{"name": "read"}, {"name": "write"}]

    def test_an_id_that_is_sent_all_the_same_is_ignored(self, certified: Doors) -> None:
        body = ask({"type": "user"}, "read", R1)
        assert certified.found("subject", {**body, "subject": {"type": "user", "id": "bob"}}) == certified.found("subject", body)
        body = ask(ALICE, "read", {"type": "record"})
        assert certified.found("resource", {**body, "resource": {"type": "record", "id": "x"}}) == certified.found(
            "resource", body
        )

    def test_pages(self, certified: Doors) -> None:
        body = ask({"type": "user"}, "read", R1)
        first = certified.send("search/subject", {**body, "page": {"limit": 1}}).json()
        assert (first["results"], first["page"]["count"]) == ([ALICE], 1)
        second = certified.send("search/subject", {**body, "page": {"token": first["page"]["next_token"]}}).json()
        assert (second["results"], second["page"]["next_token"]) == ([BOB], "")

    def test_what_is_unknown_has_no_results(self, certified: Doors) -> None:
        nobody, spaceship = {"type": "user", "id": "nonexistent-user"}, {"type": "spaceship", "id": "alice"}
        nothing = {"type": "record", "id": "record-9"}
        read_ = {"name": "read"}
        asked = [
            ("subject", ask({"type": "user"}, "read", nothing)),
            ("subject", ask({"type": "spaceship"}, "read", R1)),
            ("subject", ask({"type": "user"}, "fly", R1)),
            ("resource", {"subject": nobody, "action": read_, "resource": {"type": "record"}}),
            ("resource", {"subject": spaceship, "action": read_, "resource": {"type": "record"}}),
            ("resource", {"subject": ALICE, "action": read_, "resource": {"type": "spaceship"}}),
            ("action", {"subject": nobody, "resource": R1}),
            ("action", {"subject": spaceship, "resource": R1}),
            ("action", {"subject": ALICE, "resource": {"type": "spaceship", "id": "record-1"}}),
        ]
        for sought, body in asked:
            assert certified.found(sought, body) == [], (sought, body)

    @pytest.mark.parametrize(
        ("sought", "body"),
        [
            ("subject", {"subject": {"type": "user"}, "resource": R1}),
            ("subject", {"subject": {"type": "user"}, "action": {"name": "read"}}),
            ("subject", {"action": {"name": "read"}, "resource": R1}),
            ("subject", {"subject": {}, "action": {"name": "read"}, "resource": R1}),
            ("subject", {"subject": {"type": "user"}, "action": {"name": "read"}, "resource": {"type": "record"}}),
            ("resource", {"action": {"name": "read"}, "resource": {"type": "record"}}),
            ("resource", {"subject": {"type": "user"}, "action": {"name": "read"}, "resource": {"type": "record"}}),
            ("resource", {"subject": ALICE, "action": {"name": "read"}, "resource": {}}),
            ("action", {"subject": ALICE}),
            ("action", {"subject": {"type": "user"}, "resource": R1}),
            ("action", {"subject": ALICE, "resource": {"type": "record"}}),
        ],
    )
    def test_what_is_missing_is_refused(self, certified: Doors, sought: str, body: dict[str, Any]) -> None:
        answer = certified.send(f"search/{sought}", body)
        assert answer.status_code == 400
        assert "is missing" in answer.content.decode()


class TestSearchProperties:
    def test_subjects(self, certified: Doors) -> None:
        assert certified.found("subject", ask({"type": "user"}, "write", ARCHIVED)) == ["bob"]

    def test_resources(self, certified: Doors) -> None:
        assert certified.found("resource", ask(ADMIN, "write", {"type": "record"})) == ["record-2"]

    def test_actions(self, certified: Doors) -> None:
        assert "write" in certified.found("action", {"subject": ADMIN, "resource": ARCHIVED})


def test_discovery(certified: Doors, settings: Any) -> None:
    base = "https://gate.example.org"
    private = Ed25519PrivateKey.generate()
    settings.PUBLIC_URL = base
    settings.METADATA_KEY = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    answer = read()
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    document = answer.json()
    assert document["policy_decision_point"] == base
    endpoints = [address for name, address in document.items() if name.endswith("_endpoint")]
    assert len(endpoints) == 6
    assert all(urlsplit(address).scheme == "https" and not urlsplit(address).query for address in endpoints)
    assert all(isinstance(urn, str) for urn in document.get("capabilities", []))
    claims = claims_of(document["signed_metadata"], private.public_key())
    assert claims == {"iss": base, **{name: value for name, value in document.items() if name != "signed_metadata"}}


def test_answers_of_the_profile_are_on_record_as_what_they_are(certified: Doors) -> None:
    context = certified.send("evaluation", GOOD).json()["context"]
    row = Decision.objects.get(uid=context["evaluation_id"])
    assert (row.allowed, row.conformance, row.grant, row.subject_version) == (True, True, None, None)
    # A client that asks before it writes denies an answer that does not say until when it holds.
    assert "valid_until" not in context
