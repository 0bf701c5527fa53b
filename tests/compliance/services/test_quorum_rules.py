"""Who counts, for what, and for how long: the rules of a quorum, and what each kind of request does once its own is met."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal

import pytest

from compliance.models import (
    Grant,
    GrantEvent,
    LedgerEntry,
    Reauthentication,
    RoleMembership,
    SigningHold,
    SignOffRequest,
    User,
    Waiver,
)
from compliance.models.signing_in import session_digest
from compliance.selectors.proposals import AskedWaiver, plain_value
from compliance.selectors.waivers import live_waivers
from compliance.services.accounts import (
    SecondAdministratorNeeded,
    deactivate_account,
    lift_signing_hold,
    reactivate_account,
    reset_password,
)
from compliance.services.comments import comment_on_request
from compliance.services.filing import (
    request_activation,
    request_binding,
    request_recertification,
    request_reinstatement,
    request_renewal,
    request_ruling,
    request_waiver,
)
from compliance.services.proofs import ReauthenticationNeeded
from compliance.services.requests import NotCleared, QuorumCannotBeMet, RequestClosed
from compliance.services.roles import OwnRoleRefused, give_role
from compliance.services.sign_offs import (
    DossierChanged,
    RiskNotAccepted,
    SelfSignOffRefused,
    SignerNotEligible,
    give_sign_off,
    withdraw_request,
)
from compliance.services.stopping import revoke_grant, suspend_grant
from compliance.services.waivers import revoke_waiver
from compliance.vocabulary import GrantStatus, Meaning, ReauthenticationMethod, Role
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Ruling
from policies.language.compiled import LooserParameter
from policies.models import Binding, PolicyVersion, Standing
from policies.selectors.policies import version_in_force
from policies.services.policies import propose_policy_version
from tests.support import grants, signing, world
from tests.support.signing import Ground
from tests.support.signing_in import give_totp
from tests.support.undoing import undone

RISK = Meaning.ACCEPTED_RESIDUAL_RISK


@pytest.fixture(scope="module")
def _ground(django_db_setup: None, django_db_blocker) -> Iterator[Ground]:
    with django_db_blocker.unblock(), undone():
        yield signing.ground()


@pytest.fixture
def land(_ground: Ground) -> Iterator[Ground]:
    with undone():
        yield deepcopy(_ground)


def refusal(account: User, request: SignOffRequest, meaning: Meaning = Meaning.APPROVED) -> list[str]:
    """Return why somebody may not sign; fails the test where she may."""
    with pytest.raises(SignerNotEligible) as refused:
        signing.sign(account, request, meaning)
    return refused.value.facts["reasons"]


def approvers(count: int) -> list[User]:
    return [signing.human(f"Paula Approver {number}", Role.POLICY_APPROVER) for number in range(count)]


def draft(author: User, *, bar: object, name: str = "two-keys", **changes: str) -> PolicyVersion:
    """Propose the next version as somebody, and have it judged."""
    text = signing.TWO_KEYS.format(name=name, bar=bar, age="unlimited", enforcement="hard")
    for old, new in changes.items():
        text = text.replace(old, new)
    version = propose_policy_version(actor=signing.actor_of(author), text=text.encode())
    world.judge_all()
    return version


def renewal(land: Ground, grant: Grant) -> SignOffRequest:
    ends_at = now() + timedelta(days=80)
    return request_renewal(actor=signing.actor_of(land.asker), grant=grant, ends_at=ends_at, reason="still needed")


def news(value: str, day: int = 20) -> None:
    """Record a later result for the ground's model, and judge it."""
    world.submit(
        world.submission("model-a", world.observation(value), run={"status": "complete", "ended_at": f"2026-11-{day}T00:00:00Z"})
    )
    world.judge_all()


class TestRolesThatCount:
    def test_a_role_that_the_requester_gave_counts_for_others_requests_alone(self, land: Ground) -> None:
        ada = signing.human("Ada Asker", Role.REQUESTER, Role.ADMINISTRATOR, team="apps")
        eve = signing.human("Eve Friend", team="sec")
        give_role(actor=signing.actor_of(ada), person=eve.person, role=Role.SECURITY)
        hers = signing.ask(land, account=ada)
        assert refusal(eve, hers) == ["role_given_by_requester_or_self", "no_role"]
        assert not signing.sign(eve, signing.ask(land)).completed

    def test_nobody_gives_herself_a_role_and_one_that_was_planted_does_not_count(self, land: Ground) -> None:
        ada = signing.human("Ada Admin", Role.ADMINISTRATOR)
        with pytest.raises(OwnRoleRefused):
            give_role(actor=signing.actor_of(ada), person=ada.person, role=Role.SECURITY)
        with service_transaction("test"):
            RoleMembership.objects.create(person=ada.person, role=Role.SECURITY, given_by=signing.actor_of(ada).reference)
        assert refusal(ada, signing.ask(land))[0] == "role_given_by_requester_or_self"

    def test_an_owner_counts_for_the_systems_of_her_team_alone(self, land: Ground) -> None:
        other = signing.human("Otto Other", Role.SYSTEM_OWNER, team="it")
        assert refusal(other, signing.ask(land)) == ["no_role"]

    def test_one_person_fills_one_place_however_many_roles_she_has(self, land: Ground) -> None:
        both = signing.human("Bea Both", Role.SYSTEM_OWNER, Role.SECURITY, team="hr")
        request = signing.ask(land)
        assert not signing.sign(both, request).completed
        assert refusal(both, request) == ["already_signed"]
        assert signing.sign(land.owner, request).completed


class TestHolds:
    def test_a_reset_bars_from_signing_until_another_administrator_confirms(self, land: Ground) -> None:
        first, second = (signing.human(name, Role.ADMINISTRATOR) for name in ("Ada One", "Ada Two"))
        request = signing.ask(land)
        signing.sign(land.owner, request)
        reset_password(actor=signing.actor_of(first), user=land.owner, password="another long password 7")
        assert refusal(land.owner, request, Meaning.REJECTED) == ["signing_on_hold"]
        assert not signing.sign(land.security, request).completed, "what she signed before does not count either"
        hold = SigningHold.objects.get()
        for unfit in (first, land.owner):
            with pytest.raises(Exception, match="administrator"):
                lift_signing_hold(actor=signing.actor_of(unfit), hold=hold)
        with pytest.raises(SecondAdministratorNeeded):
            lift_signing_hold(actor=signing.actor_of(first), hold=hold)
        lift_signing_hold(actor=signing.actor_of(second), hold=hold)
        assert signing.sign(land.owner, request, Meaning.WITHDRAWN).completed is False
        assert signing.sign(land.owner, request).completed


class TestProof:
    def test_without_a_second_factor_nobody_signs(self, land: Ground) -> None:
        plain = signing.human("Paul Plain", Role.SECURITY, team="sec", second_factor=False)
        request = signing.ask(land)
        assert refusal(plain, request) == ["no_second_factor"]
        give_totp(plain)
        assert not signing.sign(plain, request).completed

    @pytest.mark.parametrize(
        ("method", "session", "minutes"),
        [
            (ReauthenticationMethod.TOTP, signing.SESSION, 5.1),
            (ReauthenticationMethod.TOTP, signing.SESSION, -1),
            (ReauthenticationMethod.TOTP, "another session", 0),
            (ReauthenticationMethod.PASSWORD, signing.SESSION, 0),
            (ReauthenticationMethod.RECOVERY_CODE, signing.SESSION, 0),
        ],
    )
    def test_only_a_fresh_second_factor_in_this_session_counts(
        self, land: Ground, method: ReauthenticationMethod, session: str, minutes: float
    ) -> None:
        request = signing.ask(land)
        with service_transaction("test"):
            Reauthentication(
                person=land.owner.person,
                user=land.owner,
                session_digest=session_digest(session),
                method=method,
                at=now() - timedelta(minutes=minutes),
            ).save()
        given = {
            "actor": signing.actor_of(land.owner),
            "request": request,
            "account": land.owner,
            "session": session_digest(signing.SESSION),
            "meaning": Meaning.APPROVED,
            "reason": "looked at it",
            "digest": request.dossier.digest,
        }
        with pytest.raises(ReauthenticationNeeded):
            give_sign_off(**given)
        signing.prove(land.owner)
        assert give_sign_off(**given).sign_off.meaning == Meaning.APPROVED


class TestActivations:
    def test_the_floor_is_two_approvers_beside_the_quorum_of_the_version_it_replaces(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        first, second, third = approvers(3)
        stricter = signing.fit_draft(author, bar=85)
        request = request_activation(actor=signing.actor_of(first), version=stricter, reason="stricter")
        assert not signing.sign(second, request).completed
        assert not signing.sign(land.owner, request).completed
        assert not signing.sign(land.security, request).completed
        assert signing.sign(third, request).completed
        assert version_in_force(land.policy.policy) == stricter

    def test_an_author_never_signs_her_draft_even_as_an_approver(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR, Role.POLICY_APPROVER)
        first, *_ = approvers(3)
        request = request_activation(actor=signing.actor_of(first), version=signing.fit_draft(author, bar=85), reason="stricter")
        assert refusal(author, request)[0] == "policy_author"

    def test_whoever_newly_permits_needs_one_more(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        news("70")  # the model falls below 80, and a bar of 60 would let it in
        looser = signing.fit_draft(author, bar=60)
        first, second, third = approvers(3)
        with pytest.raises(QuorumCannotBeMet, match="lacks 1"):
            request_activation(actor=signing.actor_of(first), version=looser, reason="looser")
        request = request_activation(actor=signing.actor_of(author), version=looser, reason="looser")
        value = plain_value(bytes(request.dossier.content))
        assert (value["impact"]["no_new_access"], value["impact"]["newly_permitted_count"]) == (False, 1)
        for signer in (first, second, land.owner, land.security):
            assert not signing.sign(signer, request).completed
        assert signing.sign(third, request).completed

    def test_an_impact_that_changes_before_the_last_signature_voids_those_before_it(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        first, second = approvers(2)
        request = request_activation(actor=signing.actor_of(author), version=signing.fit_draft(author, bar=85), reason="stricter")
        signing.sign(first, request)
        news("84")  # between the bars: what carried it would be refused
        with pytest.raises(DossierChanged):
            signing.sign(second, request)
        impact = plain_value(bytes(request.reload().dossier.content))["impact"]
        assert (impact["newly_refused_count"], impact["near_edge_count"]) == (1, 1)
        assert [row["distance"] for row in impact["nearest"]] == ["1"]
        assert request.dossier.number == 2

    def test_what_has_not_been_judged_counts_as_newly_permitted(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        approvers(3)
        unjudged = propose_policy_version(actor=signing.actor_of(author), text=signing.fit_text(bar=85))
        request = request_activation(actor=signing.actor_of(author), version=unjudged, reason="at once")
        asked = plain_value(bytes(request.dossier.content))
        assert asked["impact"]["unjudged"] == 1
        assert {factor["approve"] for factor in asked["quorum"]["all_of"] if factor["role"] == "policy_approver"} == {3}

    def test_covering_less_counts_as_newly_permitted(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        approvers(3)
        narrower = signing.fit_draft(
            author, bar=80, **{"{actions: [write]}": "{actions: [write], when: resource.reversible == true}"}
        )
        request = request_activation(actor=signing.actor_of(author), version=narrower, reason="fewer systems")
        asked = plain_value(bytes(request.dossier.content))
        assert asked["impact"]["why"] == ["it covers under another condition"]
        assert {factor["approve"] for factor in asked["quorum"]["all_of"] if factor["role"] == "policy_approver"} == {3}


class TestBindings:
    def test_a_binding_tightens_once_its_quorum_has_signed(self, land: Ground) -> None:
        author = signing.human("Alice Author", Role.POLICY_AUTHOR)
        first, second = approvers(2)
        with_param = {
            "at_least: 80": "at_least: {param: least}",
            "  evidence:": "  params: {least: 80}\n  evidence:",
        }
        version = draft(author, bar=80, **with_param)
        world.activate(version)
        world.judge_all()
        asked = {"actor": signing.actor_of(land.owner), "policy": version.policy, "system": land.system, "reason": "payroll"}
        with pytest.raises(LooserParameter):
            request_binding(**asked, params={"least": Decimal(70)})
        second_owner = signing.human("Oda Owner", Role.SYSTEM_OWNER, team="hr")
        request = request_binding(**asked, params={"least": Decimal(95)})
        for signer in (first, second, land.security):
            assert not signing.sign(signer, request).completed
        assert signing.sign(second_owner, request).completed
        assert Binding.objects.get().sign_off_request == request.uid
        world.judge_all()
        with pytest.raises(NotCleared):
            signing.ask(land)


class TestRulings:
    def test_a_retraction_by_two_stewards_takes_the_evidence_away(self, land: Ground) -> None:
        evidence = Evidence.objects.get()
        one, two, three = (signing.human(f"Stella Steward {number}", Role.EVIDENCE_STEWARD) for number in range(3))
        with pytest.raises(InputRefused):
            request_ruling(actor=signing.actor_of(one), evidence=evidence, kind="disputed", reason="x")
        request = request_ruling(
            actor=signing.actor_of(one), evidence=evidence, kind="retracted", reason="the set leaked", link="https://example.org"
        )
        assert not signing.sign(two, request).completed
        assert not Ruling.objects.exists()
        assert signing.sign(three, request).completed
        ruling = Ruling.objects.get()
        assert (ruling.kind, ruling.sign_off_request, ruling.reason) == ("retracted", request.uid, "the set leaked")
        world.judge_all()
        with pytest.raises(NotCleared) as refused:
            signing.ask(land)
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["blocked"]


class TestWaivers:
    @pytest.fixture
    def soft(self, land: Ground) -> Ground:
        """The ground with a result below the bar, and the rule soft."""
        world.activate(
            draft(signing.human("Alice Author", Role.POLICY_AUTHOR), bar=80, **{"enforcement: hard": "enforcement: soft"})
        )
        news("70")
        return land

    def asked(self, **changes: str) -> AskedWaiver:
        return AskedWaiver(
            **{"policy": "two-keys", "rule": "refuses", "system": "hr-prod", "reason": "watched by hand", **changes}
        )

    def test_a_soft_rule_is_waived_by_those_who_accept_the_risk_by_name(self, soft: Ground) -> None:
        with pytest.raises(NotCleared) as refused:
            signing.ask(soft)
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["not_waived"]
        request = signing.ask(soft, waivers=[self.asked()])
        with pytest.raises(RiskNotAccepted):
            signing.sign(soft.owner, request)
        assert not signing.sign(soft.owner, request, RISK).completed
        assert signing.sign(soft.security, request, RISK).completed
        waiver, grant = Waiver.objects.get(), Grant.objects.get()
        assert (waiver.measured, waiver.floor, waiver.ends_at) == (Decimal(70), True, grant.ends_at)

    def test_a_waiver_covers_nothing_worse_and_ends_by_itself(self, soft: Ground) -> None:
        request = signing.ask(soft, waivers=[self.asked()])
        signing.sign(soft.owner, request, RISK)
        signing.sign(soft.security, request, RISK)
        waiver = Waiver.objects.get()
        ids = [soft.version.pk]
        assert live_waivers(ids, at=waiver.ends_at - timedelta(seconds=1)) == [waiver]
        assert live_waivers(ids, at=waiver.ends_at) == []
        news("72", 21)
        assert signing.ask(soft).dossier is not None, "what is better than what was waived is covered"
        news("69", 22)
        with pytest.raises(NotCleared, match="nobody asks to waive"):
            signing.ask(soft)
        news("75", 23)
        revoke_waiver(actor=signing.actor_of(soft.security), waiver=waiver, reason="no more")
        with pytest.raises(NotCleared, match="nobody asks to waive"):
            signing.ask(soft)

    def test_a_waiver_of_its_own_keeps_to_a_grant_that_stands(self, soft: Ground) -> None:
        request = signing.ask(soft, waivers=[self.asked()])
        signing.sign(soft.owner, request, RISK)
        signing.sign(soft.security, request, RISK)
        grant = Grant.objects.get()
        news("60", 21)
        given = {"actor": signing.actor_of(soft.asker), "grant": grant, "reason": "it fell", "waivers": [self.asked()]}
        with pytest.raises(InputRefused, match="no later than its grant"):
            request_waiver(**given, ends_at=grant.ends_at + timedelta(seconds=1))
        further = request_waiver(**given, ends_at=now() + timedelta(days=10))
        signing.sign(soft.owner, further, RISK)
        assert signing.sign(soft.security, further, RISK).completed
        assert Waiver.objects.filter(measured=60, request=further).count() == 1

    def test_a_waiver_is_not_signed_for_a_grant_that_ended_meanwhile(self, soft: Ground) -> None:
        request = signing.ask(soft, waivers=[self.asked()])
        signing.sign(soft.owner, request, RISK)
        signing.sign(soft.security, request, RISK)
        grant = Grant.objects.get()
        news("60", 21)
        further = request_waiver(
            actor=signing.actor_of(soft.asker),
            grant=grant,
            waivers=[self.asked()],
            ends_at=now() + timedelta(days=10),
            reason="it fell",
        )
        signing.sign(soft.owner, further, RISK)
        revoke_grant(actor=signing.actor_of(soft.security), grant=grant, reason="it leaks")
        with pytest.raises(DossierChanged):
            signing.sign(soft.security, further, RISK)
        with pytest.raises(NotCleared, match="is revoked"):
            signing.sign(soft.security, further, RISK)

    @pytest.mark.parametrize(
        ("change", "shown"),
        [
            ({"rule": "unheard-of"}, "no soft rule"),
            ({"policy": "another"}, "no soft rule"),
            ({"system": "it-prod"}, "no soft rule"),
            ({"reason": " "}, "say of each rule why"),
        ],
    )
    def test_what_cannot_be_waived_is_not_asked_for(self, soft: Ground, change: dict[str, str], shown: str) -> None:
        with pytest.raises((NotCleared, InputRefused), match=shown):
            signing.ask(soft, waivers=[self.asked(), self.asked(**change)] if "reason" not in change else [self.asked(**change)])

    def test_a_hard_rule_is_never_waived(self, land: Ground) -> None:
        news("70")
        with pytest.raises(NotCleared) as refused:
            signing.ask(land, waivers=[self.asked()])
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["blocked", "not_waivable"]

    def test_a_rule_of_several_comparisons_is_not_waived(self, soft: Ground) -> None:
        """One value would be accepted, and the others could fall as they like."""
        several = "any_of: [{evidence: refusal, at_least: 80}, {evidence: refusal, at_least: 85}], enforcement: soft"
        text = signing.TWO_KEYS.format(name="two-keys", bar=80, age="unlimited", enforcement="soft")
        world.activate(world.propose_text(text.replace("evidence: refusal, at_least: 80, enforcement: soft", several).encode()))
        world.judge_all()
        with pytest.raises(NotCleared) as refused:
            signing.ask(soft, waivers=[self.asked()])
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["not_waived", "not_waivable"]


class TestKeepingAGrantAlive:
    def test_a_renewal_takes_over_without_a_gap_and_shows_what_it_follows(self, land: Ground) -> None:
        grant = signing.granted(land, days=10)
        by = signing.actor_of(land.asker)
        request = request_renewal(actor=by, grant=grant, ends_at=now() + timedelta(days=80), reason="still needed")
        late = request_renewal(actor=by, grant=grant, ends_at=now() + timedelta(days=70), reason="asked twice")
        assert plain_value(bytes(request.dossier.content))["previous"] == {
            "grant": str(grant.uid),
            "dossier": grant.dossier.digest,
        }
        signing.sign(land.owner, request)
        assert grant.reload().status == GrantStatus.ACTIVE
        assert signing.sign(land.security, request).completed
        fresh = Grant.objects.get(renews=grant)
        assert (grant.reload().status, grant.cause, fresh.status) == (GrantStatus.EXPIRED, "renewed", GrantStatus.ACTIVE)
        ended = GrantEvent.objects.get(grant=grant, move="expired")
        assert ended.at == fresh.starts_at == GrantEvent.objects.get(grant=fresh).at
        with pytest.raises(Exception, match=r"renewed already|has changed"):
            signing.sign(land.owner, late)

    def test_a_grant_that_is_revoked_meanwhile_is_not_renewed(self, land: Ground) -> None:
        grant = signing.granted(land, days=10)
        request = renewal(land, grant)
        signing.sign(land.owner, request)
        revoke_grant(actor=signing.actor_of(land.security), grant=grant, reason="it leaks")
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        with pytest.raises(NotCleared, match="is revoked"):
            signing.sign(land.security, request)
        assert not Grant.objects.filter(renews=grant).exists()

    def test_a_grant_that_is_suspended_meanwhile_is_signed_anew_by_whoever_knows_it(self, land: Ground) -> None:
        grant = signing.granted(land, days=10)
        request = renewal(land, grant)
        signing.sign(land.owner, request)
        suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="it leaks")
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        assert request.reload().dossier.because == "changed: suspended"
        assert plain_value(bytes(request.dossier.content))["suspended"] == "taken_back"
        assert not signing.sign(land.security, request).completed
        assert signing.sign(land.owner, request).completed

    @pytest.mark.parametrize("ask", [request_renewal, request_recertification, request_reinstatement])
    def test_whoever_asked_for_a_grant_signs_nothing_that_keeps_it_alive(
        self, land: Ground, ask: Callable[..., SignOffRequest]
    ) -> None:
        ada = signing.human("Ada Asker", Role.REQUESTER, Role.SECURITY, team="apps")
        grant = signing.granted(land, account=ada)
        if ask is request_reinstatement:
            suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a look is needed")
        more = {"ends_at": now() + timedelta(days=80)} if ask is request_renewal else {}
        request = ask(actor=signing.actor_of(land.asker), grant=grant.reload(), reason="still needed", **more)
        with pytest.raises(SelfSignOffRefused):
            signing.sign(ada, request)
        signing.sign(land.owner, request)
        assert signing.sign(land.security, request).completed

    def test_a_suspended_grant_comes_back_by_its_quorum_alone(self, land: Ground) -> None:
        grant = signing.granted(land)
        by = signing.actor_of(land.asker)
        with pytest.raises(Exception, match="only a suspended grant"):
            request_reinstatement(actor=by, grant=grant, reason="x")
        suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="a look is needed")
        request = request_reinstatement(actor=by, grant=grant.reload(), reason="looked at")
        signing.sign(land.owner, request)
        assert grant.reload().status == GrantStatus.SUSPENDED
        assert signing.sign(land.security, request).completed
        assert (grant.reload().status, grant.dossier_id) == (GrantStatus.ACTIVE, request.reload().dossier_id)

    def test_a_recertification_moves_its_date_and_nothing_else(self, land: Ground) -> None:
        grant = signing.granted(land)
        before = grant.recertify_by
        request = request_recertification(actor=signing.actor_of(land.asker), grant=grant, reason="a month has passed")
        signing.sign(land.owner, request)
        assert signing.sign(land.security, request).completed
        after = Grant.objects.get()
        assert after.recertify_by > before
        assert (after.ends_at, after.starts_at, after.status) == (grant.ends_at, grant.starts_at, GrantStatus.ACTIVE)


class TestRequester:
    def test_what_somebody_asked_for_who_has_gone_is_asked_for_anew(self, land: Ground) -> None:
        request = signing.ask(land)
        signing.sign(land.owner, request)
        administrator = signing.actor_of(grants.administrator())
        deactivate_account(actor=administrator, user=land.asker, reason="her account was taken over")
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        with pytest.raises(NotCleared) as refused:
            signing.sign(land.security, request)
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["requester_gone"]
        reactivate_account(actor=administrator, user=land.asker, reason="it is hers again")
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        assert not signing.sign(land.security, request).completed
        assert signing.sign(land.owner, request).completed


class TestOutOfDate:
    def test_nothing_is_signed_on_a_verdict_that_time_has_overtaken(self, land: Ground) -> None:
        """Whoever judges anew may be silent: what it said before is no more than the gate itself would go by."""
        request = signing.ask(land)
        signing.sign(land.owner, request)
        with service_transaction("test"):
            Standing.objects.update(due_at=now())
        with pytest.raises(DossierChanged):
            signing.sign(land.security, request)
        with pytest.raises(NotCleared) as refused:
            signing.sign(land.security, request)
        assert [item["code"] for item in refused.value.facts["obstacles"]] == ["verdict_overdue"]
        with pytest.raises(NotCleared):
            signing.ask(land)


class TestTalkingAndTakingBack:
    def test_a_comment_is_no_signature(self, land: Ground) -> None:
        request = signing.ask(land)
        comment_on_request(actor=signing.actor_of(land.owner), request=request, text="narrow it, please", change_requested=True)
        assert request.comments.get().kind == "change_requested"
        assert not request.sign_offs.exists()
        with pytest.raises(InputRefused):
            comment_on_request(actor=signing.actor_of(land.owner), request=request, text="  ")

    def test_only_whoever_asked_takes_it_back_and_says_why(self, land: Ground) -> None:
        request = signing.ask(land)
        with pytest.raises(SignerNotEligible):
            withdraw_request(actor=signing.actor_of(land.owner), request=request, reason="no")
        with pytest.raises(InputRefused):
            withdraw_request(actor=signing.actor_of(land.asker), request=request, reason=" ")
        assert withdraw_request(actor=signing.actor_of(land.asker), request=request, reason="done without").status == "withdrawn"
        for later in (
            lambda: signing.sign(land.owner, request),
            lambda: comment_on_request(actor=signing.actor_of(land.owner), request=request, text="too late"),
        ):
            with pytest.raises(RequestClosed):
                later()
        assert LedgerEntry.objects.filter(action="request.withdrawn", target_id=str(request.uid)).count() == 1
