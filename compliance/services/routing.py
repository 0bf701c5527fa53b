"""What gateways serve: inventories handed in, their routes registered, and people told where one reaches what is not cleared.

What is told follows from what stands now and has a unique key, so that it can be looked for twice, late, or twice at once.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from compliance.models import RoutingInventory
from compliance.selectors.routing import (
    ROUTE_CHECK,
    Served,
    newest_inventories,
    newest_inventory,
    route_keys,
    routes_of,
    running_routes,
    served_by,
)
from compliance.selectors.running import running_version
from compliance.services.beats import record_beat
from compliance.services.idempotency import IdempotencyKeyReused, apply_claim_key, apply_use_key
from compliance.services.registrations import RoleMissing
from compliance.services.route_drift import apply_tell_of_routes
from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import canonical_bytes, digest, digest_of
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.names import check_key, key_problem
from evaluations.kernel.services import service
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import pinned_parts
from evaluations.services.agents import apply_register_route
from evaluations.vocabulary import SubjectKind
from policies.language.routing import EVERY_NAME
from policies.language.routing_forms import LITELLM, form_of, names_in, read_routing

BODY_NAME = "config.yaml"
_REFERENCE = "routing_inventory "


class Imported(NamedTuple):
    """What handing in an inventory gave. `is_new` is false where the one in effect was the same; `registered` are the versions that
    its routes run as from now on, `told` how many paths people were told of."""

    inventory: RoutingInventory
    is_new: bool
    registered: tuple[str, ...]
    told: int


class Reconciled(NamedTuple):
    """How many names were looked at, which route versions are new, and of how many paths people were told."""

    routes: int
    registered: tuple[str, ...]
    told: int


@service(refused="routing.refused")
def import_routes(
    *,
    actor: Actor,
    body: bytes,
    name: str | None = None,
    filename: str = BODY_NAME,
    kinds: Collection[str] = SubjectKind.values,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> Imported:
    """Keep what a gateway serves, register its routes, and tell of paths that are newly not cleared.

    `body` is in one of the forms of `routing_forms`; `name` is the gateway's, by default that of the form; `kinds` are the kinds of
    subjects that the caller may register. Each name of the file becomes a route, with a new version when what answers behind it has
    changed; one that is no longer served becomes an open one. Raises `InputRefused` naming lines, and every name that is no key;
    `RoleMissing`, `IdempotencyKeyReused`.
    """
    if name is not None:
        check_key(name, field="name")
    _refuse_kinds(kinds)
    document = read_routing(body, filename=filename)
    name = name or form_of(document)
    content = canonical_bytes(document)
    _refuse_names(names_in(document), filename, "model_name" if form_of(document) == LITELLM else "openrouter_routes")
    if idempotency_key is None:
        return _import(actor, name, content, request_id)
    # Over what is kept, so that no password of the file is behind a digest.
    claim = {"caller": actor.reference, "key": idempotency_key, "request_digest": digest(["routing", name, digest_of(content)])}
    known = apply_claim_key(**claim)
    if known is not None:
        if not known.startswith(_REFERENCE):
            raise IdempotencyKeyReused("this Idempotency-Key was used for something else; take a new key")
        uid, is_new = known.removeprefix(_REFERENCE).split(" ")
        inventory = RoutingInventory.objects.select_related("previous").get(uid=UUID(uid))
        return Imported(inventory, is_new == "new", (), 0)
    made = _import(actor, name, content, request_id)
    apply_use_key(**claim, reference=f"{_REFERENCE}{made.inventory.uid} {'new' if made.is_new else 'known'}")
    return made


def read_import(body: bytes, *, name: str | None) -> tuple[str | None, bytes]:
    """Return the gateway's name, and the text, of a JSON body `{name, content}`; `name` where it gives none. Raises `InputRefused`.

    A body may hold passwords, so nothing of it is repeated.
    """
    try:
        given = json.loads(body, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        given = None
    content = given.get("content") if isinstance(given, dict) else None
    if not isinstance(content, str) or not isinstance(given.get("name", ""), str) or not set(given) <= {"name", "content"}:
        hint = (
            'send `{"name": "…", "content": "…"}` with the text of the file in `content`, or the file itself as application/yaml'
        )
        raise InputRefused([Problem("the body is no object with `content`, and perhaps `name`", field="content", hint=hint)])
    try:
        return given.get("name", name), content.encode()
    except UnicodeEncodeError:
        raise InputRefused([Problem("it holds half of a surrogate pair", field="content", code="encoding")]) from None


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


@service(refused="routing.refused")
def reconcile_routes(*, actor: Actor, kinds: Collection[str] = SubjectKind.values) -> Reconciled:
    """Hold the inventories in effect against what their names mean and what is granted now: names move without a new inventory.

    `kinds` are the kinds of subjects that the caller may register. Raises `RoleMissing`.
    """
    _refuse_kinds(kinds)
    _one_at_a_time()
    at = now()
    inventories = newest_inventories()
    served = served_by(inventories, at=at)
    registered = _register(actor, served, {each.route.name for each in served})
    told = apply_tell_of_routes(actor=actor, inventories=inventories, served=served, at=at)
    record_beat(name=ROUTE_CHECK, beat_at=at)
    return Reconciled(len(served), registered, told)


def _import(actor: Actor, name: str, content: bytes, request_id: str) -> Imported:
    _one_at_a_time()
    before = newest_inventory(name=name)
    if before is not None and before.digest == digest_of(content):
        return Imported(before, False, (), 0)
    inventory = RoutingInventory(
        name=name, digest=digest_of(content), content=content, previous=before, imported_by=actor.reference
    )
    inventory.save()
    routes = routes_of(inventory)
    audit.record(
        audit.Event(
            action="routing.imported",
            actor=actor,
            target=("routing_inventory", str(inventory.uid)),
            old=None if before is None else {"inventory": str(before.uid)},
            new={"name": name, "routes": len(routes), "open": sum(not route.closed for route in routes)},
            digests={"routing_inventory": inventory.digest},
            request_id=request_id,
        )
    )
    at = now()
    inventories = newest_inventories()
    served = served_by(inventories, at=at)
    names = {route.name for route in routes}
    gone = {route.name for route in routes_of(before)} - names if before is not None else set()
    registered = _register(actor, served, names | gone, request_id)
    told = apply_tell_of_routes(actor=actor, inventories=inventories, served=served, at=at)
    return Imported(inventory, True, registered, told)


def _refuse_kinds(kinds: Collection[str]) -> None:
    if SubjectKind.ROUTE not in kinds:
        raise RoleMissing("no role of yours may register a route")


def _one_at_a_time() -> None:
    """Wait for whoever hands in or reconciles: which inventory is in effect is part of what is done."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('routing', 2))")


def _refuse_names(names: Iterable[str], filename: str, field: str) -> None:
    """Refuse names that can be no key of a route. A wildcard is none either; it is kept, and reported as open."""
    problems = []
    for name in names:
        if EVERY_NAME in name:
            continue
        problem = key_problem(name, field=field)
        if problem is None and name.rpartition("@")[2].isdigit() and "@" in name:
            problem = Problem(f"`{name}` ends like a version", field=field, hint="leave out the `@` and the number")
        if problem is not None:
            problems.append(problem._replace(file=filename))
    if problems:
        raise InputRefused(problems)


def _register(actor: Actor, served: Sequence[Served], names: Collection[str], request_id: str = "") -> tuple[str, ...]:
    """Register the version that each of these names runs as now, where it runs as another; return those as `key@number`.

    A name that several gateways serve is one route, which reaches what any of them reaches. One behind which nothing is registered,
    and which never was a route, stays out: nobody could ask for it.
    """
    keys = route_keys(names)
    running = running_routes(keys.values())
    by_name: defaultdict[str, list[Served]] = defaultdict(list)
    for each in served:
        by_name[each.route.name].append(each)
    registered = []
    for name in sorted(keys):
        wanted = _wanted(by_name[name])
        version = running.get(keys[name])
        if (version is None and not wanted.members) or (version is not None and wanted.is_what_runs(version)):
            continue
        made = apply_register_route(
            actor=actor,
            key=keys[name],
            title=name,
            candidate=False,
            models=sorted(wanted.members.values()),
            closed=wanted.closed,
            deployments=wanted.deployments,
            request_id=request_id,
            running=running_version,
        )
        registered.append(f"{made.subject.key}@{made.version.number}")
    return tuple(registered)


class _Wanted(NamedTuple):
    """What a route is to be registered as: members by row id, each as `key@number`, and what is written behind it."""

    members: Mapping[int, str]
    deployments: tuple[str, ...]
    closed: bool

    def is_what_runs(self, version: SubjectVersion) -> bool:
        """True where a version says just this. Its digest would say so too, and nothing but its parts is at hand."""
        reached = {link.member_id for link in version.members.all()}
        pinned = pinned_parts(version).get("deployments")
        # One that was registered by hand pins no deployments: who answers is all it says.
        same = pinned is None or tuple(pinned) == self.deployments
        return same and version.closed == self.closed and reached == self.members.keys()


def _wanted(served: Sequence[Served]) -> _Wanted:
    reached = [item for each in served for item in each.reached]
    return _Wanted(
        {item.version.pk: item.cite for item in reached if item.version is not None},
        tuple(sorted({item.member.written for item in reached})),
        bool(served) and all(each.closed for each in served),
    )
