"""What every dossier has: canonical content, a quorum, and the people who had a part in what is signed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef

from compliance.models import Dossier, Person, ServiceToken, SignOffRequest, User
from compliance.selectors.access import live_roles
from compliance.selectors.proposals import plain_value
from evaluations.kernel.actor import ActorKind
from evaluations.kernel.canonical import canonical_bytes, digest_of
from policies.language.compiled import Factor, SignOffs
from policies.language.results import EXCLUSIONS
from policies.models import System

FORMAT = "writegate-dossier/1"
REQUESTER, EVIDENCE_SUBMITTER, POLICY_AUTHOR = "requester", "evidence_submitter", "policy_author"
NAME_SETTLER = "name_settler"
"""Whoever settled that a name in such evidence means the subject: part of what the exclusion of `evidence_submitter` bars."""
SOURCE_SUBMITTER = "source_submitter"
"""Whoever stands behind what a source has handed in. No policy speaks of it: the trust in a source is judged by none."""


class Obstacle(NamedTuple):
    """Why a dossier cannot be approved as things stand: a code, and one sentence."""

    code: str
    sentence: str


REQUESTER_GONE = Obstacle(
    "requester_gone", "whoever asked for this has no active account any more: somebody else is to ask for it anew"
)


class Built(NamedTuple):
    """A dossier as it would be recorded now.

    `excluded` says, by person, which part she had in what is signed. `asks` are the facts that signers' filters read (without
    `signer`), one for each system. `obstacles` is empty where it may be approved. `risk_accepted` is true where a signature must
    accept a residual risk by that name, because soft rules are to be waived.
    """

    value: Mapping[str, Any]
    content: bytes
    quorum: SignOffs
    excluded: Mapping[UUID, str]
    asks: tuple[Mapping[str, Any], ...]
    systems: tuple[System, ...]
    obstacles: tuple[Obstacle, ...] = ()
    risk_accepted: bool = False

    @property
    def digest(self) -> str:
        return digest_of(self.content)


def close_dossier(
    request: SignOffRequest,
    body: Mapping[str, Any],
    *,
    quorum: SignOffs,
    excluded: Mapping[UUID, str],
    asks: Sequence[Mapping[str, Any]],
    systems: Sequence[System] = (),
    obstacles: Sequence[Obstacle] = (),
    risk_accepted: bool = False,
) -> Built:
    """Return the dossier with the parts that all kinds share put round its body."""
    value = {
        "format": FORMAT,
        "kind": str(request.kind),
        "request": str(request.uid),
        "requester": str(request.requester_id),
        "reason": request.reason,
        **body,
        "obstacles": [item._asdict() for item in obstacles],
        "quorum": quorum_value(quorum),
        "excluded": [{"person": str(person), "because": because} for person, because in sorted(excluded.items())],
    }
    return Built(value, canonical_bytes(value), quorum, excluded, tuple(asks), tuple(systems), tuple(obstacles), risk_accepted)


def difference_between(dossier: Dossier, built: Built) -> str:
    """Return which parts of a recorded dossier would be recorded otherwise now, in its own words."""
    before, after = plain_value(bytes(dossier.content)), plain_value(built.content)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return f"changed: {', '.join(changed).replace('_', ' ')}"


def quorum_value(quorum: SignOffs) -> dict[str, Any]:
    """Return a quorum as dossiers hold it."""
    return {
        "all_of": [
            {
                "factor": factor.factor,
                "role": factor.role,
                "approve": factor.approve,
                "filter": factor.filter.text if factor.filter else None,
            }
            for factor in quorum.all_of
        ],
        "exclude": list(quorum.exclude),
        "reauthenticate_within_minutes": quorum.reauthenticate_within_minutes,
        "request_expires_after_hours": quorum.request_expires_after_hours,
    }


def floor_quorum(name: str) -> SignOffs:
    """Return one of the floors of the settings: what no policy's own sign-offs can go below."""
    factors = tuple(Factor(factor, role, approve, None) for factor, role, approve in settings.SIGN_OFF_FLOORS[name])
    return SignOffs(factors, EXCLUSIONS, settings.SIGN_OFF_MINUTES, settings.SIGN_OFF_HOURS)


class Requester(NamedTuple):
    """What conditions may read about whoever asked, and what stands against asking."""

    facts: Mapping[str, Any]
    obstacles: tuple[Obstacle, ...]


def read_requester(request: SignOffRequest, *, at: datetime) -> Requester:
    """Return the requester of what is signed. She may have left since, or somebody else may have asked by her account."""
    active = Exists(User.objects.filter(person_id=OuterRef("pk"), is_active=True))
    person = Person.objects.select_related("team").annotate(has_account=active).get(pk=request.requester_id)
    facts = person_facts(person, {membership.role for membership in live_roles(person_id=person.pk, at=at)})
    return Requester(facts, () if person.has_account else (REQUESTER_GONE,))


def person_facts(person: Person, roles: Iterable[str]) -> dict[str, Any]:
    """Return a person as conditions read her: key, kind, team and roles."""
    return {"key": str(person.pk), "kind": "person", "team": person.team.key if person.team else "", "roles": sorted(roles)}


def excluded_people(
    request: SignOffRequest,
    quorum: SignOffs,
    *,
    submitters: Iterable[str] = (),
    settlers: Iterable[str] = (),
    authors: Iterable[str] = (),
    behind_source: Iterable[str] = (),
) -> dict[UUID, str]:
    """Return who had a part in what is signed, and which. The requester always did, whatever the policy says, and so did whoever asked
    for the grant that it is about.

    `submitters`, `settlers`, `authors` and `behind_source` are references to actors as rows cite them; for a token the person behind
    it is meant.
    """
    parts = {
        SOURCE_SUBMITTER: set(behind_source),
        EVIDENCE_SUBMITTER: set(submitters) if EVIDENCE_SUBMITTER in quorum.exclude else set(),
        NAME_SETTLER: set(settlers) if EVIDENCE_SUBMITTER in quorum.exclude else set(),
        POLICY_AUTHOR: set(authors) if POLICY_AUTHOR in quorum.exclude else set(),
    }
    people = people_behind(set().union(*parts.values()))
    excluded: dict[UUID, str] = {request.requester_id: REQUESTER}
    if request.grant is not None:
        excluded[request.grant.requester_id] = REQUESTER
    for part, references in parts.items():
        for reference in sorted(references):
            person = people.get(reference)
            if person is not None:
                excluded.setdefault(person, part)
    return excluded


def people_behind(references: Iterable[str]) -> dict[str, UUID]:
    """Return the person behind each actor as rows cite it; system jobs have none."""
    found: dict[str, UUID] = {}
    tokens: dict[UUID, str] = {}
    for reference in references:
        kind, _, identifier = reference.partition(":")
        try:
            uid = UUID(identifier)
        except ValueError:
            continue
        if kind == ActorKind.PERSON.value:
            found[reference] = uid
        elif kind == ActorKind.SERVICE.value:
            tokens[uid] = reference
    if tokens:
        for token, person in ServiceToken.objects.filter(pk__in=tokens).values_list("pk", "person_id"):
            found[tokens[token]] = person
    return found
