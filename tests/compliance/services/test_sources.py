"""Sources of one's own: proposed with their trust by one person, signed by another, and trusted by nobody before that."""

import io
import json
import uuid
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, ClassVar

import pytest
from django.db import IntegrityError

from compliance.models import LedgerEntry, SignOff, User
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.population import population_report
from compliance.selectors.proposals import plain_value
from compliance.selectors.signers import read_quorum
from compliance.services.idempotency import IdempotencyKeyReused
from compliance.services.people import create_token
from compliance.services.requests import NotARequester, NotCleared
from compliance.services.sign_offs import DossierChanged, SelfSignOffRefused, SignerNotEligible, withdraw_request
from compliance.vocabulary import Meaning, RequestStatus, Role
from evaluations.kernel.actor import service
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Source, TrustAssignment
from evaluations.services.evidence import import_files
from evaluations.services.sources import apply_assign_trust, apply_register_source
from policies.models import Verdict
from tests.support import signing, world
from tests.support.definitions import SOURCE, ask_source, stewards
from tests.support.sources import scheduled
from tests.support.undoing import undone

KEY = SOURCE["key"]


@pytest.fixture(scope="module")
def _people(django_db_setup: None, django_db_blocker) -> Iterator[list[User]]:
    with django_db_blocker.unblock(), undone():
        world.register("model-a")
        yield stewards()


@pytest.fixture
def people(_people: list[User]) -> Iterator[list[User]]:
    with undone():
        yield deepcopy(_people)


def tiers(key: str = KEY) -> list[str]:
    return list(TrustAssignment.objects.filter(source__key=key).order_by("id").values_list("tier", flat=True))


def body_of(request: Any) -> dict[str, Any]:
    return plain_value(bytes(request.reload().dossier.content))


def measured(source: str) -> Any:
    return world.submit({**world.submission("model-a", world.observation("91")), "source": source}, f"{source}.json")


class TestANewSource:
    def test_is_registered_and_trusted_once_another_person_has_signed_and_not_before(self, people: list[User]) -> None:
        request = ask_source(people[0])
        with pytest.raises(InputRefused, match="unknown source") as refused:
            measured(KEY)
        assert "a new one is proposed under *Sources* and signed" in refused.value.problems[0].hint
        assert not Source.objects.filter(key=KEY).exists()
        value = body_of(request)
        assert value["question"] == {"source": KEY, "tier": "secondary", "replaces": None}
        assert (value["source"]["registered"], value["trust_before"], value["has_evidence"]) == (False, None, False)
        assert signing.sign(people[1], request).completed
        source = Source.objects.get(key=KEY)
        assert (source.title, source.publisher, source.url) == (SOURCE["title"], SOURCE["publisher"], SOURCE["url"])
        stored = source.trust_assignments.get()
        assert (stored.tier, stored.reason, stored.sign_off_request) == ("secondary", "our own lab", request.uid)
        assert stored.assigned_by == f"person:{people[1].person_id}"
        assert measured(KEY).observations == 1

    def test_is_not_signed_by_whoever_proposes_it(self, people: list[User]) -> None:
        request = ask_source(people[0])
        with pytest.raises(SelfSignOffRefused):
            signing.sign(people[0], request)
        again = User.objects.create(email="stella.again@example.org", person=people[0].person, password="!")
        with pytest.raises(SelfSignOffRefused):
            signing.sign(again, request)
        assert not Source.objects.filter(key=KEY).exists()

    @pytest.mark.parametrize("role", [role for role in Role if role != Role.EVIDENCE_STEWARD])
    def test_needs_an_evidence_steward_to_be_proposed_and_to_be_signed(self, people: list[User], role: Role) -> None:
        other = signing.human("Otto Other", role)
        with pytest.raises(NotARequester):
            ask_source(other)
        with pytest.raises(SignerNotEligible):
            signing.sign(other, ask_source(people[0]))

    def test_that_is_rejected_or_withdrawn_leaves_nothing(self, people: list[User]) -> None:
        rejected, withdrawn = ask_source(people[0]), ask_source(people[0], once="again")
        assert not signing.sign(people[1], rejected, Meaning.REJECTED).completed
        withdraw_request(actor=signing.actor_of(people[0]), request=withdrawn, reason="not needed")
        statuses = [request.reload().status for request in (rejected, withdrawn)]
        assert statuses == [RequestStatus.REJECTED, RequestStatus.WITHDRAWN]
        assert not Source.objects.filter(key=KEY).exists()

    def test_asked_twice_under_one_key_is_one_request_also_after_it_is_signed(self, people: list[User]) -> None:
        first = ask_source(people[0], once="k")
        signing.sign(people[1], first)
        assert ask_source(people[0], once="k") == first
        with pytest.raises(IdempotencyKeyReused):
            ask_source(people[0], once="k", tier="vendor")

    def test_is_told_in_the_ledger_with_the_request_that_carries_it(self, people: list[User]) -> None:
        request = ask_source(people[0])
        signing.sign(people[1], request)
        told = {
            action: plain_value(bytes(LedgerEntry.objects.get(action=action, target_id=KEY).content))
            for action in ("source.registered", "trust.assigned")
        }
        assert told["source.registered"]["new"] == {"title": SOURCE["title"], "url": SOURCE["url"]}
        assert told["trust.assigned"]["old"] is None
        assert told["trust.assigned"]["new"] == {
            "tier": "secondary",
            "reason": "our own lab",
            "sign_off_request": str(request.uid),
        }
        lines = {line.table: line.differing for line in population_report()}
        assert (lines["evaluations_source"], lines["evaluations_trustassignment"]) == (0, 0)

    @pytest.mark.parametrize(
        ("changes", "field", "told"),
        [
            ({"key": "\N{CYRILLIC SMALL LETTER A}cme"}, "key", "U+0430 CYRILLIC SMALL LETTER A"),
            ({"key": ""}, "key", "it is missing"),
            ({"title": ""}, "title", "it is missing"),
            ({"url": "http://example.org"}, "url", "no https address"),
            ({"url": "javascript:alert(1)"}, "url", "no https address"),
            ({"tier": "gold"}, "tier", "use one of archive, secondary, vendor, independent, reproduced"),
            ({"tier": ""}, "tier", "it is missing"),
            ({"reason": "r" * 501}, "reason", "write at most 500"),
            ({"notes": "x"}, "notes", "unknown field"),
        ],
    )
    def test_that_says_too_little_or_the_wrong_thing_is_refused(
        self, people: list[User], changes: dict[str, Any], field: str, told: str
    ) -> None:
        with pytest.raises(InputRefused) as refused:
            ask_source(people[0], **changes)
        assert told in {item.field: f"{item.message}; {item.hint}" for item in refused.value.problems}[field]


class TestAnotherTier:
    BARE: ClassVar[dict[str, str]] = {"key": "lab", "title": "", "publisher": "", "url": ""}

    @pytest.mark.parametrize(("tier", "outcome", "moved"), [("archive", "fail", True), ("reproduced", "pass", False)])
    def test_says_whose_bar_lies_between_and_is_judged_by(self, people: list[User], tier: str, outcome: str, moved: bool) -> None:
        text = world.ONE_RULE.format(name="asks-more", bar=80).replace("min_trust: archive", "min_trust: independent")
        version = world.propose_text(text.encode())
        measured("lab")
        world.judge_all()
        assert Verdict.objects.get(policy_version=version).outcome == "pass"
        request = ask_source(people[0], tier=tier, **self.BARE)
        value = body_of(request)
        assert value["question"] == {"source": "lab", "tier": tier, "replaces": "independent"}
        assert (value["source"]["title"], value["trust_before"]["reason"], value["has_evidence"]) == ("Lab", "test", True)
        assert value["asked_between"] == (["asks-more"] if moved else [])
        assert signing.sign(people[1], request).completed
        assert tiers("lab") == ["independent", tier]
        world.judge_all()
        assert Verdict.objects.filter(policy_version=version).latest("id").outcome == outcome

    def test_that_stands_already_is_refused_so_that_no_signature_changes_nothing(self, people: list[User]) -> None:
        with pytest.raises(NotCleared, match="`lab` is trusted as independent: nothing would change"):
            ask_source(people[0], tier="independent", **self.BARE)

    @pytest.mark.parametrize("changes", [{"title": "Renamed"}, {"url": "https://example.org/x"}, {"publisher": "Somebody"}])
    def test_never_changes_what_is_said_of_the_source(self, people: list[User], changes: dict[str, str]) -> None:
        (name,) = changes
        with pytest.raises(NotCleared, match=f"registered with another {name}: ask anew without it"):
            ask_source(people[0], tier="archive", **{**self.BARE, **changes})

    def test_that_came_meanwhile_voids_the_dossier_of_the_other(self, people: list[User]) -> None:
        first, second = (ask_source(people[0], tier=tier, **self.BARE) for tier in ("archive", "vendor"))
        signing.sign(people[1], first)
        with pytest.raises(DossierChanged):
            signing.sign(people[1], second)
        assert body_of(second)["question"]["replaces"] == "archive"
        assert signing.sign(people[1], second).completed
        assert tiers("lab") == ["independent", "archive", "vendor"]

    def test_that_came_meanwhile_by_itself_stops_the_last_signature(self, people: list[User]) -> None:
        first, second = ask_source(people[0], **SOURCE), ask_source(people[1], **SOURCE)
        signing.sign(people[2], first)
        with pytest.raises(DossierChanged):
            signing.sign(people[2], second)
        with pytest.raises(NotCleared, match="nothing would change"):
            signing.sign(people[2], second)
        assert tiers() == ["secondary"]

    def test_is_not_held_up_by_evidence_that_comes_in_meanwhile(self, people: list[User]) -> None:
        measured("lab")
        request = ask_source(people[0], tier="archive", **self.BARE)
        world.submit(world.submission("model-a", world.observation("90")), "later.json")
        assert signing.sign(people[1], request).completed


def handed_in(by: User, source: str, *, road: str) -> None:
    """Have a person stand behind what a source has: by a file, by a token of hers, or by its schedule."""
    actor = signing.actor_of(by)
    if road == "schedule":
        scheduled("https://example.org/board.json", key=source, actor=actor)
        return
    if road == "token":
        token = create_token(actor=world.ACTOR, name="ci", scopes=["submit_evidence"], person=by.person).token
        actor = service(token.pk, on_behalf_of=actor)
    body = json.dumps({**world.submission("model-a", world.observation("91")), "source": source}).encode()
    import_files(actor=actor, files={f"{road}.json": io.BytesIO(body)}, max_bytes=world.MEGABYTE)


@pytest.mark.parametrize("road", ["file", "token", "schedule"])
class TestWhoeverStandsBehindIt:
    BARE: ClassVar[dict[str, str]] = {"key": "lab", "title": "", "publisher": "", "url": ""}

    def test_signs_no_higher_tier_and_is_told_before_she_tries(self, people: list[User], road: str) -> None:
        handed_in(people[1], "lab", road=road)
        request = ask_source(people[0], tier="reproduced", **self.BARE)
        at = now()
        assessment = read_quorum(request, build_dossier(request, at=at), request.dossier, at=at).assessment
        assert assessment.may_not[str(people[1].person_id)] == ("source_submitter",)
        assert str(people[2].person_id) in assessment.may_sign
        assert people[1].person_id in request.dossier.excluded
        with pytest.raises(SignerNotEligible, match="source_submitter") as refused:
            signing.sign(people[1], request)
        assert refused.value.facts["reasons"] == ["source_submitter"]
        again = User.objects.create(email="stella.two.again@example.org", person=people[1].person, password="!")
        with pytest.raises(SignerNotEligible):
            signing.sign(again, request)
        assert tiers("lab") == ["independent"]
        assert signing.sign(people[2], request).completed
        assert tiers("lab") == ["independent", "reproduced"]

    def test_signs_a_lower_tier_and_that_of_another_source(self, people: list[User], road: str) -> None:
        handed_in(people[1], "lab", road=road)
        assert signing.sign(people[1], ask_source(people[0], tier="archive", **self.BARE)).completed
        assert signing.sign(people[1], ask_source(people[0], tier="reproduced")).completed
        assert (tiers("lab"), tiers()) == (["independent", "archive"], ["reproduced"])

    def test_and_signed_before_makes_a_new_dossier_that_bars_her(self, people: list[User], road: str) -> None:
        request = ask_source(people[0], tier="reproduced", **self.BARE)
        signing.sign(people[1], request, Meaning.REVIEWED)
        handed_in(people[1], "lab", road=road)
        with pytest.raises(DossierChanged):
            signing.sign(people[1], request)
        with pytest.raises(SignerNotEligible, match="source_submitter"):
            signing.sign(people[1], request)
        assert signing.sign(people[2], request).completed

    def test_asks_for_it_and_another_signs(self, people: list[User], road: str) -> None:
        handed_in(people[0], "lab", road=road)
        request = ask_source(people[0], tier="reproduced", **self.BARE)
        with pytest.raises(SelfSignOffRefused):
            signing.sign(people[0], request)
        assert signing.sign(people[1], request).completed


def test_no_road_past_the_services_trusts_what_nobody_signed(people: list[User]) -> None:
    open_one = ask_source(people[0], key="lab", title="", publisher="", url="", tier="reproduced")
    signed = ask_source(people[0])
    signing.sign(people[1], signed)
    lab = Source.objects.get(key="lab")
    for carried_by in (None, uuid.uuid4(), open_one.uid, signed.uid):
        row = TrustAssignment(
            source=lab, tier="reproduced", reason="our own lab", assigned_by="person:x", sign_off_request=carried_by
        )
        with pytest.raises(IntegrityError, match="the trust in a source needs the signatures"), service_transaction("smuggle"):
            row.save()
    assert tiers("lab") == ["independent"]


def test_what_comes_with_the_product_gives_a_first_tier_and_none_after(people: list[User]) -> None:
    with service_transaction("load_bundle"):
        fresh = apply_register_source(actor=world.ACTOR, key="fresh", title="Fresh")
        apply_assign_trust(actor=world.ACTOR, source=fresh, tier="archive", reason="shipped")
    with pytest.raises(IntegrityError, match="needs the signatures"), service_transaction("load_bundle"):
        apply_assign_trust(actor=world.ACTOR, source=fresh, tier="reproduced", reason="shipped")
    assert tiers("fresh") == ["archive"]


@pytest.mark.parametrize("changes", [{"tier": "reproduced"}, {"reason": "another"}])
def test_what_is_stored_is_what_was_signed_word_for_word(
    people: list[User], changes: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = ask_source(people[0])
    monkeypatch.setattr(
        "compliance.services.completion.apply_assign_trust", lambda **told: apply_assign_trust(**{**told, **changes})
    )
    with pytest.raises(IntegrityError, match="this is not the trust in a source that was signed"):
        signing.sign(people[1], request)
    assert not SignOff.objects.filter(request=request).exists()


def test_what_is_said_of_a_new_source_is_what_was_signed(people: list[User], monkeypatch: pytest.MonkeyPatch) -> None:
    request = ask_source(people[0])
    monkeypatch.setattr(
        "compliance.services.completion.apply_register_source",
        lambda **told: apply_register_source(**{**told, "url": "https://example.org/elsewhere"}),
    )
    with pytest.raises(IntegrityError, match="this is not the trust in a source that was signed"):
        signing.sign(people[1], request)
    assert not Source.objects.filter(key=KEY).exists()
