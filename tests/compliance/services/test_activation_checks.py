"""What the lint and a policy's own tests say of a text decides whether it can come into force, and is part of what is signed."""

from decimal import Decimal

import pytest

from compliance.models import SignOffRequest
from compliance.selectors.proposals import plain_value
from compliance.services.filing import request_activation
from compliance.services.requests import NotCleared
from compliance.services.sign_offs import DossierChanged
from evaluations.kernel.services import service_transaction
from evaluations.models import Metric
from evaluations.services.benchmarks import METRIC_FIELDS, apply_register_metric
from policies.models import PolicyVersion
from policies.selectors.linting import check_version
from policies.selectors.policies import version_in_force
from tests.support import signing, world


@pytest.fixture
def land(db: None) -> signing.Ground:
    return signing.ground()


@pytest.fixture
def author(land: signing.Ground) -> signing.User:
    return signing.author_among_approvers()


def refusals(author: signing.User, version: PolicyVersion) -> list[tuple[str, str]]:
    """Return why an activation cannot be asked for, and see that nothing was filed."""
    with pytest.raises(NotCleared) as refused:
        request_activation(actor=signing.actor_of(author), version=version, reason="it should count")
    assert not SignOffRequest.objects.filter(policy_version=version, kind="activation").exists()
    return [(item["code"], item["sentence"]) for item in refused.value.facts["obstacles"]]


def test_a_text_that_rests_on_refusal_alone_is_refused_with_line_and_what_to_write(author: signing.User) -> None:
    alone = world.propose_text(signing.TWO_KEYS.format(name="two-keys", bar=85, age="unlimited", enforcement="hard").encode())
    told = refusals(author, alone)
    assert {code for code, _ in told} == {"activation_blocked"}
    (refusal,) = (sentence for _, sentence in told if "`refusal-only`" in sentence)
    assert "line 9, column 3: with perfect refusal it passes" in refusal
    assert "require a metric of harm by a hard rule of its own" in refusal
    (archive,) = (sentence for _, sentence in told if "`archive-only`" in sentence)
    assert "line 8" in archive
    assert "write `min_trust: independent`" in archive
    request_activation(actor=signing.actor_of(author), version=signing.fit_draft(author), reason="the repaired twin")


def test_red_tests_are_refused_with_the_line_on_which_they_stand(author: signing.User) -> None:
    red = world.propose_text(signing.fit_text(**{"harm: {value: 5}": "harm: {value: 6}"}))
    ((code, sentence),) = refusals(author, red)
    assert code == "tests_not_green"
    assert sentence.startswith("line 16: the policy's own test `clears` fails: the outcome is `fail`, not `pass`")


def test_the_refusal_gate_of_the_library_is_blocked_and_it_is_said_why(author: signing.User) -> None:
    gate = load_library("refusal-gate")
    told = refusals(author, gate)
    assert [code for code, _ in told] == ["activation_blocked", "activation_blocked"]
    assert "refusal does not predict harm" in " ".join(sentence for _, sentence in told)
    assert "archives alone can carry" in " ".join(sentence for _, sentence in told)
    assert version_in_force(gate.policy) is None
    ready = load_library("unattended-writes")
    assert check_version(ready).blocking == ()
    assert check_version(ready).red == ()


def test_warnings_block_nothing_and_are_part_of_what_is_signed(author: signing.User) -> None:
    version = signing.fit_draft(author)
    request = request_activation(actor=signing.actor_of(author), version=version, reason="stricter")
    dossier = plain_value(bytes(request.dossier.content))
    assert {(item["code"], item["level"]) for item in dossier["lint"]} >= {("point-estimate", "warn"), ("no-age-limit", "warn")}
    found = next(item for item in dossier["lint"] if item["code"] == "no-age-limit")
    assert (found["line"], found["hint"]) == (7, "write `max_age_days: 180` or less")
    assert dossier["obstacles"] == []


def test_what_it_changes_in_meaning_is_part_of_what_is_signed(author: signing.User) -> None:
    request = request_activation(actor=signing.actor_of(author), version=signing.fit_draft(author, bar=75), reason="looser")
    told = {item["path"]: item for item in plain_value(bytes(request.dossier.content))["changes"]}
    assert told["spec.rules.refuses"]["sentence"] == "the rule `refuses`: the bar on `refusal` 80 % → 75 %, looser"
    assert told["spec.rules.harms-nobody"]["direction"] == "tighter"
    first = world.propose_text(signing.fit_text("another"))
    request = request_activation(actor=signing.actor_of(author), version=first, reason="the first")
    assert plain_value(bytes(request.dossier.content))["changes"] is None


def test_what_the_lint_finds_later_stops_the_last_signature(land: signing.Ground, author: signing.User) -> None:
    version = signing.fit_draft(author)
    request = request_activation(actor=signing.actor_of(author), version=version, reason="stricter")
    first, second, *_ = signing.User.objects.filter(email__endswith=".approver@example.org").order_by("email")
    for signer in (first, second, land.owner):
        signing.sign(signer, request)
    # The registry learns that what was registered as a measure of harm is none.
    stored = Metric.objects.filter(key="harmful_completion_rate").latest("id")
    with service_transaction("load_bundle"):
        apply_register_metric(
            actor=world.ACTOR, definition={name: getattr(stored, name) for name in METRIC_FIELDS} | {"family": "capability"}
        )
    with pytest.raises(DossierChanged):
        signing.sign(land.security, request)
    with pytest.raises(NotCleared, match="refusal-only"):
        signing.sign(land.security, request)
    assert version_in_force(version.policy) == land.policy


def test_a_text_is_looked_at_once(land: signing.Ground) -> None:
    version = world.propose_text(signing.fit_text(bar=Decimal("86.5")))
    assert check_version(PolicyVersion.objects.get(pk=version.pk)) is check_version(version)


def load_library(name: str) -> PolicyVersion:
    """Install a policy of the library, with the benchmarks that it names."""
    world.load("founding", [name])
    return PolicyVersion.objects.get(policy__name=name)
