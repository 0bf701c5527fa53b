"""Names over the API: which wait, what saying whom one means would touch, and a person's word for it."""

from typing import Any

import pytest

from compliance.vocabulary import Role
from evaluations.models import AliasAssignment, Evidence
from tests.compliance.api.callers import as_person, as_token, post
from tests.compliance.api.world import Api
from tests.support import signing, world

pytestmark = pytest.mark.django_db
NAME = "azure/model-a (high)"


@pytest.fixture
def steward(land: signing.Ground) -> Api:
    world.submit(world.submission(NAME))
    return as_person(signing.human("Stella Steward", Role.EVIDENCE_STEWARD))


def shown(api: Api, **query: str) -> Any:
    return api.get("names/one", {"name": NAME, **query}).json()


def test_a_name_that_waits_is_listed_with_what_waits(steward: Api) -> None:
    (row,) = steward.get("names").json()["results"]
    newest = str(Evidence.objects.get(subject_as_written=NAME).uid)
    assert (row["name"], row["evidence"], row["asked"], row["sources"], row["newest"]) == (NAME, 1, 1, ["lab"], newest)


def test_pages_follow_each_other(steward: Api) -> None:
    for name in ("b", "c"):
        world.submit(world.submission(name))
    first = steward.get("names", {"page_size": 2}).json()
    second = steward.client.get(first["next"], headers=steward.headers).json()
    assert [row["name"] for row in (*first["results"], *second["results"])] == ["c", "b", NAME]
    assert second["next"] is None


def test_what_it_may_mean_and_what_that_touches_is_shown_before(steward: Api, land: signing.Ground) -> None:
    grant = signing.granted(land)
    about = shown(steward, means="model-a")
    (suggested,) = about["suggestions"]
    assert (suggested["means"], suggested["way"]) == ("model-a@1", "same_but_parts")
    assert [each["part"] for each in suggested["differs"]] == ["effort", "provider"]
    assert (about["means"], about["landing"], about["waiting"], about["now"]) == ("model-a@1", 1, 1, [])
    assert about["grants_touched"] == 1
    # She sees that there is one; which, only whoever may see it.
    assert about["grants"] == []
    security = shown(as_person(land.security), means="model-a")
    assert [each["uid"] for each in security["grants"]] == [str(grant.uid)]
    assert {row["subject_version"] for row in about["verdicts"]} == {"model-a@1"}


def test_a_steward_says_so_and_it_waits_no_more(steward: Api) -> None:
    seen = shown(steward, means="model-a")["digest"]
    answer = post(steward, "names", {"name": NAME, "means": "model-a@1", "seen": seen})
    assert (answer.status_code, answer.json()["means"]) == (201, "model-a@1")
    assert steward.get("names").json()["results"] == []
    assert steward.client.get(answer.headers["Location"], headers=steward.headers).json()["now"][0]["means"] == "model-a@1"


def test_null_says_that_it_means_nobody(steward: Api) -> None:
    body = {"name": NAME, "means": None, "seen": shown(steward)["digest"]}
    assert post(steward, "names", body).status_code == 400
    answer = post(steward, "names", {**body, "reason": "not ours"})
    assert (answer.status_code, answer.json()["means"]) == (201, None)


def test_what_was_shown_before_something_came_is_refused(steward: Api) -> None:
    seen = shown(steward, means="model-a")["digest"]
    world.submit(world.submission(NAME, world.observation("11")))
    answer = post(steward, "names", {"name": NAME, "means": "model-a", "seen": seen})
    assert (answer.status_code, answer.json()["code"]) == (409, "name_moved")
    assert not AliasAssignment.objects.filter(name_as_written=NAME).exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [({"means": "nobody-here"}, "means"), ({"source": "nowhere"}, "source"), ({"name": "mod\u0435l"}, "name_as_written")],
)
def test_what_is_unknown_is_refused_with_its_field(steward: Api, change: dict[str, str], field: str) -> None:
    body = {"name": NAME, "means": "model-a", "seen": shown(steward, means="model-a")["digest"], **change}
    if "name" in change:
        body["seen"] = steward.get("names/one", {"name": change["name"], "means": "model-a"}).json()["digest"]
    answer = post(steward, "names", body)
    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (400, field)


def test_no_token_says_it_whatever_its_scopes(steward: Api, land: signing.Ground) -> None:
    machine = as_token(signing.human("Stig Steward", Role.EVIDENCE_STEWARD), "read", "submit_evidence")
    seen = shown(machine, means="model-a")["digest"]
    assert post(machine, "names", {"name": NAME, "means": "model-a", "seen": seen}).status_code == 403
    assert post(as_person(land.asker), "names", {"name": NAME, "means": "model-a", "seen": seen}).status_code == 403
