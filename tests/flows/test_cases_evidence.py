"""Real failures of others, tried on us: cases O-05 and O-18, by each road on which evidence comes in."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import Upload
from compliance.services.people import create_token
from compliance.services.uploads import read_upload
from compliance.vocabulary import Role, Scope
from evaluations.kernel.clock import now
from evaluations.kernel.errors import InputRefused
from evaluations.models import Evidence
from policies.models import PolicyVersion
from policies.selectors.gate import ask_gate
from tests.flows.planting import ask
from tests.support import signing, world

pytestmark = pytest.mark.django_db
Send = Callable[[dict[str, Any]], str]


def by_file(document: dict[str, Any]) -> str:
    try:
        world.submit(document)
    except InputRefused as refusal:
        return str(refusal)
    return ""


def by_rest(document: dict[str, Any]) -> str:
    steward = signing.human("Stella Steward", Role.EVIDENCE_STEWARD)
    made = create_token(actor=world.ACTOR, name="ci", scopes=[Scope.SUBMIT_EVIDENCE], person=steward.person)
    answer = Client().post(
        "/api/v1/evidence",
        document,
        content_type="application/json",
        headers={"Authorization": f"Bearer {made.secret}"},
    )
    assert answer.status_code in (201, 400), answer.content
    return "" if answer.status_code == 201 else answer.content.decode()


def by_form(document: dict[str, Any]) -> str:
    client = Client()
    client.force_login(signing.human("Stella Steward", Role.EVIDENCE_STEWARD))
    file = io.BytesIO(json.dumps(document).encode())
    file.name = "results.json"
    assert client.post(reverse("admin:compliance_upload_hand_in"), {"file": file}).status_code == 302
    upload = read_upload(Upload.objects.get().uid)
    page = client.get(reverse("admin:compliance_upload_change", args=[upload.pk])).content.decode()
    return page if "nothing of it was taken" in page else ""


@pytest.fixture(params=[by_file, by_rest, by_form], ids=["file", "rest", "form"])
def send(request: pytest.FixtureRequest, tmp_path, settings) -> Send:
    """Hands in a document, and returns why it was refused, or nothing."""
    settings.UPLOAD_DIR = tmp_path / "uploads"
    world.register("m")
    road: Send = request.param
    return road


def message(version: PolicyVersion) -> str:
    moment = now()
    told: str = ask_gate(version, as_of=moment, known_at=moment).as_value()["candidates"][0]["rules"][0]["message"]
    return told


class TestO05:
    """79.999 is not 80."""

    @pytest.mark.parametrize(("value", "result"), [("79.999", "fail"), ("79.999999", "fail"), ("80.00", "pass")])
    def test_the_exact_value_is_judged_whichever_way_it_came(self, send: Send, value: str, result: str) -> None:
        version = world.propose("80.0")
        assert send(world.submission("m", world.observation(value))) == ""
        assert ask(version) == {"m": result}
        assert result == "pass" or f"{value} %" in message(version)

    def test_more_digits_than_are_kept_are_refused(self, send: Send) -> None:
        assert "decimal places" in send(world.submission("m", world.observation("79.99999999")))
        assert not Evidence.objects.exists()


class TestO18:
    """Errored samples leave the denominator."""

    @pytest.fixture
    def version(self) -> PolicyVersion:
        text = world.ONE_RULE.format(name="few-errors", bar=85)
        asked = "min_provenance: claim, min_samples: 50, max_error_share: 0.2"
        return world.propose_text(text.replace("min_provenance: claim", asked).encode())

    def test_eighty_right_of_ninety_scored_of_a_hundred_is_eighty(self, send: Send, version: PolicyVersion) -> None:
        assert send(world.submission("m", world.observation(None, k=80, n=100, errored=10, unscored=0))) == ""
        assert ask(version) == {"m": "fail"}
        assert "80 %" in message(version)

    @pytest.mark.parametrize(
        ("counts", "said"),
        [
            ({"k": 80, "n": 100, "errored": 10}, "contradicts its counts"),
            ({"n": 100, "errored": 10}, "cannot be told"),
            ({"n": 100, "errored": 101}, "more than n = 100"),
        ],
        ids=["beside its counts", "without k", "more errors than tasks"],
    )
    def test_a_rate_that_left_errors_out_is_refused(
        self, send: Send, version: PolicyVersion, counts: dict[str, int], said: str
    ) -> None:
        assert said in send(world.submission("m", world.observation("88.9", **counts)))
        assert not Evidence.objects.exists()
        assert ask(version) == {"m": "missing"}

    def test_counts_that_a_policy_asks_for_and_nobody_stated_are_missing(self, send: Send, version: PolicyVersion) -> None:
        assert send(world.submission("m", world.observation("88.9", n=100))) == ""
        assert ask(version) == {"m": "missing"}
