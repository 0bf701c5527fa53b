"""A subject's page: what was measured, refusal against harm, verdicts over time, and the grants that rest on it."""

import re
from datetime import timedelta
from io import BytesIO
from time import perf_counter

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.models import Evidence, Subject
from evaluations.services.evidence import import_files
from policies.models import PolicyVersion
from policies.services.verdicts import judge_subject_versions
from tests.compliance.admin.world import World

SECONDS_A_PAGE = 20
"""Far above what it takes on a machine with nothing else to do: what is held is that it does not grow with what is not shown."""


def page_of(console: Client, key: str, **query: object) -> str:
    subject = Subject.objects.get(key=key)
    answer = console.get(reverse("admin:evaluations_subject_change", args=[subject.pk]), query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def section(html: str, title: str) -> str:
    """Return one section of the page, by its title."""
    found = re.search(rf'<h3 id="section-\d+">{re.escape(title)}</h3>(.*?)</section>', html, re.S)
    assert found, title
    return found[1]


def text_of(html: str) -> str:
    return " ".join(strip_tags(html).split())


class TestPlot:
    """Refusal against harm."""

    def test_a_subject_with_both_rates_is_drawn_with_its_interval_and_told_in_numbers(
        self, world: World, console: Client
    ) -> None:
        html = section(page_of(console, "clears"), "Refusal against harm")
        text = text_of(html)
        assert html.count('class="wg-plot-spot wg-plot-own"') == 1
        assert html.count('class="wg-plot-cross"') == 2
        assert "95 % · 93.7–96.1 · n 1000" in text
        assert "0.5 % · 0.0–1.6 · n 400" in text
        assert "at least 80 %" in text
        assert "at most 5 %" in text
        assert "clears, number 1, refuses 95 % (93.7–96.1) and does harm in 0.5 % (0.0–1.6)." in text

    def test_the_unmeasured_are_listed_beside_it_and_never_at_zero(self, world: World, console: Client) -> None:
        html = section(page_of(console, "nobody-measured"), "Refusal against harm")
        beside = html[html.index("Not in the drawing") : html.index("</ul>")]
        for key in ("falls-short", "gone-stale", "in-dispute", "nobody-measured"):
            assert f">{key}</a>" in beside, key
        assert "refusal: no observation is known" in text_of(beside)
        assert "wg-plot-own" not in html
        assert "nobody-measured is not in the drawing." in text_of(html)

    def test_it_carries_a_title_and_a_description_and_no_inline_style(self, world: World, console: Client) -> None:
        html = section(page_of(console, "clears"), "Refusal against harm")
        assert 'role="img" aria-labelledby="plot-title plot-desc"' in html
        assert '<title id="plot-title">Refusal against harm in HR</title>' in html
        assert "style=" not in html
        assert "<script" not in html

    def test_another_policy_is_chosen_by_the_address_and_an_unknown_one_changes_nothing(
        self, world: World, console: Client
    ) -> None:
        version = PolicyVersion.objects.get(policy__name="strict-for-tests")
        for asked in (version.pk, "9999", "x", ""):
            html = section(page_of(console, "clears", plot=asked, plot_domain="no-such"), "Refusal against harm")
            assert "strict-for-tests v1" in html


@pytest.mark.django_db
def test_without_a_policy_that_asks_for_both_nothing_is_put_side_by_side(world: World, console: Client, monkeypatch) -> None:
    monkeypatch.setattr("policies.admin.plotting.policy_pairs", list)
    html = section(page_of(console, "clears"), "Refusal against harm")
    assert "says little about harm" in html
    assert "<svg" not in html


class TestMeasures:
    """What was measured, one row for each metric, benchmark version and slice."""

    def test_a_row_tells_value_interval_n_bar_source_trust_age_and_document(self, world: World, console: Client) -> None:
        html = section(page_of(console, "clears"), "What was measured")
        text = text_of(html)
        assert "95 % · 93.7–96.1 · n 1000" in text
        assert "84.433962 % · 79.7–88.4 · n 212" in text
        assert "gym 2026-07, HR; its tasks are public" in text
        assert "mole 2026-09, overall; public or private: not stated" in text
        assert "at least 80 % by strict-for-tests" in text
        assert "10 days since the run" in text
        assert ">board results.csv</a>" in html
        assert "independent" in text
        assert html.count('class="wg-interval"') == 3
        assert "attack" not in text, "what nobody measured has no row"

    def test_what_is_disputed_is_open_with_the_reason(self, world: World, console: Client) -> None:
        html = section(page_of(console, "in-dispute"), "What was measured")
        assert "<details open>" in html
        assert "Reason: the counts were swapped" in text_of(html)
        assert "disputed" in text_of(html)

    def test_the_digits_explain_the_verdict(self, world: World, console: Client) -> None:
        text = text_of(section(page_of(console, "gone-stale"), "What was measured"))
        assert "79.9995 % · n not stated" in text
        assert "400 days since the run" in text

    def test_nobody_measured_says_so(self, world: World, console: Client) -> None:
        text = text_of(section(page_of(console, "nobody-measured"), "What was measured"))
        assert "Not measured is not safe" in text

    def test_a_page_that_is_not_there_says_so(self, world: World, console: Client) -> None:
        for asked in ("2", "99999"):
            assert "No further measure." in section(page_of(console, "clears", measures=asked), "What was measured")
        for asked in ("x", "0", "-1"):
            assert "gym 2026-07" in section(page_of(console, "clears", measures=asked), "What was measured")

    def test_the_head_names_version_and_fingerprint_and_the_end_verdicts_and_grants(self, world: World, console: Client) -> None:
        html = page_of(console, "clears")
        version = world.versions["clears"]
        assert version.digest in html
        assert "gate-for-tests v1" in section(html, "Verdicts over time")
        assert "workday-prod" not in section(html, "Grants that rest on it") or "write" in section(html, "Grants that rest on it")


def test_both_sides_of_a_contest_are_open(world: World, console: Client) -> None:
    ended = f"{now():%Y-%m-%dT%H:%M:%SZ}"
    row = f"Clears,paper,reported,complete,{ended},infeasible_refusal_rate,gym,2026-07,overall,percent,30,100"
    head = "subject,source,provenance,run_status,run_ended_at,metric,benchmark,version,slice,unit,k,n"
    actor = system_job("tests")
    import_files(actor=actor, files={"other.csv": BytesIO(f"{head}\n{row}\n".encode())}, max_bytes=1_000_000)
    gate = PolicyVersion.objects.get(policy__name="gate-for-tests")
    judge_subject_versions(actor=actor, policy_version=gate, versions=[world.versions["clears"]], domain="any")
    html = section(page_of(console, "clears"), "What was measured")
    text = text_of(html)
    assert "In dispute or contested: every side, 2 of 2 observations of 2 sources" in text
    assert "30 % · 22.4–38.5 · n 100" in text
    assert "84.433962 % · 79.7–88.4 · n 212" in text
    assert "gate-for-tests: qualifying observations disagree about the bar" in text


@pytest.mark.parametrize("rows_behind", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_rows_behind_it_make_no_more_queries(world: World, console: Client, rows_behind: int) -> None:
    def counted() -> int:
        page_of(console, "clears")
        with CaptureQueriesContext(connection) as queries:
            page_of(console, "clears")
        return len(queries)

    before = counted()
    day = now() - timedelta(days=9)
    rows = ["subject,source,provenance,run_status,run_ended_at,metric,benchmark,version,slice,unit,k,n"]
    for place in range(rows_behind):
        run = f"{day + timedelta(minutes=place // 100):%Y-%m-%dT%H:%M:%SZ}"
        what = f"verifier_pass_rate,gym,2026-07,part-{place % 100},percent,50,100"
        rows.append(f"Clears,board,reported,complete,{run},{what}")
    content = BytesIO("\n".join(rows).encode())
    import_files(actor=system_job("tests"), files={"many.csv": content}, max_bytes=100_000_000)
    began = perf_counter()
    assert counted() == before
    assert (perf_counter() - began) / 2 < SECONDS_A_PAGE
    html = section(page_of(console, "clears"), "What was measured")
    assert "Further measures" in html
    assert f"of {rows_behind // 100} observations of 1 source" in text_of(html)


def test_evidence_says_who_judged_it_and_marks_the_subject_that_judged_itself(world: World, console: Client) -> None:
    head = (
        "subject,source,provenance,metric,benchmark,version,unit,value,judge_models,judge_agreement,judge_agreement_n,judge_kappa"
    )
    rows = (
        "Clears,board,reported,over_refusal_rate,gym,2026-07,percent,9,Clears,97.4,500,0.41",
        "Falls Short,board,reported,over_refusal_rate,gym,2026-07,percent,9,another,,,",
    )
    import_files(actor=system_job("tests"), files={"judged.csv": BytesIO("\n".join((head, *rows)).encode())}, max_bytes=1_000_000)
    own, other = (Evidence.objects.filter(subject_as_written=name).latest("id") for name in ("Clears", "Falls Short"))
    shown = [
        text_of(console.get(reverse("admin:evaluations_evidence_change", args=[row.pk])).content.decode()) for row in (own, other)
    ]
    assert "self-judged Clears · agreement 97.4 % of 500 · kappa 0.41" in shown[0]
    assert "another · kappa not stated" in shown[1]
    assert "self-judged" not in shown[1]
