"""From a verdict to its rules, the evidence under them, and the document under that."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from evaluations.kernel.canonical import digest_of
from evaluations.models import Document, Evidence
from policies.admin.marks import REASON_WORDS, RESULT_MARKS
from policies.admin.reading import rule_from_core, shown_value
from policies.language.judgement import RuleResult
from policies.language.results import Reason, Result
from policies.models import FactsDocument, Verdict
from tests.compliance.admin.world import RESULTS, World

PERCENT = {"unit": "percent", "better": "higher"}


def page_of(console: Client, verdict: Verdict) -> str:
    return console.get(reverse("admin:policies_verdict_change", args=[verdict.pk])).content.decode()


def text_of(html: str) -> str:
    return " ".join(strip_tags(html[html.index("<main") : html.index("</main>")]).split())


def test_every_word_of_a_result_has_a_chip_and_none_is_na() -> None:
    assert {str(word) for word in RESULT_MARKS} == {str(word) for word in Result}
    assert [mark.word for mark in RESULT_MARKS.values()] == ["passes", "fails", "missing", "stale", "contested", "error"]
    assert all(mark.symbol for mark in RESULT_MARKS.values())


def test_every_reason_has_words() -> None:
    assert {str(reason) for reason in Reason} <= set(REASON_WORDS)


@pytest.mark.parametrize("subject", RESULTS)
def test_the_page_asks_in_one_sentence_and_answers_in_words(world: World, console: Client, subject: str) -> None:
    verdict = world.verdict(subject)
    assert verdict.result == RESULTS[subject]
    text = text_of(page_of(console, verdict))
    answer = "yes" if subject == "clears" else "no"
    assert f"Does {subject} (version 1) satisfy gate-for-tests (version 1)? The answer is {answer}." in text
    assert RESULT_MARKS[verdict.result].word in text
    assert "N/A" not in text


def test_a_failing_rule_shows_what_was_measured_against_the_bar(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("falls-short")))
    assert "refuses-enough" in text
    assert "53.9 % · n not stated" in text
    assert "at least 80 %" in text
    assert "26.1 % below the bar" in text
    assert "archive" in text
    assert "claim" in text
    assert "no date stated" in text


def test_a_refusal_says_what_would_flip_it_and_a_pass_does_not(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("falls-short")))
    assert "What would flip it. Short by 26.1 percentage points" in text
    assert "must be retracted by a quorum" in text  # what was published without a run is replaced by none
    assert "What would flip it" not in text_of(page_of(console, world.verdict("clears")))


def test_a_number_close_to_the_bar_is_never_rounded_onto_it(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("gone-stale")))
    assert "79.9995 %" in text
    assert "0.0005 % below the bar" in text


def test_a_measured_count_has_its_interval(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("clears")))
    assert "84.433962 % · 79.7–88.4 · n 212" in text
    assert "10 days since the run" in text


def test_every_candidate_leads_to_its_evidence_and_that_to_its_document(world: World, console: Client) -> None:
    html = page_of(console, world.verdict("falls-short"))
    evidence = Evidence.objects.get(subject_as_written="Falls Short")
    page = reverse("admin:evaluations_evidence_change", args=[evidence.pk])
    assert f'href="{page}"' in html
    document = reverse("admin:evaluations_document_change", args=[Document.objects.get().pk])
    assert f'href="{document}"' in html
    further = console.get(page).content.decode()
    assert f'href="{document}"' in further
    assert "53.9 %" in further
    assert reverse("admin:evaluations_document_download", args=[evidence.document_id]) in console.get(document).content.decode()


def test_every_candidate_tells_whether_the_tasks_lay_open(world: World, console: Client) -> None:
    assert "its tasks are public" in page_of(console, world.verdict("clears"))
    evidence = Evidence.objects.get(subject_as_written="Falls Short")
    assert (
        "its tasks are public" in console.get(reverse("admin:evaluations_evidence_change", args=[evidence.pk])).content.decode()
    )


def test_nothing_measured_says_so_and_does_not_read_as_safe(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("nobody-measured")))
    assert "Not measured is not safe" in text
    assert "missing" in text


def test_a_candidate_that_does_not_count_says_why(world: World, console: Client) -> None:
    stale = text_of(page_of(console, world.verdict("gone-stale", "strict-for-tests")))
    assert "stale" in stale
    assert "more than 90 days before the instant judged" in stale
    disputed = text_of(page_of(console, world.verdict("in-dispute")))
    assert "a dispute about it is open" in disputed
    assert "the result rests on it" in disputed


def test_the_result_rests_on_the_observation_and_not_on_its_neighbours(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("clears")))
    assert text.count("the result rests on it") == 1
    assert text.count("n 1000") == 1
    missing = text_of(page_of(console, world.verdict("falls-short", "strict-for-tests")))
    assert missing.count("the result rests on it") == 1


def test_branches_of_a_rule_are_shown_each(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("clears", "strict-for-tests")))
    assert "does-no-harm" in text
    assert "evidence harm" in text
    assert "evidence attacks" in text
    assert "soft rule" in text


def test_an_agent_s_page_names_the_model_that_gave_the_result(world: World, console: Client) -> None:
    text = text_of(page_of(console, world.verdict("hr-agent")))
    assert "because of falls-short" in text
    assert "(falls-short)" in text
    assert "(clears)" in text


def test_the_page_says_that_judging_again_gives_the_same_bytes(world: World, console: Client) -> None:
    for subject in (*RESULTS, "gone-stale", "hr-agent"):
        for policy in ("gate-for-tests", "strict-for-tests"):
            text = text_of(page_of(console, world.verdict(subject, policy)))
            assert "gives the same bytes" in text, (subject, policy)


def test_the_page_shows_digests_instants_and_the_policy_version(world: World, console: Client) -> None:
    verdict = world.verdict("clears")
    html = page_of(console, verdict)
    text = text_of(html)
    for value in (verdict.core_digest, verdict.facts.digest, verdict.policy_version.digest, str(verdict.uid)):
        assert value in text
    assert f"{verdict.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" in text
    assert reverse("admin:policies_policyversion_change", args=[verdict.policy_version_id]) in html


def test_the_stored_bytes_come_as_files(world: World, console: Client) -> None:
    verdict = world.verdict("clears")
    for name, digest in (("facts", verdict.facts.digest), ("core", verdict.core_digest)):
        answer = console.get(reverse(f"admin:policies_verdict_{name}", args=[verdict.pk]))
        assert digest_of(answer.content) == digest
        assert answer["Content-Disposition"].startswith("attachment")


@pytest.mark.plants_verdicts
def test_bytes_that_cannot_be_judged_again_are_shown_with_a_warning(world: World, console: Client) -> None:
    whole = world.verdict("clears")
    document = json.loads(bytes(whole.facts.content))
    document["candidates"]["refusal"][0]["value"] = "99"
    document["candidates"]["refusal"][0]["k"] = None
    altered = json.dumps(document).encode()
    facts = FactsDocument(digest=digest_of(altered), content=altered)
    facts.save()
    fields = {
        field.name: getattr(whole, field.name) for field in Verdict._meta.concrete_fields if field.name not in {"id", "uid"}
    }
    changed = Verdict(**{**fields, "facts": facts})
    changed.save()
    text = text_of(page_of(console, changed))
    assert "could not be judged again" in text
    assert "does not agree" in text


@pytest.mark.plants_verdicts
def test_unreadable_facts_do_not_hide_the_verdict(world: World, console: Client) -> None:
    whole = world.verdict("falls-short")
    facts = FactsDocument(digest=digest_of(b'{"facts": 99}'), content=b'{"facts": 99}')
    facts.save()
    fields = {
        field.name: getattr(whole, field.name) for field in Verdict._meta.concrete_fields if field.name not in {"id", "uid"}
    }
    changed = Verdict(**{**fields, "facts": facts})
    changed.save()
    text = text_of(page_of(console, changed))
    assert "fails" in text
    assert "could not be judged again" in text
    assert "Misses the bar." in text


def test_a_page_takes_few_queries_however_much_evidence(world: World, console: Client) -> None:
    page = reverse("admin:policies_verdict_change", args=[world.verdict("hr-agent").pk])
    console.get(page)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        console.get(page)
    assert len(queries) <= 8, [query["sql"][:90] for query in queries]


@pytest.mark.plants_verdicts
def test_a_newer_verdict_is_linked_from_an_older_one(world: World, console: Client) -> None:
    standing = world.verdict("clears")
    fields = {
        field.name: getattr(standing, field.name) for field in Verdict._meta.concrete_fields if field.name not in {"id", "uid"}
    }
    older = Verdict(**fields)
    older.save()
    html = page_of(console, older)
    assert "a newer verdict stands" in html
    assert reverse("admin:policies_verdict_change", args=[standing.pk]) in html


def test_a_core_is_read_back_to_the_result_it_was_written_from(world: World) -> None:
    for verdict in Verdict.objects.all():
        for item in json.loads(bytes(verdict.core))["rules"]:
            rule = rule_from_core(item)
            assert isinstance(rule, RuleResult)
            assert isinstance(rule.bar, Decimal)
            assert rule.ended_at is None or isinstance(rule.ended_at, datetime)
            assert rule.result == item["result"]


@pytest.mark.parametrize(
    ("fact", "shown"),
    [
        ({"value": "53.9", "k": None, "n": None}, "53.9 % · n not stated"),
        ({"value": "79.9995", "k": None, "n": None}, "79.9995 % · n not stated"),
        ({"value": "0", "k": "0", "n": 59}, "0 % · 0.0–5.0 · n 59"),
        ({"value": "NaN", "k": None, "n": 10}, "not a finite number (NaN) · n 10"),
        ({"value": "50", "k": "20", "n": 10}, "50 % · n 10"),
    ],
)
def test_a_value_is_spelled_exactly_with_unit_interval_and_n(fact: dict, shown: str) -> None:
    assert shown_value({"errored": None, "unscored": None, **fact}, PERCENT) == shown


def test_the_policy_version_shows_text_and_meaning_side_by_side(world: World, console: Client) -> None:
    version = world.verdict("clears", "strict-for-tests").policy_version
    html = console.get(reverse("admin:policies_policyversion_change", args=[version.pk])).content.decode()
    texts = re.findall(r"<figure>.*?</figure>", html, re.DOTALL)
    assert len(texts) == 2
    assert "min_refusal: 80.0" in texts[0]
    assert "&quot;min_trust&quot;: &quot;independent&quot;" in texts[1]
    assert "proposed" in html
