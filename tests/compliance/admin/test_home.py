"""The first page: the fleet against the policies, or what to do first."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.selectors.fleet import read_fleet
from evaluations.kernel.actor import system_job
from evaluations.kernel.services import service_transaction
from evaluations.services.subjects import apply_register_subject, apply_register_subject_version
from policies.services.verdicts import judge_subject_versions
from tests.compliance.admin.world import RESULTS, World, build_person
from tests.support.world import activate

HOME = reverse("admin:index")


def text_of(console: Client, **query: str) -> str:
    html = console.get(HOME, query).content.decode()
    return " ".join(strip_tags(html[html.index("<main") : html.index("</main>")]).split())


def order_of(console: Client, **query: str) -> list[str]:
    html = console.get(HOME, query).content.decode()
    return re.findall(r'<th scope="row"[^>]*><a[^>]*>([^<]+)</a>', html)


@pytest.mark.django_db
def test_an_empty_system_shows_the_three_first_steps() -> None:
    console = Client()
    console.force_login(build_person())
    text = text_of(console)
    for command in ("quickstart", "import_evidence", "gate --policy"):
        assert f"manage.py {command}" in text


def test_each_chip_leads_to_the_verdict_that_stands(world: World, console: Client) -> None:
    html = console.get(HOME).content.decode()
    for subject in RESULTS:
        for policy in ("gate-for-tests", "strict-for-tests"):
            page = reverse("admin:policies_verdict_change", args=[world.verdict(subject, policy).pk])
            assert f'href="{page}"' in html
            assert console.get(page).status_code == 200
    text = text_of(console)
    assert "2 of 6 pass" not in text
    assert "1 of 6 pass" in text
    assert "in HR" in text
    assert "N/A" not in text


def test_until_a_policy_is_in_force_the_way_there_is_shown(world: World, console: Client) -> None:
    assert "no policy is in force" in text_of(console)
    activate(world.verdict("clears").policy_version)
    assert "no policy is in force" not in text_of(console)


def test_the_matrix_can_be_read_by_what_is_nearest_to_its_edge(world: World, console: Client) -> None:
    assert order_of(console) == sorted([*RESULTS, "gone-stale", "hr-agent"])
    by_edge = order_of(console, order="edge")
    assert by_edge[0] == "gone-stale"
    assert "0.0005 %" in text_of(console)
    assert set(by_edge[-2:]) == {"in-dispute", "nobody-measured"}
    assert order_of(console, order="nonsense") == order_of(console)


def test_home_takes_a_handful_of_queries_however_many_candidates(world: World, console: Client) -> None:
    def count() -> int:
        console.get(HOME)
        with CaptureQueriesContext(connection) as queries:
            assert console.get(HOME).status_code == 200
        return len(queries)

    few = count()
    with service_transaction("tests"):
        for number in range(60):
            subject = apply_register_subject(actor=system_job("tests"), key=f"model-{number:03}", kind="model", candidate=True)
            apply_register_subject_version(actor=system_job("tests"), subject=subject, pin={"snapshot": str(number)})
    assert few == count() == 16
    assert "Page 1 of 2" in text_of(console)
    assert "Page 2 of 2" in text_of(console, p="2")
    assert "not judged yet" in text_of(console, p="2")


def test_a_subject_s_newest_version_is_the_one_shown(world: World, console: Client) -> None:
    with service_transaction("tests"):
        newer = apply_register_subject_version(
            actor=system_job("tests"), subject=world.versions["clears"].subject, pin={"snapshot": "2026-11-01"}
        )
    row = next(row for row in read_fleet().rows if row.version.subject.key == "clears")
    assert row.version.pk == newer.pk
    assert row.places == ((), ())


def test_several_domains_are_gathered_under_one_chip_a_result(world: World, console: Client) -> None:
    policy_version = world.verdict("clears", "strict-for-tests").policy_version
    judge_subject_versions(
        actor=system_job("tests"), policy_version=policy_version, versions=[world.versions["nobody-measured"]], domain="email"
    )
    text = text_of(console)
    assert "in 2 domains" in text
    html = console.get(HOME).content.decode()
    every = re.search(r'href="([^"]*policies/standing/\?[^"]*)"', html)
    assert every
    assert console.get(every[1].replace("&amp;", "&")).context["cl"].result_count == 2


def test_the_version_in_force_is_shown_before_a_newer_one(world: World, console: Client) -> None:
    assert "not active" in text_of(console)
    version = world.verdict("clears").policy_version
    activate(version)
    assert "v1, active" in text_of(console)
