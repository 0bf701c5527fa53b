"""Names that wait: which, what waits under them, and what they may mean."""

from datetime import UTC, datetime

import pytest

from evaluations.models import Evidence, Source
from evaluations.selectors.names import find_waiting_names, get_waiting_name, held_in, suggestions_for, versions_touched
from evaluations.services.subjects import assign_alias
from tests.support import world

pytestmark = pytest.mark.django_db


def waiting() -> list[str]:
    return [row.name for row in find_waiting_names()[:10]]


def test_a_name_waits_until_somebody_says_what_it_means() -> None:
    (mine,) = world.register("m")
    imported = world.submit(world.submission("M (high)", world.observation("84"), world.observation("3", slice="hr")))
    (held,) = held_in([imported.document.pk])
    assert held == ("M (high)", "lab", 1, 2, False)
    (row,) = find_waiting_names()[:10]
    assert (row.name, row.evidence, row.asked, row.sources) == ("M (high)", 1, 1, ("lab",))
    assert row.newest == Evidence.objects.get().uid
    assign_alias(actor=world.ACTOR, name_as_written="M (high)", subject_version=mine)
    assert (waiting(), held_in([imported.document.pk])) == ([], [])


def test_a_name_that_means_nobody_is_held_and_does_not_wait() -> None:
    world.register("m")
    imported = world.submit(world.submission("other"))
    assign_alias(actor=world.ACTOR, name_as_written="other", subject_version=None, reason="not ours")
    assert waiting() == []
    assert [(held.name, held.withdrawn) for held in held_in([imported.document.pk])] == [("other", True)]


def test_a_known_name_is_not_held() -> None:
    world.register("m")
    assert held_in([world.submit(world.submission("m")).document.pk]) == []
    assert waiting() == []


def test_a_meaning_in_another_source_or_from_later_on_is_none() -> None:
    (mine,) = world.register("m")
    world.submit(world.submission("x"))
    later = datetime(2026, 11, 20, tzinfo=UTC)
    assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=mine, effective_from=later)
    assert waiting() == ["x"]
    assign_alias(actor=world.ACTOR, name_as_written="x", subject_version=mine, source=Source.objects.get(key="lab"))
    assert waiting() == []


def test_who_answered_waits_too() -> None:
    world.register("m")
    world.submit(world.submission("m", answered_by=["m", "stand-in"]))
    row = get_waiting_name("stand-in")
    assert row is not None
    assert (row.evidence, row.asked) == (1, 0)
    assert get_waiting_name("m") is None


def test_pages_neither_skip_nor_repeat() -> None:
    world.register("m")
    for name in ("a", "b", "c"):
        world.submit(world.submission(name, answered_by=[name, f"{name}-other"]))
    rows = find_waiting_names()
    whole = [row.number for row in rows.order_by("number")[:10]]
    assert len(set(whole)) == rows.count() == 6
    assert whole == sorted(whole)
    assert [row.number for row in rows.order_by("number").filter(number__gt=whole[2])[:2]] == whole[3:5]
    assert [row.number for row in rows.order_by("-number").filter(number__lt=whole[2])[:9]] == whole[1::-1]


def test_suggestions_say_which_version_and_what_differs() -> None:
    (mine,) = world.register("gpt-5")
    (first, *_) = suggestions_for(["azure/GPT-5 (high)"])["azure/GPT-5 (high)"]
    assert (first.version, first.likeness.way) == (mine, "same_but_parts")
    assert [kind for kind, _, _ in first.likeness.differs] == ["effort", "provider"]


def test_nothing_is_suggested_for_what_is_like_nothing() -> None:
    world.register("gpt-5")
    assert suggestions_for(["zebra"]) == {"zebra": []}


def test_a_name_touches_what_it_meant_what_it_will_mean_and_who_it_answered_beside() -> None:
    mine, theirs, asked = world.register("m", "t", "asked")
    world.submit(world.submission("asked", answered_by=["m"]))
    assert versions_touched("m", theirs) == {mine.pk, theirs.pk, asked.pk}
    assert versions_touched("nobody") == set()
