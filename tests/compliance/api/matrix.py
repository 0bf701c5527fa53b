"""The permission matrix: every endpoint of the URL map, asked by everybody, about an object of her own and about somebody else's."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import timedelta
from typing import Any, NamedTuple
from unittest.mock import patch

from django.apps import apps
from django.core.cache import cache
from django.http import HttpResponse
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import URLPattern, get_resolver, path

from compliance.api.authzen import limits
from compliance.api.authzen.doors import DOORS, PREFIX, TASK_ADDRESSES
from compliance.models import (
    Decision,
    Grant,
    LedgerEntry,
    RoleMembership,
    RoutingInventory,
    ServiceToken,
    SignOffRequest,
    User,
    Waiver,
)
from compliance.selectors.history import version_of_grant
from compliance.selectors.naming import touched_by
from compliance.selectors.proposals import AskedWaiver
from compliance.selectors.requests import version_of_request
from compliance.selectors.waivers import version_of_waiver
from compliance.services.people import create_token
from compliance.vocabulary import Meaning, Role
from evaluations.kernel.clock import now
from evaluations.models import Document, Evidence, RefreshRun, SourceSchedule, SubjectVersion
from evaluations.selectors.refreshing import schedule_digest
from evaluations.services.refresh import request_refresh
from policies.models import Policy, PolicyVersion, System, Verdict
from policies.services.systems import register_system, system_digest
from tests.compliance.api.authzen.doors import question
from tests.support import routing, signing, world
from tests.support.asking import ask_gate, ask_token
from tests.support.sources import scheduled
from tests.support.undoing import undone

PARTS = {
    "api": ("api/v1/",),
    "doors": ("access/v1/", ".well-known/"),
    "compliance": ("admin/compliance/",),
    "evaluations": ("admin/evaluations/",),
    "policies": ("admin/policies/",),
    "pages": ("ledger/", "accounts/", "admin/"),
}
"""Prefixes of routes by part; a route belongs to the first one that it begins with."""
TOKENS: Mapping[str, Mapping[str, list[str]]] = {
    "api": {
        "token:read": ["read"],
        "token:request": ["request"],
        "token:own": ["read:hr-prod", "request:hr-prod", "decide:hr-prod"],
        "token:foreign": ["read:it-prod", "request:it-prod", "decide:it-prod"],
    },
    "doors": {
        "token:read": ["read"],
        "token:decide": ["decide"],
        "token:request": ["request"],
        "token:own": ["decide:hr-prod", "request:hr-prod"],
        "token:foreign": ["decide:it-prod", "request:it-prod"],
    },
}
SIDES = ("own", "foreign")
NOBODYS = "00000000-0000-4000-8000-000000000000"
REASON = {"reason": "tried by the matrix"}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")

Table = dict[str, dict[str, dict[str, str]]]


class Endpoint(NamedTuple):
    """One method at one route."""

    method: str
    route: str
    pattern: URLPattern

    @property
    def row(self) -> str:
        return f"{self.method} /{self.route}"

    @property
    def names(self) -> list[str]:
        return _PARAMETER.findall(self.route)


class Scene(NamedTuple):
    """What stands at each side: a request that is open, a grant, its waiver, a system and an answer about it; and the people who have
    a part in it.
    """

    requests: Mapping[str, SignOffRequest]
    grants: Mapping[str, Grant]
    waivers: Mapping[str, Waiver]
    systems: Mapping[str, System]
    decisions: Mapping[str, Decision]
    people: Mapping[str, User]


def endpoints(part: str) -> list[Endpoint]:
    """Return every endpoint of a part: of the API the methods that a view has, of pages GET and POST."""
    found = []
    for route, pattern in (*_walk(get_resolver().url_patterns, ""), *_doors()):
        if part_of(route) != part:
            continue
        view = getattr(pattern.callback, "view_class", None)
        methods = [name for name in view.http_method_names if name != "head" and hasattr(view, name)] if part == "api" else []
        found += [Endpoint(name.upper(), route, pattern) for name in methods or ("get", "post")]
    return found


def _walk(patterns: list[Any], prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for each in patterns:
        route = f"{prefix}{each.pattern}"
        if isinstance(each, URLPattern):
            yield route, each
        else:
            yield from _walk(each.url_patterns, route)


def _doors() -> Iterator[tuple[str, URLPattern]]:
    """The doors of AuthZEN, which the addresses of Django do not name."""
    for address in (*DOORS, *TASK_ADDRESSES):
        yield f"{PREFIX}{address}".removeprefix("/"), path(address, lambda _: HttpResponse(), name=address)


def part_of(route: str) -> str | None:
    """Return the part to which a route belongs, None for one that the matrix leaves out."""
    return next((part for part, prefixes in PARTS.items() if route.startswith(prefixes)), None)


def build_scene() -> Scene:
    """Make two worlds in one: `own` is about the team `hr` and asked by its requester, `foreign` about `it` and asked by another."""
    land = signing.ground("79", bar=80, enforcement="soft")
    away = register_system(actor=world.ACTOR, key="it-prod", title="IT", domain="hr", owner="it")
    other = signing.human("Fred Foreign", Role.REQUESTER, team="it")
    owner = signing.human("Ivan Owner", Role.SYSTEM_OWNER, team="it")
    requests, grants, waivers = {}, {}, {}
    for side, system, asker, signer in (("own", land.system, land.asker, land.owner), ("foreign", away, other, owner)):
        waived = [AskedWaiver("two-keys", "refuses", system.key, "the pilot is watched")]
        asked = {"account": asker, "systems": [system], "waivers": waived}
        made = signing.ask(land, **asked)
        for account in (signer, land.security):
            signing.sign(account, made, Meaning.ACCEPTED_RESIDUAL_RISK)
        grants[side], waivers[side] = Grant.objects.get(request=made), Waiver.objects.get(request=made)
        requests[side] = signing.ask(land, **asked, days=50)
    request_refresh(actor=world.ACTOR, source=scheduled("https://example.org/results.csv").source)
    routing.hand_in(routing.gateway({"model-a": "model-a"}))
    token = ask_token(land.asker)
    systems = {"own": land.system, "foreign": away}
    answers = {side: ask_gate(token, system=system.key) for side, system in systems.items()}
    decisions = {side: Decision.objects.get(uid=answer.uid) for side, answer in answers.items()}
    known = {Role.REQUESTER: land.asker, Role.SYSTEM_OWNER: land.owner, Role.SECURITY: land.security}
    people = {str(role): known.get(role) or signing.human(f"The {role}", role, team="hr") for role in Role}
    people["nobody"] = signing.human("Nora None", team="hr")
    return Scene(requests, grants, waivers, systems, decisions, people)


def callers(part: str, scene: Scene) -> dict[str, tuple[Client, dict[str, str]]]:
    """Return a client and its headers by the name of who asks: each role, none, nobody signed in, and tokens of the requester.

    Pages know no tokens: one stands for all there.
    """
    found: dict[str, tuple[Client, dict[str, str]]] = {"anonymous": (Client(), {})}
    for name, account in scene.people.items():
        client = Client()
        client.force_login(account)
        signing.prove(account, session=str(client.session.session_key))
        found[name] = (client, {})
    tokens = TOKENS.get(part, {"token:read": ["read"]})
    for name, scopes in tokens.items():
        made = create_token(actor=world.ACTOR, name=name, scopes=scopes, person=scene.people["requester"].person)
        found[name] = (Client(), {"Authorization": f"Bearer {made.secret}"})
    return found


def observe(part: str, scene: Scene) -> Table:
    """Return, by row and side, which status each caller got; whatever a call did is undone after it.

    Who may is decided before a page is rendered, and rendering takes most of the time: it is left out.
    """
    with patch.object(SimpleTemplateResponse, "rendered_content", ""):
        return _observe(part, scene)


def _observe(part: str, scene: Scene) -> Table:
    table: Table = {}
    asking = callers(part, scene)
    for endpoint in endpoints(part):
        paths = {side: _path(endpoint, scene, side) for side in SIDES}
        sides = SIDES if paths["own"] != paths["foreign"] else SIDES[:1]
        row: dict[str, dict[str, str]] = {}
        for side in sides:
            got = defaultdict(list)
            for name, (client, headers) in asking.items():
                with undone():
                    got[_ask(endpoint, paths[side], client, {**headers, **_tag(endpoint, scene, side)}, scene, side)].append(name)
            row[side] = {str(status): " ".join(sorted(names)) for status, names in sorted(got.items())}
        table[endpoint.row] = row
    return table


def render(table: Table) -> str:
    """Return a table as its file holds it: one line a row, so that a change is seen."""
    lines = [f"  {json.dumps(row)}: {json.dumps(table[row])}" for row in sorted(table)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _ask(endpoint: Endpoint, path: str, client: Client, headers: dict[str, str], scene: Scene, side: str) -> int:
    cache.clear()  # limits of attempts would tell who asked before
    limits.failures.cache_clear()
    kept = deepcopy(client.cookies)
    try:
        if endpoint.method == "GET":
            answer = client.get(path, _query(endpoint, scene, side), headers=headers)
        elif endpoint.route.startswith(("api/", "access/")):
            body = json.dumps(_body(endpoint, scene, side)).encode()
            answer = client.generic(endpoint.method, path, body, content_type="application/json", headers=headers)
        else:
            answer = client.post(path, {}, headers=headers)
    finally:
        client.cookies = kept
    if answer.streaming:
        b"".join(answer.streaming_content)  # to its end: closing it would close the test's connection
    return int(answer.status_code)


def _path(endpoint: Endpoint, scene: Scene, side: str) -> str:
    route = endpoint.route.replace("^(?P<app_label>evaluations|policies|compliance)/$", "compliance/")
    route = route.replace("(?P<url>.*)$", "nothing-here/")
    return "/" + _PARAMETER.sub(lambda found: str(_value(endpoint, found[1], scene, side)), route)


def _value(endpoint: Endpoint, name: str, scene: Scene, side: str) -> Any:
    """Return what stands in a parameter. A new one that is not told here names nothing, and is answered by 404."""
    route = endpoint.route
    if route.startswith("api/v1/"):
        resource = route.split("/")[2]
        sighted: dict[str, Mapping[str, Any]] = {
            "requests": scene.requests,
            "grants": scene.grants,
            "waivers": scene.waivers,
            "decisions": scene.decisions,
        }
        if resource in sighted:
            return sighted[resource][side].uid
        values = {
            "systems key": scene.systems[side].key,
            "subjects key": "model-a",
            "benchmarks key": "bench",
            "metrics key": "infeasible_refusal_rate",
            "sources key": "lab",
            "refresh-runs uid": RefreshRun.objects.values_list("uid", flat=True)[0],
            "policies name": "two-keys",
            "documents digest": Document.objects.values_list("digest", flat=True)[0],
            "evidence uid": Evidence.objects.values_list("uid", flat=True)[0],
            "verdicts uid": Verdict.objects.values_list("uid", flat=True)[0],
            "routing uid": RoutingInventory.objects.values_list("uid", flat=True)[0],
            "people person": scene.people["requester"].person_id,
            "people number": RoleMembership.objects.get(person=scene.people["requester"].person).pk,
        }
        if route.startswith("api/v1/ledger/entries/"):
            return LedgerEntry.objects.order_by("id")[0].uid
        return values.get(f"{resource} {name}", 1 if name == "number" else NOBODYS)
    if route.startswith("access/"):
        return scene.requests[side].uid
    return _page_value(endpoint, name, scene, side)


def _page_value(endpoint: Endpoint, name: str, scene: Scene, side: str) -> Any:
    parts = endpoint.route.split("/")
    if len(parts) < 3 or parts[0] != "admin" or parts[1] not in ("policies", "evaluations", "compliance"):
        return 1
    account = scene.people["requester"]
    if parts[2] == "person" and name in ("person", "pk"):
        if name == "person" or "give-role" in parts:
            return account.person_id
        held = {"end-role": RoleMembership, "revoke-token": ServiceToken}.get(parts[4])
        return account.pk if held is None else held.objects.filter(person=account.person)[0].pk
    if "binding" in parts:
        return scene.systems[side].pk if name == "pk" else Policy.objects.get(name="two-keys").pk
    if "ask" in parts:
        about = {"activation": PolicyVersion, "ruling": Evidence, "dispute": Evidence}.get(parts[4])
        return scene.grants[side].pk if about is None else about.objects.order_by("pk")[0].pk
    models = {
        "signoffrequest": scene.requests,
        "grant": scene.grants,
        "waiver": scene.waivers,
        "system": scene.systems,
        "decision": scene.decisions,
    }
    if parts[2] in models:
        held: Any = models[parts[2]][side]
        return held.pk
    if name not in ("pk", "object_id"):
        return 1
    first = apps.get_model(parts[1], parts[2])._default_manager.order_by("pk").first()
    return 1 if first is None else first.pk


def _tag(endpoint: Endpoint, scene: Scene, side: str) -> dict[str, str]:
    """Return the tag of what is to be changed, as somebody who saw it would send it."""
    if endpoint.method == "GET" or not endpoint.route.startswith("api/v1/"):
        return {}
    at, resource = now(), endpoint.route.split("/")[2]
    if resource == "requests":
        return {"If-Match": f'"{version_of_request(scene.requests[side], at)}"'}
    if resource == "grants":
        return {"If-Match": f'"{version_of_grant(scene.grants[side], at)}"'}
    if resource == "waivers":
        return {"If-Match": f'"{version_of_waiver(scene.waivers[side])}"'}
    if resource == "sources":
        return {"If-Match": f'"{schedule_digest(SourceSchedule.objects.get())}"'}
    return {"If-Match": f'"{system_digest(scene.systems[side])}"'} if resource == "systems" else {}


def _query(endpoint: Endpoint, scene: Scene, side: str) -> dict[str, str]:
    if endpoint.pattern.name == "grants-stop":
        return {"scope": "system", "key": scene.systems[side].key}
    if endpoint.pattern.name == "routing-allowed":
        return {"system": scene.systems[side].key}
    if endpoint.pattern.name == "name":
        return {"name": "model-a"}
    return {"from": "1"} if endpoint.pattern.name == "ledger-consistency" else {}


def _body(endpoint: Endpoint, scene: Scene, side: str) -> dict[str, Any]:
    """Return a body that is carried out for whoever may: what is left of the answer is who that is."""
    if endpoint.route.startswith("access/"):
        return question()
    if endpoint.pattern.name == "names":
        version = SubjectVersion.objects.get(subject__key="model-a")
        shown = touched_by(name="stranger", source=None, means=version)
        return {"name": shown.name, "means": "model-a@1", "seen": shown.digest}
    end = (now() + timedelta(days=20)).isoformat()
    waiver = {"policy": "two-keys", "rule": "refuses", "system": "hr-prod", "reason": "watched"}
    access = {"subject": "model-a", "systems": ["hr-prod"], "actions": ["write"]}
    dossier = scene.requests[side].dossier
    bodies: dict[str, dict[str, Any]] = {
        "requests": {"kind": "grant", **access, "ends_at": end, "reason": "asked", "waivers": [waiver]},
        "request-sign-offs": {"meaning": "reviewed", "digest": dossier.digest if dossier else "", **REASON},
        "request-comments": {"text": "tried by the matrix"},
        "grants-stop": {"scope": "system", "key": "hr-prod", **REASON},
        "grants-break-glass": {**access, "justification": "nothing works and it cannot wait", "minutes": 10},
        "person-roles": {"role": "auditor"},
        "system-incident": {"open": True, **REASON},
        "system": {"title": "Another title", **REASON},
        "routing": {"content": "model_list: []"},
        "source-schedule": {"connector": "http", "address": "https://example.org/other.csv", "interval_minutes": 60},
        "source-refresh": {"forced": True},
        "systems": {"key": "hr-test", "title": "Test", "domain": "hr", "owner": "hr"},
    }
    return bodies.get(str(endpoint.pattern.name), REASON)
