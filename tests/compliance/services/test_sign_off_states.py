"""One request under everything that can happen to it, in any order: whatever comes, an active grant has its quorum."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from compliance.models import Grant, RoleMembership, SignOff, SignOffRequest, User
from compliance.selectors.dossiers.build import build_dossier
from compliance.selectors.signers import read_quorum
from compliance.services.accounts import deactivate_account, reactivate_account
from compliance.services.roles import end_role, give_role
from compliance.services.sign_offs import complete_request, refresh_dossier, withdraw_request
from compliance.vocabulary import Meaning, RequestStatus, Role
from evaluations.kernel.clock import now
from evaluations.kernel.errors import DomainError
from tests.support import signing, world
from tests.support.signing import Ground
from tests.support.undoing import undone
from tests.support.unsigned import unsigned_grants

WHO = st.sampled_from(["asker", "owner", "second owner", "security", "both"])
MEANINGS = st.sampled_from([Meaning.APPROVED] * 3 + [Meaning.REVIEWED, Meaning.WITHDRAWN, Meaning.ACCEPTED_RESIDUAL_RISK])


class OneRequest(RuleBasedStateMachine):
    """Everybody tries everything. A refusal is an answer; what counts is what stands afterwards."""

    land: Ground
    people: dict[str, User]
    admin: User
    ends: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._undone = undone()
        self._undone.__enter__()

    def teardown(self) -> None:
        if hasattr(self, "request"):
            self.ends[self.request.reload().status] += 1
        self._undone.__exit__(None, None, None)

    @initialize()
    def ask(self) -> None:
        self.day = 10
        self.request = signing.ask(self.land, account=self.people["asker"])

    @rule(count=st.integers(1, 2))
    def sign_next(self, count: int) -> None:
        """Let those approve who are shown as the ones who may: else a grant would come about too seldom."""
        for _ in range(count):
            request = SignOffRequest.objects.select_related("dossier").get(pk=self.request.pk)
            at = now()
            may = read_quorum(request, build_dossier(request, at=at), request.dossier, at=at).assessment.may_sign
            ready = [account for account in self.people.values() if str(account.person_id) in may]
            if ready:
                self.attempt(partial(signing.sign, ready[0], request))

    @rule(who=WHO, meaning=MEANINGS)
    def sign(self, who: str, meaning: Meaning) -> None:
        self.attempt(lambda: signing.sign(self.people[who], self.request, meaning))

    @rule(who=st.sampled_from(["security", "both"]))
    def reject(self, who: str) -> None:
        if self.day > 11:
            self.attempt(lambda: signing.sign(self.people[who], self.request, Meaning.REJECTED))

    @rule(who=WHO)
    def end_a_role(self, who: str) -> None:
        held = RoleMembership.objects.filter(person=self.people[who].person_id, ends_at=None).first()
        if held is not None:
            self.attempt(lambda: end_role(actor=signing.actor_of(self.admin), membership=held))

    @rule(who=WHO, role=st.sampled_from([Role.SYSTEM_OWNER, Role.SECURITY]), by_asker=st.booleans())
    def give_a_role(self, who: str, role: Role, by_asker: bool) -> None:
        giver = self.people["asker"] if by_asker else self.admin
        self.attempt(lambda: give_role(actor=signing.actor_of(giver), person=self.people[who].person, role=role))

    @rule(who=WHO)
    def close_or_open_an_account(self, who: str) -> None:
        user = User.objects.get(pk=self.people[who].pk)
        move = deactivate_account if user.is_active else reactivate_account
        self.attempt(lambda: move(actor=signing.actor_of(self.admin), user=user, reason="in turn"))

    @rule(value=st.sampled_from(["82", "95", "40"]))
    def news(self, value: str) -> None:
        self.day += 1
        ended = {"status": "complete", "ended_at": f"2026-11-{self.day:02}T00:00:00Z"}
        if self.day < 28:
            world.submit(world.submission("model-a", world.observation(value), run=ended))
            world.judge_all()

    @rule()
    def refresh(self) -> None:
        self.attempt(lambda: refresh_dossier(actor=world.ACTOR, request=self.request))

    @rule()
    def complete(self) -> None:
        self.attempt(lambda: complete_request(actor=signing.actor_of(self.people["asker"]), request=self.request))

    @rule()
    def take_back(self) -> None:
        if self.day > 12:
            self.attempt(
                lambda: withdraw_request(actor=signing.actor_of(self.people["asker"]), request=self.request, reason="enough")
            )

    @invariant()
    def a_grant_has_its_quorum(self) -> None:
        if not hasattr(self, "request"):
            return
        assert unsigned_grants() == []
        status = SignOffRequest.objects.get(pk=self.request.pk).status
        assert Grant.objects.filter(request=self.request).exists() == (status == RequestStatus.COMPLETED)
        assert not SignOff.objects.filter(request=self.request, person=self.people["asker"].person_id).exists()

    def attempt(self, act: Callable[[], object]) -> None:
        with suppress(DomainError):
            act()


@pytest.mark.parametrize(("examples", "steps"), [(12, 15), pytest.param(60, 25, marks=pytest.mark.slow)])
def test_whatever_happens_an_active_grant_has_a_full_quorum(
    django_db_setup: None, django_db_blocker, examples: int, steps: int
) -> None:
    with django_db_blocker.unblock(), undone():
        OneRequest.land = land = signing.ground()
        OneRequest.admin = signing.human("Ada Admin", Role.ADMINISTRATOR)
        OneRequest.people = {
            "asker": signing.human("Zoe Mighty", *Role, team="hr"),
            "owner": land.owner,
            "second owner": signing.human("Oda Second", Role.SYSTEM_OWNER, team="hr"),
            "security": land.security,
            "both": signing.human("Bea Both", Role.SYSTEM_OWNER, Role.SECURITY, team="hr"),
        }
        run_state_machine_as_test(
            OneRequest,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=timedelta(seconds=60),
                suppress_health_check=list(HealthCheck),
                derandomize=True,
                database=None,
            ),
        )
    assert OneRequest.ends[RequestStatus.COMPLETED], (
        f"no order of events ended in a grant, so nothing was tried: {OneRequest.ends}"
    )
