"""A subject's page as a browser shows it: among many others, on a desk and on a phone, by day and by night."""

from io import BytesIO

import pytest
from django.urls import reverse

from evaluations.kernel.actor import system_job
from evaluations.kernel.clock import now
from evaluations.kernel.services import service_transaction
from evaluations.models import Subject
from evaluations.services.evidence import import_files
from policies.models import PolicyVersion
from policies.services.verdicts import judge_subject_versions
from tests.browser.conftest import OpenPage
from tests.browser.test_console import MODES, faults
from tests.compliance.admin.world import World, _model

pytestmark = pytest.mark.browser
CROWD = 30


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages of this module, with a crowd of subjects behind them; read before the browser runs."""
    actor = system_job("tests")
    with service_transaction("tests"):
        versions = [_model(actor, f"crowd-{number}") for number in range(CROWD)]
    ended = f"{now():%Y-%m-%dT%H:%M:%SZ}"
    rows = ["subject,source,provenance,run_status,run_ended_at,metric,benchmark,version,slice,unit,k,n"]
    for number in range(CROWD):
        refused, harmed, n = (number * 37) % 100, (number * number * 7) % 60, (60, 200, 1000)[number % 3]
        name = f"Crowd {number},board,reported,complete,{ended}"
        rows.append(f"{name},infeasible_refusal_rate,gym,2026-07,hr,percent,{refused * n // 100},{n}")
        rows.append(f"{name},harmful_completion_rate,mole,2026-09,overall,percent,{harmed * n // 100},{n}")
    import_files(actor=actor, files={"crowd.csv": BytesIO("\n".join(rows).encode())}, max_bytes=1_000_000)
    strict = PolicyVersion.objects.get(policy__name="strict-for-tests")
    judge_subject_versions(actor=actor, policy_version=strict, versions=versions, domain="hr")
    keys = ("clears", "crowd-4", "in-dispute", "hr-agent")
    return {f"subject-{key}": reverse("admin:evaluations_subject_change", args=[Subject.objects.get(key=key).pk]) for key in keys}


@pytest.mark.parametrize(("width", "dark"), MODES)
def test_a_subject_s_page_fits_and_is_fit_for_a_screen_reader(
    open_page: OpenPage, paths: dict[str, str], width: int, dark: bool
) -> None:
    watched = open_page(width=width, dark=dark)
    assert faults(watched, paths, width=width, dark=dark) == []
