"""Real failures of others, tried on us: the cases about sign-offs and grants, each under its number.

O-10 stands in `test_self_approval`; races of O-13 and O-14 in `test_sign_off_races`.
"""

import io
import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError

from compliance.models import Grant, GrantEvent, LedgerEntry, Seat, SignOff, SignOffRequest
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.grants import live_grants_on, standing_of
from compliance.selectors.signers import read_quorum
from compliance.services.accounts import deactivate_account
from compliance.services.filing import request_activation, request_grant
from compliance.services.people import create_token
from compliance.services.requests import NotCleared, QuorumCannotBeMet
from compliance.services.roles import end_role
from compliance.services.sign_offs import DossierChanged, QuorumNotMet, SignerNotEligible, complete_request
from compliance.vocabulary import EffectiveStatus, Role
from evaluations.kernel.actor import service
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.services.evidence import import_files
from policies.selectors.policies import version_in_force
from policies.services.activations import apply_activate_policy_version
from policies.services.systems import register_system
from tests.support import signing, world
from tests.support.signing import Ground
from tests.support.undoing import undone

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def _ground(django_db_setup: None, django_db_blocker) -> Iterator[Ground]:
    with django_db_blocker.unblock(), undone():
        yield signing.ground()


@pytest.fixture
def land(_ground: Ground) -> Iterator[Ground]:
    with undone():
        yield deepcopy(_ground)


def may_sign(request: SignOffRequest) -> tuple[set[str], dict[str, tuple[str, ...]]]:
    """Return who may sign and why not the others, as it is shown before anybody signs."""
    at = now()
    assessment = read_quorum(request, build_dossier(request, at=at), request.dossier, at=at).assessment
    return set(assessment.may_sign), dict(assessment.may_not)


class TestO02:
    """An empty list grants nothing, and an empty circle of signers approves nothing."""

    def test_b_a_grant_without_systems_is_refused(self, land: Ground) -> None:
        with pytest.raises(InputRefused, match="an empty list grants nothing"):
            signing.ask(land, systems=[])
        assert not SignOffRequest.objects.filter(kind="grant").exists()

    def test_c_a_rule_whose_role_nobody_holds_is_refused_when_asked(self, land: Ground) -> None:
        elsewhere = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
        with pytest.raises(QuorumCannotBeMet, match="`owner` lacks 1"):
            signing.ask(land, systems=[elsewhere])
        assert not SignOffRequest.objects.filter(kind="grant").exists()
        assert LedgerEntry.objects.filter(action="request.refused").count() == 1


class TestO09:
    """A grant names exact versions and systems; a name that looks alike is another name."""

    def test_a_grant_says_nothing_about_neighbours(self, land: Ground) -> None:
        (other,) = world.register("model-ab")
        neighbour = register_system(actor=world.ACTOR, key="hr-prod-2", title="Workday test", domain="hr", owner="hr")
        grant = signing.granted(land)
        at = now()
        asked = {"action": "write", "at": at}
        assert live_grants_on(subject_version_id=land.version.pk, system_id=land.system.pk, **asked) == [grant]
        assert live_grants_on(subject_version_id=other.pk, system_id=land.system.pk, **asked) == []
        assert live_grants_on(subject_version_id=land.version.pk, system_id=neighbour.pk, **asked) == []
        assert live_grants_on(subject_version_id=land.version.pk, system_id=land.system.pk, action="writ", at=at) == []

    @pytest.mark.parametrize("pattern", ["*", "wr*", "write.*", "WRITE", "write "])
    def test_there_are_no_patterns(self, land: Ground, pattern: str) -> None:
        with pytest.raises(InputRefused):
            request_grant(
                actor=signing.actor_of(land.asker),
                subject_version=land.version,
                systems=[land.system],
                actions=[pattern],
                ends_at=now() + timedelta(days=1),
                reason="everything",
            )


class TestO11:
    """Whoever wrote any part of what is signed does not sign it, and it is shown before she tries."""

    def test_who_lowered_the_bar_in_the_draft_is_barred_like_who_began_it(self, land: Ground) -> None:
        alice = signing.human("Alice Author", Role.POLICY_AUTHOR, Role.POLICY_APPROVER)
        bob = signing.human("Bob Editor", Role.POLICY_AUTHOR, Role.POLICY_APPROVER)
        dave, dora, dirk = (signing.human(f"{name} Approver", Role.POLICY_APPROVER) for name in ("Dave", "Dora", "Dirk"))
        signing.fit_draft(alice, bar=90)
        request = request_activation(actor=signing.actor_of(dora), version=signing.fit_draft(bob, bar=85), reason="stricter")
        ready, barred = may_sign(request)
        assert str(dave.person_id) in ready
        for author in (alice, bob):
            assert barred[str(author.person_id)][0] == "policy_author"
            with pytest.raises(SignerNotEligible, match="policy_author"):
                signing.sign(author, request)
        for signer in (dave, dirk, land.owner):
            signing.sign(signer, request)
        assert signing.sign(land.security, request).completed

    @pytest.mark.parametrize("by_token", [False, True])
    def test_who_uploaded_the_only_evidence_is_barred_also_through_her_token(self, land: Ground, by_token: bool) -> None:
        carol = signing.human("Carol Uploader", Role.SECURITY, team="sec")
        dave = signing.human("Dave Security", Role.SECURITY, team="sec")
        actor = signing.actor_of(carol)
        if by_token:
            token = create_token(actor=world.ACTOR, name="ci", scopes=["submit_evidence"], person=carol.person).token
            actor = service(token.pk, on_behalf_of=actor)
        later = world.submission(
            "model-a", world.observation("92"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"}
        )
        import_files(actor=actor, files={"e.json": io.BytesIO(json.dumps(later).encode())}, max_bytes=world.MEGABYTE)
        world.judge_all()
        request = signing.ask(land)
        ready, barred = may_sign(request)
        assert barred[str(carol.person_id)] == ("evidence_submitter",)
        assert str(dave.person_id) in ready
        with pytest.raises(SignerNotEligible, match="evidence_submitter"):
            signing.sign(carol, request)
        signing.sign(dave, request)
        assert signing.sign(land.owner, request).completed


class TestO12:
    """What was signed is what comes into force."""

    def test_signatures_on_one_text_never_carry_another(self, land: Ground) -> None:
        author, asker = signing.human("Alice Author", Role.POLICY_AUTHOR), signing.human("Ann Approver", Role.POLICY_APPROVER)
        first, second = (signing.human(f"Paul Approver {number}", Role.POLICY_APPROVER) for number in range(2))
        signed = signing.fit_draft(author, bar=85)
        request = request_activation(actor=signing.actor_of(asker), version=signed, reason="stricter")
        for signer in (first, second, land.owner):
            signing.sign(signer, request)
        other = signing.fit_draft(author, bar=60)
        with pytest.raises(IntegrityError, match="needs the signatures of its quorum"), service_transaction("test"):
            apply_activate_policy_version(actor=world.ACTOR, version=other, sign_off_request=request.uid)
        later = request_activation(actor=signing.actor_of(asker), version=other, reason="looser")
        assert not later.sign_offs.exists()
        # Beside the newer draft the signed one is no longer kept judged: its dossier states so, and is a newer one.
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        told = json.loads(
            bytes(LedgerEntry.objects.filter(action="dossier.recorded", target_id=str(request.uid)).latest("id").content)
        )
        assert told["old"]["voided_signers"] == sorted(str(signer.person_id) for signer in (first, second, land.owner))
        assert not signing.sign(land.security, request).completed
        with pytest.raises(QuorumNotMet):
            complete_request(actor=signing.actor_of(asker), request=request)
        for signer in (first, second):
            assert not signing.sign(signer, request).completed
        assert signing.sign(land.owner, request).completed
        assert version_in_force(land.policy.policy) == signed

    def test_a_dossier_that_changes_back_is_signed_afresh(self, land: Ground) -> None:
        request = signing.ask(land)
        signing.sign(land.owner, request)
        world.submit(
            world.submission("model-a", world.observation("95"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
        )
        world.judge_all()
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        assert not signing.sign(land.security, request).completed
        assert not Grant.objects.exists()


class TestO13:
    """Who may sign is asked again when it counts."""

    @pytest.mark.parametrize("gone", ["deactivated", "dropped"])
    def test_a_signature_lapses_with_its_signer(self, land: Ground, gone: str) -> None:
        ada = signing.actor_of(signing.human("Ada Admin", Role.ADMINISTRATOR))
        bob = signing.human("Bob Owner", Role.SYSTEM_OWNER, team="hr")
        request = signing.ask(land)
        signing.sign(bob, request)
        if gone == "deactivated":
            deactivate_account(actor=ada, user=bob, reason="left")
        else:
            end_role(actor=ada, membership=bob.person.roles.get())
        carol = signing.sign(land.security, request)
        assert not carol.completed
        assert list(carol.state.assessment.lapsed) == [str(bob.person_id)]
        with pytest.raises(QuorumNotMet, match=f"signer_no_longer_eligible: {bob.person_id}"):
            complete_request(actor=signing.actor_of(land.asker), request=request)
        assert not Grant.objects.exists()
        kept = SignOff.objects.get(request=request, person=bob.person)
        assert (str(kept.person), kept.roles, kept.meaning) == ("Bob Owner", ["system_owner"], "approved")
        dave = land.owner
        assert signing.sign(dave, request).completed
        assert set(Seat.objects.filter(dossier=request.reload().dossier).values_list("person_id", flat=True)) == {
            dave.person_id,
            land.security.person_id,
        }


class TestO14:
    """One approval, one effect."""

    def test_completing_again_gives_what_is_there(self, land: Ground) -> None:
        grant = signing.granted(land)
        for _ in range(3):
            assert complete_request(actor=signing.actor_of(land.asker), request=grant.request).made_grant == grant
        assert Grant.objects.count() == 1
        assert list(GrantEvent.objects.values_list("move", flat=True)) == ["made"]

    def test_the_signatures_of_one_request_make_no_second_grant(self, land: Ground) -> None:
        grant = signing.granted(land)
        again = Grant.objects.get(pk=grant.pk)
        again.pk, again.request_id = None, None
        again.uid = "00000000-0000-4000-8000-000000000000"
        for request_id in (None, grant.request_id):
            again.request_id = request_id
            with pytest.raises(IntegrityError), service_transaction("test"):
                again.save(force_insert=True)
        assert Grant.objects.count() == 1


class TestO15:
    """Instants are instants, whatever the clocks on the wall do."""

    @pytest.mark.parametrize("day", [datetime(2027, 3, 20, tzinfo=BERLIN), datetime(2027, 10, 20, tzinfo=BERLIN)])
    def test_thirty_days_are_so_many_seconds_across_a_change_of_clocks(self, land: Ground, day: datetime) -> None:
        starts = day.astimezone(UTC)
        request = signing.ask(land, days=30, starts_at=starts)
        signing.sign(land.owner, request)
        signing.sign(land.security, request)
        for _ in range(3):
            grant = Grant.objects.get(request=request)
            assert (grant.ends_at - grant.starts_at).total_seconds() == 2_592_000
            assert (grant.starts_at, grant.ends_at) == (starts, starts + timedelta(days=30))
        assert standing_of(grant, at=grant.ends_at - timedelta(microseconds=1)).status != EffectiveStatus.EXPIRED
        assert standing_of(grant, at=grant.ends_at).status == EffectiveStatus.EXPIRED


class TestO16:
    """The clock is read when it matters; what a row still says is in `test_case_o16_late_rows`."""

    def test_a_subject_whose_evidence_fails_is_not_asked_for(self, land: Ground) -> None:
        world.submit(
            world.submission("model-a", world.observation("20"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
        )
        with pytest.raises(NotCleared, match="look again in a moment"):
            signing.ask(land)
        world.judge_all()
        with pytest.raises(NotCleared, match="is not passed"):
            signing.ask(land)
