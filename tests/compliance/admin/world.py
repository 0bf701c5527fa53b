"""A made-up system with one of everything that the console shows, recorded by the services, and every word of a verdict."""

import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path

from django.test import override_settings

from compliance.models import AuditExport, OutboxMessage, ServiceToken, SignOffRequest, User
from compliance.models.signing_in import session_digest
from compliance.selectors.proposals import AccessProposal
from compliance.services.break_glass import open_break_glass
from compliance.services.exports import advance_export, start_export
from compliance.services.outbox import apply_bury, apply_notify
from compliance.services.people import apply_create_team, create_person, create_token
from compliance.services.routing import import_routes
from compliance.services.signing_in import record_reauthentication
from compliance.services.uploads import Told, receive_upload
from compliance.services.waivers import apply_waive
from compliance.services.webhooks import open_webhook
from compliance.vocabulary import NoticeKind, RequestKind, Role, Scope
from evaluations.kernel.actor import person, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, Source, Subject, SubjectVersion
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version, apply_register_metric
from evaluations.services.evidence import dispute_evidence, import_files
from evaluations.services.refresh import request_refresh
from evaluations.services.schedules import ScheduleWish, set_schedule
from evaluations.services.sources import apply_assign_trust, apply_register_source
from evaluations.services.subjects import apply_assign_alias, apply_register_subject, apply_register_subject_version
from policies.models import Standing, System, Verdict
from policies.services.policies import propose_policy_version
from policies.services.systems import apply_register_system
from policies.services.verdicts import judge_subject_versions
from tests.support.quorum import signed_request

METRICS = Path(__file__).parents[3] / "evaluations/data/metrics.json"
PASSWORD = "correct horse battery staple"
EMAIL = "ada@example.org"
NAME = "Ada Lovelace"
HOSTILE = "<script>alert(1)</script>"

GATE = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: gate-for-tests, title: One rule on the number alone}
spec:
  appliesTo: {actions: [write]}
  evidence:
    refusal:
      metric: infeasible_refusal_rate
      benchmark: gym
      versions: ["2026-07"]
      statistic: point
      max_age_days: unlimited
      min_trust: archive
      min_provenance: claim
  rules:
    - {id: refuses-enough, evidence: refusal, at_least: 80.0}
  sign_offs: {all_of: [{factor: security, role: security, approve: 1}]}
  grant: {max_days: 90, recertify_every_days: 30}
"""
STRICT = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {name: strict-for-tests, title: Bounds and harm}
spec:
  appliesTo: {actions: [write]}
  params: {min_refusal: 80.0}
  evidence:
    refusal:
      metric: infeasible_refusal_rate
      benchmark: gym
      versions: ["2026-07"]
      slice: resource.domain
      min_samples: 50
      max_age_days: 90
    harm:
      metric: harmful_completion_rate
      benchmark: mole
      versions: ["2026-09"]
      max_age_days: 180
    attacks:
      metric: attack_success_rate
      benchmark: mole
      versions: ["2026-09"]
      max_age_days: 180
  rules:
    - id: refuses-out-of-bounds-orders
      evidence: refusal
      at_least: {param: min_refusal}
    - id: does-no-harm
      any_of:
        - {evidence: harm, at_most: 5.0}
        - {evidence: attacks, at_most: 2.5}
      enforcement: soft
  sign_offs: {all_of: [{factor: security, role: security, approve: 1}]}
  grant: {max_days: 90, recertify_every_days: 30}
"""

RESULTS = {"clears": "pass", "falls-short": "fail", "nobody-measured": "missing", "in-dispute": "contested"}
"""Subject key → its word under the gate's policy."""


ROUTED = (
    ("plain", "Clears"),
    ("steady", "Clears"),
    ("hasty", "Falls Short"),
    ("stranger", "lab/nobody-knows"),
    ("any/*", "any/*"),
)
"""Name at the made-up gateway → the model behind it as it is written there."""


@dataclass
class World:
    user: User
    token: ServiceToken
    secret: str
    versions: dict[str, SubjectVersion]
    export: AuditExport

    def verdict(self, subject: str, policy: str = "gate-for-tests") -> Verdict:
        return Standing.objects.filter(subject_version__subject__key=subject, policy_version__policy__name=policy).first().verdict


def build_person(*, email: str = EMAIL, name: str = NAME, must_change_password: bool = False, is_staff: bool = True) -> User:
    return create_person(
        actor=system_job("tests"),
        name=name,
        email=email,
        password=PASSWORD,
        roles=[Role.AUDITOR],
        is_staff=is_staff,
        must_change_password=must_change_password,
    )


def build_world() -> World:
    user = build_person()
    actor = person(user.person_id)
    with service_transaction("load_bundle"):
        team = apply_create_team(actor=actor, key="hr-platform", title="HR platform")
        for definition in json.loads(METRICS.read_text(encoding="utf-8"))["metrics"]:
            maximum = definition.get("maximum")
            numbers = {"minimum": Decimal(definition["minimum"]), "maximum": None if maximum is None else Decimal(maximum)}
            apply_register_metric(actor=actor, definition={**definition, **numbers})
        for key, version, exposure in (("gym", "2026-07", "public"), ("mole", "2026-09", "unknown")):
            benchmark = apply_register_benchmark(actor=actor, key=key, title=key.title(), url="https://example.org/bench")
            facts = {"tasks": 1000, "harness": "gym 1.2", "exposure": exposure}
            apply_register_benchmark_version(actor=actor, benchmark=benchmark, version=version, **facts)
        board = apply_register_source(actor=actor, key="board", title="A public board", url="javascript:alert(1)")
        apply_assign_trust(actor=actor, source=board, tier="independent", reason="method published and repeated")
        paper = apply_register_source(actor=actor, key="paper", title="A paper")
        apply_assign_trust(actor=actor, source=paper, tier="archive", reason="read once, long ago")
        versions = {key: _model(actor, key) for key in (*RESULTS, "gone-stale")}
        route = apply_register_subject(actor=actor, key="hr-agent", kind="agent", title="HR agent", candidate=True)
        members = [versions["clears"], versions["falls-short"]]
        versions["hr-agent"] = apply_register_subject_version(
            actor=actor, subject=route, pin={"harness": "loop 3"}, members=members
        )
        apply_assign_alias(actor=actor, name_as_written=HOSTILE, subject_version=None, reason="a name that nobody bears")
        apply_register_system(actor=actor, key="workday-prod", title="Workday production", domain="hr", owner=team.key)
    made = create_token(actor=actor, name="ci", scopes=[Scope.READ, "decide:workday-prod"], person=user.person, team=team)
    policies = [propose_policy_version(actor=actor, text=text) for text in (GATE, STRICT)]
    _import(actor)
    dispute_evidence(
        actor=actor, evidence=Evidence.objects.get(subject_as_written="In Dispute"), reason="the counts were swapped"
    )
    for policy, domain in zip(policies, ("any", "hr"), strict=True):
        chosen = list(
            SubjectVersion.objects.filter(pk__in=[version.pk for version in versions.values()]).select_related("subject")
        )
        judge_subject_versions(actor=system_job("tests"), policy_version=policy, versions=chosen, domain=domain)
    _notices(user)
    _access(versions["clears"])
    # Everything up to here is sealed; what tells of the export waits for its index.
    export = advance_export(start_export(actor=actor).uid, seconds=60)
    return World(user, made.token, made.secret, versions, export)


def _access(version: SubjectVersion) -> None:
    """Open a break-glass: a grant, with the request for its review."""
    opener = create_person(
        actor=system_job("tests"), name="Grace Hopper", email="grace@example.org", roles=[Role.SECURITY], password=PASSWORD
    )
    actor = person(opener.person_id)
    record_reauthentication(actor=actor, user=opener, session_key="tests", method="totp")
    open_break_glass(
        actor=actor,
        account=opener,
        session=session_digest("tests"),
        subject_version=version,
        systems=[System.objects.get(key="workday-prod")],
        actions=["write"],
        justification="payroll stands still and nobody else can move it",
        minutes=60,
    )


def add_waiver(world: World) -> None:
    """Record a waiver on a request that one made-up person signed: for pages alone, since that request has no entries."""
    version, system = world.versions["clears"], System.objects.get(key="workday-prod")
    asked = AccessProposal(("write",), None, now() + timedelta(days=7))
    uid = signed_request(RequestKind.WAIVER, proposal=asked.to_bytes(), systems=[system], whole=True, subject_version=version)
    request = SignOffRequest.objects.select_related("dossier").get(uid=uid)
    assert request.dossier is not None
    waived = {
        "policy": "gate-for-tests",
        "rule": "refuses-enough",
        "system": system.key,
        "rule_digest": "sha256:" + "0" * 64,
        "measured": "71",
        "floor": True,
        "reason": "a person looks at each write",
    }
    actor = person(world.user.person_id)
    with service_transaction("tests"):
        apply_waive(actor=actor, request=request, dossier=request.dossier, asked=waived, ends_at=asked.ends_at, at=now())


def add_intake(world: World, directory: Path) -> None:
    """Hand in a file, kept under `directory`, and ask for a source to be refreshed; both wait for a worker."""
    actor = person(world.user.person_id)
    content = b"subject,value\nClears,84.4\n"
    with override_settings(UPLOAD_DIR=directory):
        receive_upload(actor=actor, stream=BytesIO(content), length=len(content), told=Told("handed in.csv"))
    board = Source.objects.get(key="board")
    wish = ScheduleWish(connector="http", address="https://example.org/results.csv", interval_minutes=60)
    set_schedule(actor=actor, source=board, wish=wish)
    request_refresh(actor=actor, source=board)


def add_routes(world: World) -> None:
    """Hand in what two gateways serve, one of them twice: with a closed route, one to a name that nobody knows, and an open one."""
    actor = person(world.user.person_id)
    text = "model_list:\n" + "".join(
        f"  - {{model_name: {name}, litellm_params: {{model: {model}}}}}\n" for name, model in ROUTED
    )
    import_routes(actor=actor, body=text.encode(), name="prod-gateway")
    import_routes(
        actor=actor, body=f"{text}router_settings: {{fallbacks: [{{steady: [hasty]}}]}}\n".encode(), name="prod-gateway"
    )
    import_routes(actor=actor, body=b"openrouter_routes:\n  desk: {model: lab/a}\n", name="openrouter")


def _notices(user: User) -> None:
    """Register a webhook, and queue a notice to it and one to the person; the person's is given up."""
    with override_settings(WEBHOOK_ALLOW=["127.0.0.1:9"], NOTICE_MAIL_URL="mailto://sink.test"):
        open_webhook(actor=person(user.person_id), url="http://127.0.0.1:9/hooks/writegate", title="Pager of HR", events=["*"])
        with service_transaction("tests"):
            apply_notify(
                kind=NoticeKind.GRANT_SUSPENDED,
                subject_ref=("grant", "g-1"),
                title="Write access of hr-agent to workday-prod is suspended",
                lines=["The refusal rate fell below the bar."],
                link="/admin/",
                data={"grant": "g-1"},
                people=[user.person_id],
                cause="1",
            )
            given_up = OutboxMessage.objects.filter(channel="mail")
            apply_bury(actor=system_job("tests"), messages=list(given_up), reason="not taken: the mailbox is full")


def _model(actor, key: str) -> SubjectVersion:
    subject: Subject = apply_register_subject(
        actor=actor, key=key, kind="model", title=key.replace("-", " ").title(), provider="labs", candidate=True
    )
    version = apply_register_subject_version(actor=actor, subject=subject, pin={"provider": "labs", "snapshot": "2026-06-01"})
    apply_assign_alias(actor=actor, name_as_written=subject.title, subject_version=version)
    return version


def _import(actor) -> None:
    fresh, old = (f"{now() - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (10, 400))
    rows = [
        "subject,source,provenance,run_status,run_ended_at,metric,benchmark,version,slice,unit,value,k,n",
        f"Clears,board,reported,complete,{fresh},infeasible_refusal_rate,gym,2026-07,overall,percent,,179,212",
        f"Clears,board,reported,complete,{fresh},infeasible_refusal_rate,gym,2026-07,hr,percent,,950,1000",
        f"Clears,board,reported,complete,{fresh},harmful_completion_rate,mole,2026-09,overall,percent,,2,400",
        "Falls Short,paper,claim,complete,,infeasible_refusal_rate,gym,2026-07,overall,percent,53.9,,",
        "In Dispute,board,reported,complete,,infeasible_refusal_rate,gym,2026-07,overall,percent,91.25,,",
        f"Gone Stale,board,reported,complete,{old},infeasible_refusal_rate,gym,2026-07,hr,percent,,980,1000",
        f"Gone Stale,board,reported,complete,{old},infeasible_refusal_rate,gym,2026-07,overall,percent,79.9995,,",
    ]
    content = ("\n".join(rows) + "\n").encode()
    import_files(actor=actor, files={"board results.csv": BytesIO(content)}, max_bytes=1_000_000)
