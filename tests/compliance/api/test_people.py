"""People over the API: who I am, who there is, and roles given and ended by administrators."""

from compliance.models import RoleMembership
from compliance.vocabulary import Role
from tests.compliance.api.callers import as_person, as_token, post
from tests.support import signing


def test_everybody_learns_who_she_is(land: signing.Ground) -> None:
    shown = as_person(land.owner).get("me").json()
    assert (shown["person"], shown["name"], shown["team"]) == (str(land.owner.person_id), "Olga Owner", "hr")
    assert [role["role"] for role in shown["roles"]] == ["system_owner"]
    assert (shown["has_second_factor"], shown["signing_on_hold"], shown["scopes"]) == (True, False, None)
    assert as_token(land.owner, "read:hr-prod").get("me").json()["scopes"] == ["read:hr-prod"]


def test_auditors_and_administrators_list_people_and_nobody_else_does(land: signing.Ground) -> None:
    for role in (Role.AUDITOR, Role.ADMINISTRATOR):
        account = signing.human(f"Ada {role}", role)
        found = as_person(account).get("people", {"role": "security"}).json()["results"]
        assert [row["name"] for row in found] == ["Sven Security"]
        assert as_token(account, "read").get("people").status_code == 403
    for account in (land.asker, land.owner, land.security):
        assert as_person(account).get("people").status_code == 403


def test_people_are_paged_over_their_first_account(land: signing.Ground) -> None:
    ada = as_person(signing.human("Ada", Role.AUDITOR))
    first = ada.get("people", {"page_size": "3"}).json()
    rest = ada.get(first["next"].partition("/v1/")[2]).json()
    names = [row["name"] for row in first["results"] + rest["results"]]
    assert len(names) == len(set(names)) >= 4


def test_an_administrator_gives_and_ends_roles_but_never_her_own(land: signing.Ground) -> None:
    root = signing.human("Root", Role.ADMINISTRATOR)
    admin, path = as_person(root), f"people/{land.asker.person_id}/roles"
    for body, field in (
        ({"role": "king"}, "role"),
        ({"role": "security", "team": "nobody"}, "team"),
        ({"role": "security", "ends_at": "2027-01-01T00:00:00"}, "ends_at"),
        ({"rool": "security"}, "rool"),
    ):
        assert post(admin, path, body).json()["problems"][0]["field"] == field
    for _ in range(2):
        given = post(admin, path, {"role": "security", "team": "hr"}, Idempotency_Key="r")
        assert (given.status_code, given.json()["team"], given.json()["given_by"]) == (201, "hr", f"person:{root.person_id}")
    number = given.json()["number"]
    assert post(admin, path, {"role": "security", "team": "hr"}).json()["code"] == "role_held"
    assert post(admin, f"people/{root.person_id}/roles", {"role": "security"}).json()["code"] == "own_role_refused"
    assert post(admin, f"people/{land.owner.person_id}/roles/{number}/end", {"reason": "x"}).status_code == 404
    for _ in range(2):
        ended = post(admin, f"{path}/{number}/end", {"reason": "moved on"}, Idempotency_Key="e")
        assert ended.status_code == 200, ended.content
    assert RoleMembership.objects.get(pk=number).ends_at is not None
    assert post(admin, f"{path}/{number}/end", {"reason": "moved on"}).json()["code"] == "role_ended"
    for other in (as_person(land.security), as_person(signing.human("Ada", Role.AUDITOR)), as_token(root, "request", "read")):
        assert post(other, path, {"role": "security"}).status_code == 403
