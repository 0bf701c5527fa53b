"""A subject's page: what was measured, refusal against harm, verdicts over time, and the grants that rest on it."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from evaluations.models import Subject
from policies.models import PolicyVersion
from tests.compliance.admin.world import World


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
    monkeypatch.setattr("policies.admin.comparing.policy_pairs", list)
    html = section(page_of(console, "clears"), "Refusal against harm")
    assert "says little about harm" in html
    assert "<svg" not in html
