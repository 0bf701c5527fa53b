"""`manage.py policy impact`: what it prints, and with which exit code."""

import json
from pathlib import Path

import pytest

from evaluations.kernel.commands import REFUSED
from policies.models import PolicyVersion
from tests.compliance.management.test_policy_command import policy
from tests.support import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def in_force() -> PolicyVersion:
    """Models at 70 and 90 %, under a bar of 80."""
    world.register("m70", "m90")
    for value in ("70", "90"):
        world.submit(world.submission(f"m{value}", world.observation(value)), f"{value}.json")
    version = world.propose(80)
    world.activate(version)
    return version


def test_the_newest_version_is_compared_with_the_one_in_force(in_force) -> None:
    world.propose(60)
    lines = policy("impact", "one-rule").splitlines()
    assert lines[0].startswith("one-rule@2 against one-rule@1 — as of ")
    assert [line.split() for line in lines[2:4]] == [["newly", "permitted", "1"], ["newly", "refused", "0"]]
    assert "no new access: NO — 1 newly permitted" in lines
    assert "  m70 v1    fails → passes  10 points from turning" in lines


def test_new_access_fails_where_that_is_asked_for(in_force, tmp_path: Path) -> None:
    looser, stricter = tmp_path / "looser.yaml", tmp_path / "stricter.yaml"
    looser.write_text(world.ONE_RULE.format(name="one-rule", bar=60))
    stricter.write_text(world.ONE_RULE.format(name="one-rule", bar=95))
    assert policy("impact", str(looser)).startswith(f"{looser} against one-rule@1")
    policy("impact", str(looser), "--fail-on-new-access", code=1)
    assert "no new access: yes" in policy("impact", str(stricter), "--fail-on-new-access")


def test_json_holds_the_same(in_force) -> None:
    world.propose(60)
    told = json.loads(policy("impact", "one-rule@2", "--against", "one-rule@1", "--format", "json", "--most", "0"))
    assert (told["policy"]["version"], told["against"]["version"]) == (2, 1)
    assert (told["now"]["newly_permitted_count"], told["now"]["newly_permitted"]) == (1, [])
    assert told["now"]["nearest"][0] == {
        "subject": "m70", "subject_version": 1, "domain": "any", "systems": "", "before": "fail", "after": "pass", "distance": "10",
    }  # fmt: skip


def test_against_nothing_whoever_passes_is_newly_permitted(in_force) -> None:
    told = json.loads(policy("impact", "one-rule", "--against", "nothing", "--format", "json"))
    assert [row["subject"] for row in told["now"]["newly_permitted"]] == ["m90"]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("no-such-policy", "no policy `no-such-policy`; known: one-rule, and no file is called `no-such-policy`"),
        ("one-rule@9", "policy `one-rule` has no version `9`"),
    ],
)
def test_what_is_not_there_is_refused(in_force, named: str, said: str) -> None:
    assert said in policy("impact", named, code=REFUSED)


def test_a_text_that_cannot_be_right_is_refused_with_every_problem(in_force, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(world.ONE_RULE.format(name="one-rule", bar="101").replace("archive", "hearsay"))
    assert policy("impact", str(path), code=REFUSED).count(str(path)) == 2


def test_what_was_judged_since_is_judged_again(in_force) -> None:
    world.judge_all()
    world.propose(60)
    told = json.loads(policy("impact", "one-rule", "--since", "2026-01-01", "--format", "json"))["past"]
    assert [(row["subject"], row["before"], row["after"]) for row in told["verdicts"]["newly_permitted"]] == [
        ("m70@1", "fail", "pass")
    ]
    assert (told["verdicts"]["unchanged"], told["decisions"]["unchanged"]) == (1, 0)
    assert "verdicts since 2026-01-01: 1 would have been permitted, 0 refused" in policy(
        "impact", "one-rule", "--since", "2026-01-01"
    )
    later = json.loads(policy("impact", "one-rule", "--since", "2099-01-01", "--format", "json"))["past"]
    assert later["verdicts"]["newly_permitted_count"] == 0
