"""Evidence in: a file handed in by a form and followed, and names settled one at a time by whoever saw what that touches."""

import io
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from compliance.models import Upload
from compliance.services.uploads import read_upload
from compliance.vocabulary import Role
from evaluations.models import AliasAssignment
from evaluations.selectors.names import find_waiting_names
from tests.support import signing, world

pytestmark = pytest.mark.django_db
NAME = "azure/model-a (high)"
WAITING = "admin:evaluations_aliasassignment_waiting"
ONE = "admin:evaluations_aliasassignment_name"
HAND_IN = "admin:compliance_upload_hand_in"


@pytest.fixture
def land(tmp_path, settings) -> signing.Ground:
    settings.UPLOAD_DIR = tmp_path / "uploads"
    return signing.ground("84")


def signed_in(role: Role, name: str = "Stella Steward") -> Client:
    client = Client()
    client.force_login(signing.human(name, role))
    return client


def text(answer: Any) -> str:
    return str(answer.content.decode())


class TestNames:
    def test_an_empty_queue_says_so(self, land: signing.Ground) -> None:
        assert "No name waits" in text(signed_in(Role.AUDITOR).get(reverse(WAITING)))

    def test_a_name_is_shown_with_what_it_may_mean_and_what_differs(self, land: signing.Ground) -> None:
        world.submit(world.submission(NAME))
        client = signed_in(Role.EVIDENCE_STEWARD)
        assert NAME in text(client.get(reverse(WAITING)))
        page = text(client.get(reverse(ONE), {"name": NAME}))
        assert "effort high here, not stated there" in page
        assert "means=model-a%401" in page

    def test_what_it_touches_is_shown_before_and_the_word_is_taken(self, land: signing.Ground) -> None:
        grant = signing.granted(land)
        world.submit(world.submission(NAME))
        client = signed_in(Role.ADMINISTRATOR)
        answer = client.get(reverse(ONE), {"name": NAME, "means": "model-a"})
        page = text(answer)
        assert "Evidence that lands: 1" in page
        assert "Grants that are reviewed after it: 1" in page
        assert str(grant.uid)[:8] in page
        assert not AliasAssignment.objects.filter(name_as_written=NAME).exists()
        first = answer.context["statement"].initial
        done = client.post(reverse(ONE), first)
        assert (done.status_code, done.url) == (302, reverse(WAITING))
        assert find_waiting_names()[:5] == []

    def test_what_moved_is_shown_anew(self, land: signing.Ground) -> None:
        world.submit(world.submission(NAME))
        client = signed_in(Role.EVIDENCE_STEWARD)
        first = client.get(reverse(ONE), {"name": NAME, "means": "model-a"}).context["statement"].initial
        world.submit(world.submission(NAME, world.observation("11")))
        again = client.post(reverse(ONE), first)
        assert (again.status_code, "Evidence that lands: 2" in text(again)) == (409, True)
        assert client.post(reverse(ONE), again.context["statement"].initial).status_code == 302

    def test_nobody_takes_a_reason_and_an_unknown_version_is_refused(self, land: signing.Ground) -> None:
        client = signed_in(Role.EVIDENCE_STEWARD)
        assert client.get(reverse(ONE), {"name": NAME, "means": "model-z"}).status_code == 422
        first = client.get(reverse(ONE), {"name": NAME, "means": "nobody"}).context["statement"].initial
        refused = client.post(reverse(ONE), first)
        assert (refused.status_code, "say why" in text(refused)) == (422, True)
        assert client.post(reverse(ONE), {**first, "reason": "not ours"}).status_code == 302

    def test_others_read_and_say_nothing(self, land: signing.Ground) -> None:
        client = signed_in(Role.REQUESTER)
        answer = client.get(reverse(ONE), {"name": NAME, "means": "model-a"})
        assert "needs the role evidence steward" in text(answer)
        assert client.post(reverse(ONE), answer.context["statement"].initial).status_code == 403
        assert not AliasAssignment.objects.filter(name_as_written=NAME).exists()


class TestUploads:
    def hand_in(self, client: Client, *subjects: str, value: str = "84", **more: str) -> Any:
        document = world.submission(subjects[0])
        document["evidence"] = [world.submission(one, world.observation(value))["evidence"][0] for one in subjects]
        file = io.BytesIO(json.dumps(document).encode())
        file.name = "run.json"
        return client.post(reverse(HAND_IN), {"file": file, **more})

    def test_it_is_followed_to_what_was_taken_and_held(self, land: signing.Ground) -> None:
        client = signed_in(Role.EVIDENCE_STEWARD)
        answer = self.hand_in(client, "model-a", NAME)
        upload = Upload.objects.get()
        place = reverse("admin:compliance_upload_change", args=[upload.pk])
        assert (answer.status_code, answer.url) == (302, place)
        progress = reverse("admin:compliance_upload_progress", args=[upload.pk])
        assert progress in text(client.get(place))
        assert "HX-Refresh" not in client.get(progress).headers
        read_upload(upload.uid)
        assert client.get(progress).headers["HX-Refresh"] == "true"
        page = text(client.get(place))
        assert "nobody has said whom it means" in page
        assert reverse(ONE) in page
        listed = text(client.get(reverse("admin:compliance_upload_changelist")))
        assert ("run.json" in listed, "Stella Steward<" in listed, ">person:" in listed) == (True, True, False)

    def test_a_refused_file_shows_each_reason_and_place(self, land: signing.Ground) -> None:
        client = signed_in(Role.EVIDENCE_STEWARD)
        self.hand_in(client, "model-a", value="a lot")
        upload = read_upload(Upload.objects.get().uid)
        page = text(client.get(reverse("admin:compliance_upload_change", args=[upload.pk])))
        assert "Refused: nothing of it was taken" in page
        assert "line 1, evidence[0].observations[0].value" in page

    def test_the_form_says_what_it_lacks(self, land: signing.Ground) -> None:
        client = signed_in(Role.EVIDENCE_STEWARD)
        assert client.get(reverse(HAND_IN)).status_code == 200
        assert client.post(reverse(HAND_IN), {}).status_code == 422
        assert not Upload.objects.exists()

    def test_only_stewards_hand_in(self, land: signing.Ground) -> None:
        client = signed_in(Role.REQUESTER)
        assert client.get(reverse(HAND_IN)).status_code == 403
        assert self.hand_in(client, "model-a").status_code == 403
        assert "Nobody has handed in a file yet" in text(client.get(reverse("admin:compliance_upload_changelist")))
