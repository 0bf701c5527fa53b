"""A small registered world, made by services, and the clients that ask about it."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

from django.test import Client

from compliance.models import AuditExport, LedgerEntry, ServiceToken, User
from compliance.services.exports import advance_export, start_export
from compliance.services.people import create_person, create_token
from compliance.vocabulary import Role, Scope
from evaluations.kernel.actor import Actor, person, service, system_job
from evaluations.kernel.services import service_transaction
from evaluations.models import Evidence, SubjectVersion
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version, apply_register_metric
from evaluations.services.evidence import import_files
from evaluations.services.sources import apply_assign_trust, apply_register_source
from evaluations.services.subjects import apply_assign_alias, apply_register_subject, apply_register_subject_version
from policies.models import PolicyVersion
from policies.services.policies import propose_policy_version
from policies.services.systems import apply_register_system
from policies.services.verdicts import judge_subject_versions

METRICS = Path("evaluations/data/metrics.json")
V1 = "/api/v1"
POLICY = b"""
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata:
  name: refusal-only
  title: A policy for tests
spec:
  appliesTo:
    actions: [write]
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
    - id: refuses-enough
      evidence: refusal
      at_least: 80.0
  sign_offs:
    all_of:
      - {factor: security, role: security, approve: 1}
  grant: {max_days: 90, recertify_every_days: 30}
"""


def evidence_body(*values: Any, subject: str = "Model One", **changes: Any) -> dict[str, Any]:
    """Return a body of our format with one evidence, and in it one observation a value (slices `overall`, `s1`, …)."""
    observations = [
        {
            "metric": "infeasible_refusal_rate",
            "benchmark": "gym",
            "version": "2026-07",
            "unit": "percent",
            "value": value,
            "slice": f"s{place}" if place else "overall",
        }
        for place, value in enumerate(values or ("53.9",))
    ]
    body = {
        "format": "writegate-evidence/1",
        "source": "board",
        "provenance": "claim",
        "evidence": [{"subject": subject, "run": {"status": "complete", "ended_at": "2026-07-01"}, "observations": observations}],
    }
    return {**body, **changes}


@dataclass(frozen=True)
class Api:
    """A client that speaks as one token, one person, or nobody."""

    client: Client
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.client.get(_address(path), query or {}, headers={**self.headers, **headers})

    def order(self, body: Any = b"{}", **headers: str) -> Any:
        """Order an export of the trail."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        address = f"{V1}/ledger/exports"
        return self.client.post(address, sent, content_type="application/json", headers={**self.headers, **headers})

    def send(self, body: Any, *, content_type: str = "application/json", **headers: str) -> Any:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(f"{V1}/evidence", sent, content_type=content_type, headers={**self.headers, **headers})

    def ask(self, method: str, path: str) -> Any:
        return self.client.generic(method, _address(path), headers=self.headers)


def _address(path: str) -> str:
    return path if path.startswith("/api") else f"{V1}/{path}"


def with_token(token: str, **options: Any) -> Api:
    return Api(Client(**options), {"Authorization": f"Bearer {token}"})


def nobody(**options: Any) -> Api:
    return Api(Client(**options))


@dataclass
class World:
    actor: Actor
    user: User
    token: ServiceToken
    secret: str
    version: SubjectVersion
    policy_version: PolicyVersion
    evidence: Evidence
    entry: LedgerEntry
    """Sealed: that the policy version was proposed."""
    export: AuditExport

    def api(self, **options: Any) -> Api:
        """Return a client with a token that may read and submit."""
        return with_token(self.secret, **options)

    def api_with(self, *scopes: str) -> Api:
        """Return a client with a fresh token of these scopes."""
        made = create_token(actor=self.actor, name="other", scopes=scopes, person=self.user.person)
        return with_token(made.secret)


def build_world() -> World:
    """Register people, names, a policy, one piece of evidence, and judge it; seal all that, and export it."""
    boot = system_job("tests")
    user = create_person(actor=boot, name="Alice", email="alice@example.org", roles=[Role.EVIDENCE_STEWARD, Role.AUDITOR])
    actor = person(user.person_id)
    made = create_token(actor=actor, name="ci", scopes=[Scope.READ, Scope.SUBMIT_EVIDENCE], person=user.person)
    with service_transaction("load_bundle"):
        for definition in json.loads(METRICS.read_text(encoding="utf-8"))["metrics"]:
            apply_register_metric(actor=actor, definition=_with_numbers(definition))
        benchmark = apply_register_benchmark(actor=actor, key="gym", title="Gym")
        apply_register_benchmark_version(actor=actor, benchmark=benchmark, version="2026-07", tasks=100)
        apply_register_benchmark_version(actor=actor, benchmark=benchmark, version="2026-08")
        source = apply_register_source(actor=actor, key="board", title="A board")
        apply_register_source(actor=actor, key="other-board", title="Another board")
        apply_assign_trust(actor=actor, source=source, tier="independent", reason="audited")
        subject = apply_register_subject(
            actor=actor, key="labs/model-one", kind="model", title="Model One", provider="labs", candidate=True
        )
        version = apply_register_subject_version(actor=actor, subject=subject, pin={"snapshot": "2026-06-01"})
        apply_register_subject(actor=actor, key="model-two", kind="model", provider="labs")
        apply_assign_alias(actor=actor, name_as_written="Model One", subject_version=version)
        apply_register_system(actor=actor, key="payroll-prod", title="Payroll", domain="hr")
    policy_version = propose_policy_version(actor=actor, text=POLICY, filename="refusal-only.yaml")
    import_files(
        actor=actor,
        files={"first.json": BytesIO(json.dumps(evidence_body("53.900", "80.0", "79.9995")).encode())},
        max_bytes=1_000_000,
    )
    judge_subject_versions(actor=actor, policy_version=policy_version, versions=[version], domain="any")
    machine = service(made.token.pk, on_behalf_of=actor)
    export = advance_export(start_export(actor=machine).uid, seconds=60)
    entry = LedgerEntry.objects.get(action="policy_version.proposed")
    return World(actor, user, made.token, made.secret, version, policy_version, Evidence.objects.get(), entry, export)


def _with_numbers(definition: dict[str, Any]) -> dict[str, Any]:
    maximum = definition.get("maximum")
    return {**definition, "minimum": Decimal(definition["minimum"]), "maximum": None if maximum is None else Decimal(maximum)}
