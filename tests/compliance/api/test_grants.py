"""Grants over the API: who could write when, and the ways of one person to take access away."""

from compliance.models import Grant, LedgerEntry
from compliance.vocabulary import Role
from evaluations.kernel.clock import now
from policies.services.systems import register_system
from tests.compliance.api.callers import as_person, as_token, post
from tests.support import signing, world

JUSTIFICATION = "payroll is down and nobody else can repair it"


def test_a_grant_is_shown_with_how_it_stands_and_every_move(land: signing.Ground) -> None:
    grant = signing.granted(land)
    owner = as_person(land.owner)
    answer = owner.get(f"grants/{grant.uid}")
    shown = answer.json()
    assert (shown["status"], shown["usable"], shown["cause"], shown["systems"]) == ("active", True, "signed", ["hr-prod"])
    assert (shown["subject_version"], shown["request"]) == ("model-a@1", str(grant.request.uid))
    assert [(event["move"], event["dossier_digest"]) for event in shown["events"]] == [("made", grant.dossier.digest)]
    assert answer.headers["ETag"].startswith('"sha256:')
    (listed,) = owner.get("grants").json()["results"]
    assert listed == {member: value for member, value in shown.items() if member != "events"}


def test_who_could_write_then_is_answered_from_what_was_recorded(land: signing.Ground) -> None:
    before = now()
    grant = signing.granted(land)
    owner = as_person(land.owner)

    def then(moment: object, system: str = "hr-prod") -> list[str]:
        rows = owner.get("grants", {"system": system, "at": moment.isoformat().replace("+00:00", "Z")}).json()["results"]
        return [row["uid"] for row in rows]

    assert then(before) == []
    assert then(now()) == [str(grant.uid)]
    assert then(now(), "it-prod") == []
    tag = owner.get(f"grants/{grant.uid}").headers["ETag"]
    between = now()
    assert post(owner, f"grants/{grant.uid}/suspend", {"reason": "look again"}, If_Match=tag).status_code == 200
    assert (then(between), then(now())) == ([str(grant.uid)], [])
    refused = owner.get("grants", {"at": "2026-09-01"})
    assert (refused.status_code, refused.json()["problems"][0]["field"]) == (400, "at")


def test_a_grant_is_taken_away_once_by_whoever_saw_it(land: signing.Ground) -> None:
    grant = signing.granted(land)
    owner, path = as_person(land.owner), f"grants/{grant.uid}"
    tag = owner.get(path).headers["ETag"]
    assert post(owner, f"{path}/suspend", {"reason": "x"}).status_code == 428
    assert post(owner, f"{path}/suspend", {}, If_Match=tag).status_code == 400
    for _ in range(2):
        done = post(owner, f"{path}/suspend", {"reason": "x"}, If_Match=tag, Idempotency_Key="g")
        assert (done.status_code, done.json()["status"]) == (200, "suspended"), done.content
    assert post(owner, f"{path}/revoke", {"reason": "x"}, If_Match=tag).status_code == 412
    asker = as_person(land.asker)
    assert post(asker, f"{path}/suspend", {"reason": "x"}, If_Match=done.headers["ETag"]).json()["code"] == "may_not_close"
    ended = post(asker, f"{path}/revoke", {"reason": "not needed"}, If_Match=done.headers["ETag"])
    assert (ended.status_code, ended.json()["status"]) == (200, "revoked")
    assert [event["move"] for event in ended.json()["events"]] == ["made", "suspended", "revoked"]
    assert LedgerEntry.objects.filter(action="grant.suspended").count() == 1


def test_what_one_may_not_see_is_not_there(land: signing.Ground) -> None:
    grant = signing.granted(land)
    stranger = as_person(signing.human("Otto Other", Role.REQUESTER, Role.SYSTEM_OWNER, team="elsewhere"))
    assert stranger.get(f"grants/{grant.uid}").status_code == 404
    for act in ("suspend", "revoke"):
        assert post(stranger, f"grants/{grant.uid}/{act}", {"reason": "x"}, If_Match='"x"').status_code == 404
    for query in ({}, {"system": "hr-prod"}, {"subject": "model-a"}, {"status": "active"}, {"at": "2026-12-01T00:00:00Z"}):
        assert stranger.get("grants", query).json()["results"] == []
    assert stranger.get("grants/stop", {"scope": "system", "key": "hr-prod"}).json() == {"count": 0}
    assert as_token(land.security, "read:it-prod").get("grants").json()["results"] == []
    assert len(as_token(land.security, "read:hr-prod").get("grants").json()["results"]) == 1


def test_the_stop_button_is_pulled_by_one_person_and_by_no_token(land: signing.Ground) -> None:
    grant = signing.granted(land)
    security = as_person(land.security)
    order = {"scope": "system", "key": "hr-prod", "reason": "it writes nonsense"}
    assert security.get("grants/stop", {"scope": "system", "key": "hr-prod"}).json() == {"count": 1}
    assert security.get("grants/stop", {"scope": "system", "key": "hr-prot"}).status_code == 400
    assert security.get("grants/stop").status_code == 400
    refused = post(as_token(land.security, "request", "read"), "grants/stop", order)
    assert (refused.status_code, refused.json()["code"]) == (403, "person_needed")
    assert post(as_person(land.asker), "grants/stop", order).json()["code"] == "may_not_close"
    assert post(security, "grants/stop", {**order, "scop": "x"}).status_code == 400
    for _ in range(2):
        done = post(security, "grants/stop", order, Idempotency_Key="stop")
        assert (done.status_code, done.json()) == (200, {"count": 1, "grants": [str(grant.uid)]})
    assert security.get(f"grants/{grant.uid}").json()["cause"] == "stopped"
    assert security.get("grants/stop", {"scope": "all"}).json() == {"count": 0}


def test_break_glass_is_opened_by_a_person_and_its_review_is_asked_for(land: signing.Ground) -> None:
    body = {"subject": "model-a", "systems": ["hr-prod"], "actions": ["write"], "justification": JUSTIFICATION, "minutes": 30}
    assert post(as_token(land.security, "request"), "grants/break-glass", body).json()["code"] == "person_needed"
    assert post(as_person(land.asker), "grants/break-glass", body).json()["code"] == "may_not_open"
    security = as_person(land.security)
    assert post(security, "grants/break-glass", {**body, "systems": ["hr-prot"]}).json()["problems"][0]["field"] == "systems[0]"
    made = post(security, "grants/break-glass", body, Idempotency_Key="b")
    assert made.status_code == 201, made.content
    assert (made.json()["kind"], made.json()["status"]) == ("break_glass", "active")
    again = post(security, "grants/break-glass", body, Idempotency_Key="b")
    assert again.json()["uid"] == made.json()["uid"]
    assert Grant.objects.count() == 1
    (review,) = security.get("requests", {"kind": "break_glass_review"}).json()["results"]
    assert review["grant"] == made.json()["uid"]


def test_a_system_owner_sees_only_grants_that_reach_her_systems(land: signing.Ground) -> None:
    register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    signing.granted(land)
    olga = signing.human("Olga Two", Role.SYSTEM_OWNER, team="it")
    assert as_person(olga).get("grants").json()["results"] == []
    assert as_person(signing.human("Ada", Role.AUDITOR)).get("grants").json()["results"] != []
