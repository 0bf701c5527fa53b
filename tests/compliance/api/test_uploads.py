"""Files handed in over the API: streamed, answered by a job, and told of row by row."""

from typing import Any

import pytest

from compliance.models import Upload
from compliance.services.uploads import read_upload
from compliance.vocabulary import Role
from evaluations.models import Evidence
from tests.compliance.api.callers import as_person, as_token
from tests.compliance.api.world import V1, Api
from tests.support import signing

pytestmark = pytest.mark.django_db
HEADER = "subject,source,provenance,metric,benchmark,version,value,unit,run_status,run_ended_at\n"
ROW = "{name},lab,run_log,infeasible_refusal_rate,bench,1,84,percent,complete,2026-11-01T00:00:00Z\n"


@pytest.fixture
def machine(land: signing.Ground, tmp_path, settings) -> Api:
    settings.UPLOAD_DIR = tmp_path / "uploads"
    return as_token(signing.human("Stella Steward", Role.EVIDENCE_STEWARD), "submit_evidence", "read")


def hand_in(api: Api, body: str, query: str = "?file_name=a.csv", content_type: str = "application/octet-stream", **headers: str):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.post(
        f"{V1}/evidence/uploads{query}", body.encode(), content_type=content_type, headers={**api.headers, **given}
    )


def told(api: Api, answer: Any) -> Any:
    return api.client.get(answer.headers["Location"], headers=api.headers).json()


def test_a_file_is_answered_by_a_job_that_tells_of_its_rows(machine: Api) -> None:
    answer = hand_in(machine, HEADER + ROW.format(name="model-a") + ROW.format(name="stranger"))
    made = answer.json()
    assert (answer.status_code, made["status"], made["percent"], made["file_name"]) == (202, "queued", 0, "a.csv")
    assert (answer.headers["Retry-After"], told(machine, answer)["uid"]) == ("2", made["uid"])
    read_upload(made["uid"])
    done = told(machine, answer)
    assert (done["status"], done["percent"], done["format"], done["taken"]) == ("done", 100, "writegate-csv", 2)
    assert done["held"] == [{"name": "stranger", "observations": 1}]
    assert done["document"] == done["file_digest"]
    assert machine.get("evidence/uploads", {"status": "done"}).json()["results"] == [done]


def test_what_is_refused_says_why_and_where(machine: Api) -> None:
    before = Evidence.objects.count()
    answer = hand_in(machine, HEADER + ROW.format(name="model-a") + ROW.format(name="model-a").replace(",84,", ",a lot,"))
    read_upload(answer.json()["uid"])
    done = told(machine, answer)
    problem = done["refused"][0]
    assert (done["status"], problem["file"], problem["row"], problem["field"]) == ("refused", "a.csv", 3, "value")
    assert Evidence.objects.count() == before


def test_a_retry_gets_the_same_upload_and_another_file_under_its_key_a_conflict(machine: Api) -> None:
    first = hand_in(machine, HEADER + ROW.format(name="model-a"), Idempotency_Key="k")
    again = hand_in(machine, HEADER + ROW.format(name="model-a"), Idempotency_Key="k")
    other = hand_in(machine, HEADER + ROW.format(name="stranger"), Idempotency_Key="k")
    assert first.json()["uid"] == again.json()["uid"]
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert Upload.objects.count() == 1


@pytest.mark.parametrize(
    ("query", "content_type", "status"),
    [
        ("?format=xml", "application/octet-stream", 400),
        ("?fromat=x", "application/octet-stream", 400),
        ("?published_at=yesterday", "application/octet-stream", 400),
        ("", "text/csv", 415),
    ],
)
def test_what_is_told_wrongly_is_refused_before_anything_is_kept(
    machine: Api, query: str, content_type: str, status: int
) -> None:
    assert hand_in(machine, HEADER, query, content_type).status_code == status
    assert not Upload.objects.exists()


def test_what_is_too_large_or_comes_without_its_length_is_refused(machine: Api, settings) -> None:
    assert hand_in(machine, "").status_code == 411
    settings.UPLOAD_MAX_BYTES = 10
    assert hand_in(machine, HEADER).status_code == 413


def test_a_token_that_may_only_submit_learns_what_became_of_its_own_file(machine: Api) -> None:
    steward = signing.human("Olaf Owner", Role.EVIDENCE_STEWARD)
    alone = as_token(steward, "submit_evidence")
    answer = hand_in(alone, HEADER + ROW.format(name="model-a"))
    assert told(alone, answer)["uid"] == answer.json()["uid"]
    other = as_token(steward, "submit_evidence")
    assert other.client.get(answer.headers["Location"], headers=other.headers).status_code == 403
    assert alone.get("evidence/uploads").status_code == 403


def test_only_stewards_hand_in(machine: Api, land: signing.Ground) -> None:
    assert hand_in(as_token(land.asker, "read"), HEADER).status_code == 403
    assert hand_in(as_person(land.asker), HEADER).status_code == 403
