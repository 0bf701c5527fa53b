"""The demo's story: made-up people bring a policy into force and grant an access, each by her own account at the console."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from compliance.connections import write_secret
from compliance.management.visitor import Visitor
from compliance.models import Grant, SignOffRequest, User
from compliance.services.bundles import DEMO_MAIL
from compliance.vocabulary import GrantStatus, RequestKind, RequestStatus
from evaluations.importers.bundles import Bundle
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.models import SubjectVersion
from policies.models import PolicyVersion, System
from policies.selectors.policies import version_in_force

PASSWORD_BYTES = 12
DAYS = 60
AUTHOR, APPROVERS = "demo-arno", ("demo-paul", "demo-petra", "demo-priya")
ASKER, OWNER, SECURITY = "demo-rita", "demo-olga", "demo-samir"
REQUESTS = "/admin/compliance/signoffrequest"

Tell = Callable[[str], None]


class Cast:
    """The made-up people, with what each needs to sign in: kept in a file that only this user can read."""

    def __init__(self, path: Path, bundle: Bundle) -> None:
        self._path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.people: dict[str, dict[str, str]] = {
            person.key: known.get(person.key) or {"password": secrets.token_urlsafe(PASSWORD_BYTES), "secret": ""}
            for person in bundle.people
        }
        self._save()

    @property
    def passwords(self) -> Mapping[str, str]:
        return {key: held["password"] for key, held in self.people.items()}

    def refuse_strangers(self) -> None:
        """Refuse accounts that this file does not open: they were made before, and only administrators give new passwords."""
        for key, held in self.people.items():
            account = User.objects.filter(email=address_of(key)).first()
            if account is not None and not account.check_password(held["password"]):
                hint = "use a database of its own for the demo (WRITEGATE_DATA_DIR)"
                raise InputRefused([Problem(f"{account.email} has another password than {self._path.name} holds", hint=hint)])

    def enter(self, address: str, key: str) -> Visitor:
        """Sign somebody in; the first time she adds an authenticator app."""
        held = self.people[key]
        visitor = Visitor(address, email=address_of(key), password=held["password"], secret=held["secret"])
        visitor.sign_in()
        if not held["secret"]:
            held["secret"] = visitor.add_authenticator()
            self._save()
        return visitor

    def _save(self) -> None:
        write_secret(self._path, json.dumps(self.people, indent=1, sort_keys=True) + "\n")


def address_of(key: str) -> str:
    """Return the address under which a made-up person signs in."""
    return f"{key}@{DEMO_MAIL}"


def bring_into_force(address: str, cast: Cast, version: PolicyVersion, tell: Tell) -> None:
    """Have the author ask for the activation, and three approvers sign it; nothing happens where the version is in force."""
    in_force = version_in_force(version.policy)
    if in_force is not None and in_force.pk == version.pk:
        tell(f"{version.policy.name} v{version.number} is in force")
        return
    _get_ready(address, cast, APPROVERS, tell)
    request = _open_request(RequestKind.ACTIVATION, policy_version=version)
    if request is None:
        author = cast.enter(address, AUTHOR)
        author.submit(f"{REQUESTS}/ask/activation/{version.pk}/", having="reason", reason="The demo needs a policy in force.")
        request = _filed(RequestKind.ACTIVATION, policy_version=version)
        tell(f"Arno Author asks that {version.policy.name} v{version.number} comes into force")
    for key in APPROVERS:
        _sign(address, cast, key, request, "I read the text and its tests.", tell)


def grant_access(address: str, cast: Cast, version: SubjectVersion, system: System, tell: Tell) -> Grant:
    """Have somebody ask for write access, and the owner and security sign it; return the grant, which may have been there."""
    held = Grant.objects.filter(subject_version=version, status=GrantStatus.ACTIVE, ends_at__gt=now()).first()
    if held is not None:
        return held
    _get_ready(address, cast, (OWNER, SECURITY), tell)
    request = _open_request(RequestKind.GRANT, subject_version=version)
    if request is None:
        ends_at = now() + timedelta(days=DAYS)
        cast.enter(address, ASKER).submit(
            f"{REQUESTS}/ask/access/",
            having="subject_version",
            subject_version=version.pk,
            systems=[system.pk],
            actions="write",
            ends_at=f"{ends_at:%Y-%m-%dT%H:%M}",
            reason="The nightly sync keeps the records of new colleagues up to date.",
        )
        request = _filed(RequestKind.GRANT, subject_version=version)
        tell(f"Rita Requester asks: may {version.subject.key} write to {system.title}?")
    _sign(address, cast, OWNER, request, "I own these records; the reach is what we agreed on.", tell)
    _sign(address, cast, SECURITY, request, "Both bounds clear their bars, and the evidence is recent.", tell)
    return Grant.objects.get(request=request)


def _get_ready(address: str, cast: Cast, keys: Sequence[str], tell: Tell) -> None:
    """Have those who will sign add an authenticator app: who has none does not count, and too few make a request refused at once."""
    for key in keys:
        if not cast.people[key]["secret"]:
            cast.enter(address, key)
            tell(f"{_name(key)} signs in and adds an authenticator app")


def _name(key: str) -> str:
    return key.removeprefix("demo-").title()


def _sign(address: str, cast: Cast, key: str, request: SignOffRequest, reason: str, tell: Tell) -> None:
    if request.sign_offs.filter(account__email=address_of(key), dossier=request.dossier).exists():
        return
    visitor = cast.enter(address, key)
    page = f"{REQUESTS}/{request.pk}/change/"
    visitor.prove(page)
    visitor.submit(page, having="meaning", meaning="approved", reason=reason)
    request.refresh_from_db()
    tell(f"{_name(key)} signs, by password and authenticator app: {reason}")


def _open_request(kind: RequestKind, **about: Any) -> SignOffRequest | None:
    found = SignOffRequest.objects.filter(kind=kind, status=RequestStatus.OPEN, expires_at__gt=now(), **about)
    return found.order_by("-id").first()


def _filed(kind: RequestKind, **about: Any) -> SignOffRequest:
    request = _open_request(kind, **about)
    if request is None:
        raise InputRefused([Problem("the console filed no request: see what its page said")])
    return request
