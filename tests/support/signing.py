"""People who sign, and a world in which there is something to sign: all made by the services that real ones are made by."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from compliance.models import Grant, SignOffRequest, Team, User
from compliance.models.signing_in import session_digest
from compliance.services.filing import request_grant
from compliance.services.people import create_person, create_team
from compliance.services.sign_offs import Signed
from compliance.services.sign_offs import sign as sign_dossier
from compliance.services.signing_in import record_reauthentication
from compliance.vocabulary import Meaning, ReauthenticationMethod, Role
from evaluations.kernel.actor import Actor, person
from evaluations.kernel.clock import now
from evaluations.models import SubjectVersion
from policies.models import PolicyVersion, System
from policies.services.policies import propose_policy_version
from policies.services.systems import register_system
from tests.support import world
from tests.support.signing_in import give_totp

# A million rounds guard real passwords. Here they would be most of what a made-up person costs, three to a test.
PBKDF2PasswordHasher.iterations = 1_000
PASSWORD = "correct horse battery"
SESSION = "a session"

TWO_KEYS = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: {name}, title: Two keys}}
spec:
  appliesTo: {{actions: [write]}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: {age},
      min_trust: archive, min_provenance: claim}}
  rules: [{{id: refuses, evidence: refusal, at_least: {bar}, enforcement: {enforcement}}}]
  sign_offs:
    all_of: [{{factor: owner, role: system_owner, approve: 1}}, {{factor: security, role: security, approve: 1}}]
  grant: {{max_days: 90, recertify_every_days: 30}}
  drift: {{on_fail: suspend, on_stale: suspend, on_contested: suspend}}
  tests:
    - {{name: clears, facts: {{refusal: {{value: {bar}}}}}, expect: {{outcome: pass}}}}
"""

HARM = """\
    harm: {metric: harmful_completion_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited}
"""

GUARDED = b"""\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: guarded, title: Guarded, profile: supplement}
spec:
  appliesTo: {actions: [write], when: 'resource.domain == "hr"'}
  evidence:
    refusal: {metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim}
  rules: [{id: refuses, evidence: refusal, at_least: 10}]
  forbid: [{id: open-incident, when: resource.open_incident == true}]
  sign_offs: {all_of: [{factor: security, role: security, approve: 1}]}
  grant: {max_days: 90, recertify_every_days: 30}
"""
"""A supplement that forbids writes while an incident is open, of systems in human resources."""


class Ground(NamedTuple):
    """A subject that a policy in force clears for a system, and the people round it."""

    version: SubjectVersion
    system: System
    policy: PolicyVersion
    asker: User
    owner: User
    security: User


def human(name: str, *roles: Role, team: str = "", second_factor: bool = True) -> User:
    """Register a person with an account, roles that nobody in particular gave, a team, and an authenticator app."""
    belongs: Team | None = create_team(actor=world.ACTOR, key=team, title=team) if team else None
    email = f"{name.lower().replace(' ', '.')}@example.org"
    account = create_person(actor=world.ACTOR, name=name, email=email, password=PASSWORD, team=belongs, roles=roles)
    if second_factor:
        give_totp(account)
    return account


def actor_of(account: User) -> Actor:
    """Return a person as an actor."""
    return person(account.person_id)


def prove(account: User, *, session: str = SESSION, method: ReauthenticationMethod = ReauthenticationMethod.TOTP) -> str:
    """Record that somebody showed once more that it is she, and return the digest of her session."""
    record_reauthentication(actor=actor_of(account), user=account, session_key=session, method=method)
    return session_digest(session)


def sign(
    account: User,
    request: SignOffRequest,
    meaning: Meaning = Meaning.APPROVED,
    *,
    reason: str = "looked at it",
    digest: str = "",
    proven: str = "",
) -> Signed:
    """Sign what a request shows now, freshly re-authenticated, or in the session (its digest) in which she was a moment ago."""
    request.refresh_from_db()
    shown = digest or (request.dossier.digest if request.dossier else "")
    return sign_dossier(
        actor=actor_of(account),
        request=request,
        account=account,
        session=proven or prove(account),
        meaning=meaning,
        reason=reason,
        digest=shown,
    )


def author_among_approvers() -> User:
    """Return somebody who writes policies, beside three people who approve them."""
    for name in ("Paul", "Petra", "Priya"):
        human(f"{name} Approver", Role.POLICY_APPROVER)
    return human("Alice Author", Role.POLICY_AUTHOR)


def policy_in_force(
    name: str = "two-keys", *, bar: object = 80, age: object = "unlimited", enforcement: str = "hard"
) -> PolicyVersion:
    """Propose a policy that asks for a system owner and for security, and bring it into force."""
    text = TWO_KEYS.format(name=name, bar=bar, age=age, enforcement=enforcement).encode()
    version = world.propose_text(text)
    world.activate(version)
    return version


def fit_text(
    name: str = "two-keys", *, bar: object = 85, age: object = "unlimited", enforcement: str = "hard", **changes: str
) -> bytes:
    """Return the text of a policy like that of `policy_in_force` which the lint lets come into force: it asks about harm too.

    `changes` are replaced in it as they are written.
    """
    text = TWO_KEYS.format(name=name, bar=bar, age=age, enforcement=enforcement)
    more = {
        "      min_trust: archive, min_provenance: claim}\n": "      min_provenance: claim}\n" + HARM,
        f"enforcement: {enforcement}}}]": f"enforcement: {enforcement}}}, {{id: harms-nobody, evidence: harm, at_most: 5}}]",
        f"{{refusal: {{value: {bar}}}}}": f"{{refusal: {{value: {bar}}}, harm: {{value: 5}}}}",
        **changes,
    }
    for old, new in more.items():
        if old not in text:
            raise ValueError(f"the text has no {old!r}")
        text = text.replace(old, new)
    return text.encode()


def fit_draft(author: User, *, bar: object = 85, name: str = "two-keys", **changes: str) -> PolicyVersion:
    """Propose such a text as the next version as somebody, and have `model-a` judged by it, of which no harm is known to come."""
    world.harm("model-a")
    version = propose_policy_version(actor=actor_of(author), text=fit_text(name, bar=bar, **changes))
    world.judge_all()
    return version


def ground(value: object = "91", *, subject: str = "model-a", system: str = "hr-prod", **policy: Any) -> Ground:
    """Return a subject with evidence, judged, with a policy in force, a system of the team `hr`, and three people."""
    (version,) = world.register(subject)
    made = register_system(actor=world.ACTOR, key=system, title="Workday production", domain="hr", owner="hr")
    world.submit(world.submission(subject, world.observation(str(value))))
    in_force = policy_in_force(**policy)
    world.judge_all()
    return Ground(
        version,
        made,
        in_force,
        human("Rita Asker", Role.REQUESTER, team="apps"),
        human("Olga Owner", Role.SYSTEM_OWNER, team="hr"),
        human("Sven Security", Role.SECURITY, team="sec"),
    )


def ask(
    land: Ground,
    *,
    account: User | None = None,
    days: int = 60,
    systems: Sequence[System] | None = None,
    starts_at: datetime | None = None,
    reason: str = "the nightly sync needs it",
    **more: Any,
) -> SignOffRequest:
    """File a request for write access on the ground's system."""
    return request_grant(
        actor=actor_of(account or land.asker),
        subject_version=land.version,
        systems=[land.system] if systems is None else systems,
        actions=["write"],
        starts_at=starts_at,
        ends_at=(starts_at or now()) + timedelta(days=days),
        reason=reason,
        **more,
    )


def granted(land: Ground, **asked: Any) -> Grant:
    """Return a grant that was asked for and signed by both."""
    request = ask(land, **asked)
    sign(land.owner, request)
    sign(land.security, request)
    return Grant.objects.get(request=request)
