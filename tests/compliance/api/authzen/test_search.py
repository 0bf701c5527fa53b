"""Search on real grants: what is found is what `decide` allows, to the token that asks, each once, by pages."""

from typing import Any

import pytest

from compliance.models import Decision, Grant
from compliance.services.stopping import suspend_grant
from evaluations.services.subjects import register_subject, register_subject_version
from policies.models import System
from policies.services.systems import register_system
from tests.compliance.api.authzen.doors import Doors, question
from tests.support import signing, world
from tests.support.asking import ask_token
from tests.support.crowds import crowd, grant_more


def seek(**page: Any) -> dict[str, Any]:
    """Return a search for subjects of any kind."""
    return {**question(kind="subject"), **({"page": page} if page else {})}


def walk(doors: Doors, sought: str, body: dict[str, Any], **page: Any) -> list[list[str]]:
    """Return the names of every page of a search."""
    pages: list[list[str]] = []
    token = ""
    while True:
        given = {"token": token} if token else page
        answer = doors.send(f"search/{sought}", {**body, "page": given})
        assert answer.status_code == 200, answer.content
        found = answer.json()
        assert found["page"]["count"] == len(found["results"])
        pages.append([one.get("id", one.get("name")) for one in found["results"]])
        token = found["page"]["next_token"]
        if not token:
            return pages


@pytest.fixture
def other(granted: signing.Ground) -> System:
    """A second system, for which nobody has a grant."""
    return register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")


class TestWhatIsFound:
    def test_each_of_the_three_finds_a_grant_and_records_nothing(self, doors: Doors, other: System) -> None:
        assert doors.send("search/subject", question()).json()["results"] == [{"type": "model", "id": "model-a"}]
        assert doors.send("search/resource", question()).json()["results"] == [{"type": "system", "id": "hr-prod"}]
        assert doors.send("search/action", question()).json()["results"] == [{"name": "write"}]
        assert doors.found("subject", question(system="it-prod")) == []
        assert doors.found("action", question(system="it-prod")) == []
        assert not Decision.objects.exists()

    def test_what_is_denied_is_not_found(self, doors: Doors, granted: signing.Ground) -> None:
        assert doors.found("subject", question(action="delete")) == []
        suspend_grant(actor=signing.actor_of(granted.security), grant=Grant.objects.get(), reason="looking into it")
        for sought in ("subject", "resource", "action"):
            assert doors.found(sought, question()) == []

    def test_a_grant_that_is_recorded_as_active_is_judged_all_the_same(self, doors: Doors, granted: signing.Ground) -> None:
        register_subject_version(actor=world.ACTOR, subject=granted.version.subject, pin={"snapshot": "another"})
        assert Grant.objects.filter(status="active").exists()
        for sought in ("subject", "resource", "action"):
            assert doors.found(sought, question()) == []

    def test_the_type_is_the_one_that_was_asked_for(self, doors: Doors) -> None:
        assert doors.send("search/subject", question(kind="subject")).json()["results"] == [{"type": "subject", "id": "model-a"}]
        for kind in ("agent", "route", "alias", "spaceship"):
            assert doors.found("subject", question(kind=kind)) == [], kind
        assert doors.found("resource", {**question(), "resource": {"type": "spaceship"}}) == []

    def test_an_unknown_id_finds_nothing(self, doors: Doors) -> None:
        assert doors.found("subject", question(system="nowhere")) == []
        assert doors.found("resource", question("nobody")) == []
        assert doors.found("action", question("nobody")) == []
        assert doors.found("action", question(system="nowhere")) == []
        assert doors.found("action", question("a\x00b")) == []

    def test_a_version_that_does_not_run_is_found_by_its_number(self, doors: Doors, granted: signing.Ground) -> None:
        (first,) = crowd(1, granted.system, granted.asker.person)
        second = register_subject_version(actor=world.ACTOR, subject=first.subject, pin={"snapshot": "2"})
        grant_more(first, granted.system, granted.asker.person)
        # Signed for the first while the second runs, it holds for the first.
        assert doors.decide(question("crowd-0@1")) is True
        assert doors.found("subject", seek()) == ["model-a", "crowd-0@1"]
        grant_more(second, granted.system, granted.asker.person)
        assert doors.found("subject", seek()) == ["model-a", "crowd-0@1", "crowd-0"]

    def test_a_route_is_found_by_the_grants_of_its_members(self, doors: Doors, granted: signing.Ground, other: System) -> None:
        (second,) = crowd(1, granted.system, granted.asker.person)
        (elsewhere,) = crowd(1, other, granted.asker.person, prefix="elsewhere")
        for key, members in (("both", [granted.version, second]), ("mixed", [granted.version, elsewhere])):
            subject = register_subject(actor=world.ACTOR, key=key, kind="route")
            register_subject_version(actor=world.ACTOR, subject=subject, pin={}, members=members)
        assert doors.decide(question("both", kind="route")) is True
        assert doors.found("subject", question(kind="route")) == ["both"]
        assert doors.found("subject", seek()) == ["model-a", "crowd-0", "both"]
        assert doors.found("resource", question("both", kind="route")) == ["hr-prod"]
        assert doors.found("action", question("both", kind="route")) == ["write"]
        assert doors.found("resource", question("mixed", kind="route")) == []
        # A new version of it reaches further, and the one before runs no more.
        register_subject_version(
            actor=world.ACTOR, subject=subject.__class__.objects.get(key="both"), pin={}, members=[elsewhere]
        )
        assert doors.found("subject", question(kind="route")) == []

    def test_two_grants_of_one_subject_are_one_result(self, doors: Doors, granted: signing.Ground) -> None:
        signing.granted(granted, days=10)
        assert Grant.objects.filter(status="active").count() == 2
        assert walk(doors, "subject", seek(), limit=1) == [["model-a"]]

    def test_everything_that_is_found_is_allowed(self, doors: Doors, granted: signing.Ground, other: System) -> None:
        crowd(5, other, granted.asker.person)
        for system in ("hr-prod", "it-prod"):
            for name in doors.found("subject", question(system=system, kind="subject")):
                assert doors.decide(question(name, system, kind="subject")) is True


class TestCaseO28:
    """A token for one system sees nothing of the others, in no search, page or count."""

    def test_by_every_search(self, granted: signing.Ground, other: System) -> None:
        crowd(3, other, granted.asker.person, prefix="it")
        crowd(1, granted.system, granted.asker.person, prefix="hr")
        wide, narrow = Doors(ask_token(granted.asker)), Doors(ask_token(granted.asker, "decide:hr-prod"))
        assert len(wide.found("subject", question(system="it-prod"))) == 3
        assert narrow.found("subject", question(system="it-prod")) == []
        assert narrow.found("subject", question()) == wide.found("subject", question()) == ["model-a", "hr-0"]
        assert (wide.found("resource", question("it-0")), narrow.found("resource", question("it-0"))) == (["it-prod"], [])
        assert (wide.found("action", question("it-0", "it-prod")), narrow.found("action", question("it-0", "it-prod"))) == (
            ["write"],
            [],
        )

    def test_a_page_of_one_token_is_not_another_s(self, granted: signing.Ground) -> None:
        crowd(3, granted.system, granted.asker.person)
        wide, narrow = Doors(ask_token(granted.asker)), Doors(ask_token(granted.asker, "decide:it-prod"))
        token = wide.send("search/subject", seek(limit=1)).json()["page"]["next_token"]
        assert narrow.send("search/subject", seek(token=token)).status_code == 400

    def test_without_the_scope_nothing_is_searched(self, granted: signing.Ground) -> None:
        for sought in ("subject", "resource", "action"):
            assert Doors(ask_token(granted.asker, "read")).send(f"search/{sought}", question()).status_code == 403
            assert Doors("wg_nobody").send(f"search/{sought}", question()).status_code == 401


class TestPages:
    def test_case_o29_of_120_each_is_seen_once_while_30_more_come(self, doors: Doors, granted: signing.Ground) -> None:
        crowd(119, granted.system, granted.asker.person)
        seen: list[str] = []
        page: dict[str, Any] = {"limit": 50}
        sizes = []
        while True:
            found = doors.send("search/subject", seek(**page)).json()
            seen += [one["id"] for one in found["results"]]
            sizes.append(found["page"]["count"])
            if len(sizes) <= 2:
                crowd(15, granted.system, granted.asker.person, prefix=f"later-{len(sizes)}")
            if not found["page"]["next_token"]:
                break
            page = {"token": found["page"]["next_token"]}
        assert len(seen) == len(set(seen))
        assert seen[:120] == ["model-a", *(f"crowd-{number}" for number in range(119))]
        assert set(seen[120:]) == {f"later-{time}-{number}" for time in (1, 2) for number in range(15)}
        assert sizes == [50, 50, 50]

    def test_a_page_ends_where_it_has_looked_far_and_the_next_goes_on(
        self, doors: Doors, granted: signing.Ground, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        crowd(30, granted.system, granted.asker.person, kind="agent")
        crowd(2, granted.system, granted.asker.person, prefix="last")
        monkeypatch.setattr("compliance.selectors.deciding.candidates.SPAN", 5)
        monkeypatch.setattr("compliance.services.searches.MOST_LOOKS", 2)
        pages = walk(doors, "subject", question(), limit=10)
        assert [name for page in pages for name in page] == ["model-a", "last-0", "last-1"]
        assert len(pages) >= 4

    def test_systems_come_by_pages_too(self, doors: Doors, granted: signing.Ground) -> None:
        (version,) = crowd(1, granted.system, granted.asker.person)
        for number in range(4):
            system = register_system(actor=world.ACTOR, key=f"hr-{number}", title="HR", domain="hr", owner="hr")
            grant_more(version, system, granted.asker.person)
        pages = walk(doors, "resource", question("crowd-0"), limit=2)
        assert pages == [["hr-prod", "hr-0"], ["hr-1", "hr-2"], ["hr-3"]]

    def test_nothing_is_a_page_and_says_whether_there_is_more(self, doors: Doors) -> None:
        empty = doors.send("search/subject", seek(limit=0)).json()
        assert (empty["results"], empty["page"]["count"]) == ([], 0)
        assert empty["page"]["next_token"]
        nothing = doors.send("search/subject", {**question(system="nowhere"), "page": {"limit": 0}}).json()
        assert nothing == {"results": [], "page": {"next_token": "", "count": 0}}

    def test_a_token_holds_to_what_was_asked(self, doors: Doors, granted: signing.Ground) -> None:
        crowd(3, granted.system, granted.asker.person)
        token = doors.send("search/subject", seek(limit=1)).json()["page"]["next_token"]

        def follow(sought: str = "subject", limit: Any = None, **changed: Any) -> int:
            page = {"token": token} if limit is None else {"token": token, "limit": limit}
            return doors.send(f"search/{sought}", {**seek(), **changed, "page": page}).status_code

        assert follow() == 200
        assert follow(limit=1) == 200
        assert follow(context={"other": 1}, foo="bar") == 200
        assert follow(limit=2) == 400
        assert follow(action={"name": "delete"}) == 400
        assert follow(subject={"type": "model"}) == 400
        assert follow(resource={"type": "system", "id": "it-prod"}) == 400
        assert follow("resource") == 400
        assert follow("action") == 400

    @pytest.mark.parametrize(
        "page",
        [
            {"limit": -1},
            {"limit": 1_001},
            {"limit": "1"},
            {"limit": True},
            {"limit": 1.5},
            {"token": 1},
            {"token": "x"},
            {"token": ".eJw:x:y"},
            {"token": "é" * 10},
            {"token": "x" * 5_000},
            [],
            "next",
        ],
    )
    def test_a_page_that_is_none_is_400(self, doors: Doors, page: Any) -> None:
        assert doors.send("search/subject", {**seek(), "page": page}).status_code == 400

    def test_an_old_token_is_400(self, doors: Doors, granted: signing.Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        crowd(3, granted.system, granted.asker.person)
        token = doors.send("search/subject", seek(limit=1)).json()["page"]["next_token"]
        monkeypatch.setattr("compliance.api.authzen.search.TOKEN_SECONDS", -1)
        answer = doors.send("search/subject", seek(token=token))
        assert (answer.status_code, "too old" in answer.content.decode()) == (400, True)


def test_a_page_over_many_grants_takes_a_bounded_number_of_statements(
    doors: Doors, granted: signing.Ground, django_assert_max_num_queries: Any
) -> None:
    crowd(150, granted.system, granted.asker.person)
    doors.found("subject", seek())
    with django_assert_max_num_queries(6):
        assert len(doors.found("subject", seek(limit=100))) == 100
