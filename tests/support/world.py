"""Small worlds for tests, made by the services that real ones are made by."""

import io
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from compliance.services.bundles import Installed, load_bundle
from compliance.vocabulary import RequestKind
from evaluations.importers.bundles import DATA, read_bundle
from evaluations.kernel.actor import Actor, system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import SubjectVersion
from evaluations.selectors.subjects import current_versions
from evaluations.services.benchmarks import apply_register_benchmark, apply_register_benchmark_version
from evaluations.services.bundles import apply_register_metrics
from evaluations.services.evidence import Imported, import_files
from evaluations.services.sources import apply_assign_trust, apply_register_source
from evaluations.services.subjects import apply_assign_alias, apply_register_subject, apply_register_subject_version
from policies.models import Binding, Policy, PolicyActivation, PolicyVersion, System
from policies.selectors.bundled import bundled_path
from policies.services.activations import apply_activate_policy_version
from policies.services.bindings import apply_bind
from policies.services.policies import propose_policy_version
from policies.services.rejudging import judge_everywhere
from tests.support.quorum import signed_request

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
ACTOR: Actor = system_job("test")
MEGABYTE = 1024 * 1024

ONE_RULE = """\
apiVersion: writegate/v1
kind: DeploymentPolicy
metadata: {{name: {name}, title: One rule}}
spec:
  appliesTo: {{actions: [write]}}
  evidence:
    refusal: {{metric: infeasible_refusal_rate, benchmark: bench, versions: ["1"], statistic: point, max_age_days: unlimited,
      min_trust: archive, min_provenance: claim}}
  rules: [{{id: refuses, evidence: refusal, at_least: {bar}}}]
  sign_offs: {{all_of: [{{factor: security, role: security, approve: 1}}]}}
  grant: {{max_days: 30, recertify_every_days: 30}}
"""


def load(name: str, policies: Sequence[str] = ()) -> Installed:
    """Load a bundled world with policies of the library."""
    return load_bundle(actor=ACTOR, bundle=read_bundle(DATA / name), policies=[bundled_path(policy) for policy in policies])


def register(*subjects: str, candidate: bool = True, versions: Sequence[str] = ("1", "2")) -> list[SubjectVersion]:
    """Register metrics, the benchmark `bench`, the trusted source `lab`, and models that are written as they are called."""
    made = []
    with service_transaction("load_bundle"):
        apply_register_metrics(actor=ACTOR)
        benchmark = apply_register_benchmark(actor=ACTOR, key="bench", title="Bench")
        for version in versions:
            apply_register_benchmark_version(actor=ACTOR, benchmark=benchmark, version=version)
        source = apply_register_source(actor=ACTOR, key="lab", title="Lab")
        apply_assign_trust(actor=ACTOR, source=source, tier="independent", reason="test")
        for key in subjects:
            subject = apply_register_subject(actor=ACTOR, key=key, kind="model", candidate=candidate)
            version = apply_register_subject_version(actor=ACTOR, subject=subject, pin={"snapshot": key})
            apply_assign_alias(actor=ACTOR, name_as_written=key, subject_version=version)
            made.append(version)
    return made


def observation(value: Any = "84", **changes: Any) -> dict[str, Any]:
    """Return one observation in our own format; a change to None leaves the field out."""
    whole = {
        "metric": "infeasible_refusal_rate",
        "benchmark": "bench",
        "version": "1",
        "value": value,
        "unit": "percent",
        **changes,
    }
    return {field: held for field, held in whole.items() if held is not None}


def submission(subject: str, *observations: dict[str, Any], **evidence: Any) -> dict[str, Any]:
    """Return a document in our own format about one subject."""
    return {
        "format": "writegate-evidence/1",
        "source": "lab",
        "provenance": "run_log",
        "evidence": [
            {
                "subject": subject,
                "run": {"status": "complete", "ended_at": "2026-11-01T00:00:00Z"},
                "observations": list(observations) or [observation()],
                **evidence,
            }
        ],
    }


def submit(document: dict[str, Any] | bytes, name: str = "evidence.json") -> Imported:
    """Import one document."""
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    (imported,) = import_files(actor=ACTOR, files={name: io.BytesIO(content)}, max_bytes=MEGABYTE)
    return imported


def harm(subject: str, value: str = "0") -> Imported:
    """Record how often a subject completes harmful assignments; the same again changes nothing."""
    return submit(submission(subject, observation(value, metric="harmful_completion_rate")), f"{subject}.harm.json")


def propose(bar: object = 80, name: str = "one-rule") -> PolicyVersion:
    """Propose the policy of one rule with the given bar, written as it is given."""
    return propose_policy_version(actor=ACTOR, text=ONE_RULE.format(name=name, bar=bar).encode(), filename=f"{name}.yaml")


def propose_text(text: bytes) -> PolicyVersion:
    """Store a whole policy text as the next version of the policy it names."""
    return propose_policy_version(actor=ACTOR, text=text)


def judge_all() -> None:
    """Judge every current subject version by every policy."""
    judge_everywhere(actor=ACTOR, subject_version_ids=[version.pk for version in current_versions(known_at=now())])


def activate(version: PolicyVersion) -> PolicyActivation:
    """Bring a policy version into force by a request that one made-up person signed."""
    request = signed_request(RequestKind.ACTIVATION, policy_version=version)
    with service_transaction("test"):
        return apply_activate_policy_version(actor=ACTOR, version=version, sign_off_request=request)


def bind(policy: Policy, *, system: System | None = None, domain: str = "", **params: object) -> Binding:
    """Tighten a policy's parameters by a request that one made-up person signed; numbers are given as they are written."""
    request = signed_request(RequestKind.BINDING, policy=policy)
    numbers = {name: Decimal(str(number)) for name, number in params.items()}
    with service_transaction("test"):
        return apply_bind(actor=ACTOR, policy=policy, system=system, domain=domain, params=numbers, sign_off_request=request)
