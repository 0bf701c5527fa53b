"""What stewards and authors work on, as a browser shows it: evidence handed in, names that wait, a policy with findings and impact."""

import json
from collections.abc import Iterator
from io import BytesIO

import psycopg
import pytest
from django.urls import reverse

from compliance.models import Upload
from compliance.services.drafting import save_draft
from compliance.services.unreadable import watch_policies
from compliance.services.uploads import Told, read_upload, receive_upload
from compliance.vocabulary import Role
from evaluations.kernel.actor import Actor
from evaluations.kernel.services import service_transaction
from evaluations.models import BenchmarkVersion, Evidence, Metric, Source
from policies.models import UnreadableVersion, Verdict, VerdictMismatch
from tests.browser.conftest import OpenPage, Serve
from tests.browser.test_console import MODES, faults
from tests.browser.test_sign_offs import person, sign_in
from tests.support import cluster as clusters
from tests.support import signing, world
from tests.support.definitions import ask_benchmark, ask_metric, ask_source, stewards
from tests.support.tampering import overwrite

pytestmark = pytest.mark.browser
NAME = "azure/model-a (high)"
LONG = "a-router-between/" * 6 + "model-a-2026-06-01-with-thinking"


@pytest.fixture(scope="module")
def served(
    serve: Serve, test_database: clusters.Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, str]]]:
    """The console over a world in which files were handed in, names wait, and policies are being written."""
    where = tmp_path_factory.mktemp("uploads")
    with serve(lambda: build() | tampered(test_database), UPLOAD_DIR=where) as found:
        yield found


@pytest.fixture(scope="module")
def paths(served: tuple[str, dict[str, str]]) -> dict[str, str]:
    return served[1]


def hand_in(actor: Actor, name: str, *subjects: str, value: str = "84") -> Upload:
    document = world.submission(subjects[0])
    document["evidence"] = [world.submission(one, world.observation(value))["evidence"][0] for one in subjects]
    content = json.dumps(document).encode()
    return receive_upload(actor=actor, stream=BytesIO(content), length=len(content), told=Told(name, "", "", "", None))


def build() -> dict[str, str]:
    """Hand files in, let names wait, write policies that the lint stops and that it lets pass; return the pages by name."""
    land = signing.ground("78", bar=75)
    for number in range(len(MODES)):
        person(f"Mode {number}", Role.EVIDENCE_STEWARD, "sec")
    author = signing.human("Alice Author", Role.POLICY_AUTHOR)
    signing.human("Paul Approver", Role.POLICY_APPROVER)
    signing.granted(land)
    blocked = world.propose_text(signing.TWO_KEYS.format(name="alone", bar=75, age="unlimited", enforcement="hard").encode())
    stricter = signing.fit_draft(author, bar=80)
    save_draft(actor=signing.actor_of(author), policy="two-keys", text=signing.fit_text(bar=88))
    actor = world.ACTOR
    taken = read_upload(hand_in(actor, "runs of november.json", "model-a", NAME, LONG).uid)
    refused = read_upload(
        hand_in(actor, "a-file-with-a-name-of-many-words-and-no-space-between-them.json", "model-a", value="a lot").uid
    )
    waits = hand_in(actor, "waits.json", "model-b")
    verdict = Verdict.objects.filter(policy_version=land.policy).earliest("pk")
    with service_transaction("tests"):
        VerdictMismatch.objects.create(verdict=verdict, differs=["judgement", "entry"], found_by="system_job:replay-verdicts")
        UnreadableVersion.objects.create(
            version=land.policy, found_digest=verdict.core_digest, codes=["policy_tampered"], found_by="system_job:watch-policies"
        )
    evidence = Evidence.objects.earliest("pk")
    proposed = propose_definitions()
    name = reverse("admin:evaluations_aliasassignment_name")
    change = {
        "upload-taken": ("compliance_upload", taken.pk),
        "upload-refused": ("compliance_upload", refused.pk),
        "upload-waits": ("compliance_upload", waits.pk),
        "policy-with-draft": ("policies_policy", land.policy.policy_id),
        "version-blocked": ("policies_policyversion", blocked.pk),
        "version-stricter": ("policies_policyversion", stricter.pk),
        "version-in-force": ("policies_policyversion", land.policy.pk),
        "verdict-mismatched": ("policies_verdict", verdict.pk),
        "evidence-carrying": ("evaluations_evidence", evidence.pk),
    }
    ask = {word: reverse(f"admin:compliance_signoffrequest_ask_{word}") for word in ("metric", "benchmark", "source")}
    change |= proposed
    return {
        "metrics": reverse("admin:evaluations_metric_changelist"),
        "benchmarks": reverse("admin:evaluations_benchmark_changelist"),
        "benchmark-versions": reverse("admin:evaluations_benchmarkversion_changelist"),
        "metric-ask": ask["metric"],
        "metric-reword": f"{ask['metric']}?metric=infeasible_refusal_rate",
        "benchmark-ask": ask["benchmark"],
        "sources": reverse("admin:evaluations_source_changelist"),
        "source-ask": ask["source"],
        "source-move": f"{ask['source']}?source=acme-evals",
        "requests": reverse("admin:compliance_signoffrequest_changelist"),
        "uploads": reverse("admin:compliance_upload_changelist"),
        "hand-in": reverse("admin:compliance_upload_hand_in"),
        "names-waiting": reverse("admin:evaluations_aliasassignment_waiting"),
        "name": f"{name}?name={NAME}",
        "name-long": f"{name}?name={LONG}",
        "name-touches": f"{name}?name={NAME}&means=model-a",
        "name-nobody": f"{name}?name={NAME}&means=nobody",
        **{key: reverse(f"admin:{where}_change", args=[pk]) for key, (where, pk) in change.items()},
    }


def tampered(database: clusters.Database) -> dict[str, str]:
    """Bring a policy into force, change its text past every door, have that found, and return the pages that tell of it."""
    version = signing.policy_in_force("second", bar=75)
    with psycopg.connect(database.superuser_url, autocommit=True) as owner:
        overwrite(owner, "policies_policyversion", version.pk, {"text": bytes(version.text).replace(b"75", b"15")})
    assert watch_policies() == 1
    return {
        "home-unreadable": reverse("admin:index"),
        "version-unreadable": reverse("admin:policies_policyversion_change", args=[version.pk]),
    }


def propose_definitions() -> dict[str, tuple[str, int]]:
    """Propose metrics, benchmarks and sources, have some signed, and return the pages that show them."""
    people = stewards()
    for signed in (ask_metric(people[0]), ask_benchmark(people[0], notes=LONG), ask_source(people[0])):
        signing.sign(people[1], signed)
    metric, version = Metric.objects.latest("pk"), BenchmarkVersion.objects.latest("pk")
    reworded = ask_metric(
        people[0], definition="Share of the fraudulent requests that the subject declines in words or by doing nothing."
    )
    source = Source.objects.get(key="acme-evals")
    moved = ask_source(people[0], tier="archive", title="", publisher="", url="", reason=LONG)
    return {
        "source-own": ("evaluations_source", source.pk),
        "request-source-new": (
            "compliance_signoffrequest",
            ask_source(people[0], key=LONG[:100], url=f"https://example.org/{LONG}").pk,
        ),
        "request-source-moved": ("compliance_signoffrequest", moved.pk),
        "metric-own": ("evaluations_metric", metric.pk),
        "benchmark-own": ("evaluations_benchmark", version.benchmark_id),
        "benchmark-version-own": ("evaluations_benchmarkversion", version.pk),
        "request-metric-new": ("compliance_signoffrequest", ask_metric(people[0], key=LONG[:100]).pk),
        "request-metric-reworded": ("compliance_signoffrequest", reworded.pk),
        "request-benchmark": ("compliance_signoffrequest", ask_benchmark(people[0], version="2026-12").pk),
    }


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_every_page_fits_has_no_error_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark, signed_in=False)
    sign_in(watched, f"mode.{MODES.index((width, dark))}@example.org")
    assert faults(watched, paths, width=width, dark=dark) == []
