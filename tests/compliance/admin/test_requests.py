"""Requests in the console: reading a dossier, signing it, and every way in which it is not signed."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.models import Grant, LedgerEntry, RequestComment, SignOffRequest, User
from compliance.models.signing_in import session_digest
from compliance.services.filing import request_renewal
from compliance.services.sign_offs import refresh_dossier
from compliance.services.signing_in import record_reauthentication
from compliance.services.stopping import stop_grants, suspend_grant
from compliance.vocabulary import Meaning, RequestKind, RequestStatus, Role
from evaluations.kernel.clock import now
from tests.support import signing, world
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
BASELINE = Path("tests/baselines/console-queries.json")
LIST = reverse("admin:compliance_signoffrequest_changelist")


def signed_in(account: User, *, proved: bool = True) -> Client:
    """Return a client that is signed in, by default with a fresh proof of a second factor in its session."""
    client = Client()
    client.force_login(account)
    if proved:
        key = client.session.session_key or ""
        record_reauthentication(actor=signing.actor_of(account), user=account, session_key=key, method="totp")
    return client


def page(row: SignOffRequest) -> str:
    return reverse("admin:compliance_signoffrequest_change", args=[row.pk])


def act(row: SignOffRequest, word: str) -> str:
    return reverse(f"admin:compliance_signoffrequest_{word}", args=[row.pk])


def text_of(answer) -> str:
    html = answer.content.decode()
    return " ".join(strip_tags(html[html.index("<main") : html.index("</main>")]).split())


def word(row: SignOffRequest, meaning: str = "approved", **more: str) -> dict[str, str]:
    row.refresh_from_db()
    return {"meaning": meaning, "reason": "looked at it", "digest": row.dossier.digest, **more}


def news(value: str, ended: str = "2026-11-20T00:00:00Z") -> None:
    world.submit(world.submission("model-a", world.observation(value), run={"status": "complete", "ended_at": ended}))
    world.judge_all()


def test_the_page_tells_the_whole_dossier(land: Ground) -> None:
    request = signing.ask(land)
    signing.sign(land.owner, request, reason="the way back is short")
    text = text_of(signed_in(land.security).get(page(request)))
    for part in (
        "May model-a (v1) write to Workday production until",
        "91 %",
        "at least the required 80 %",
        "rests on 1 piece of evidence",
        "Blast radius",
        "reversibility",
        "Every rule has evidence that speaks to it",
        "None: nothing that fails is to be accepted",
        "Rita Asker",
        "the nightly sync needs it",
        "Olga Owner",
        "the way back is short",
        "security",
        "Nothing was signed before",
    ):
        assert part in text, part
    assert "Olga Owner: has signed" in text


def test_nothing_is_ticked_and_nobody_approves_from_the_list(land: Ground) -> None:
    request = signing.ask(land)
    client = signed_in(land.security)
    html = client.get(page(request)).content.decode()
    assert len(re.findall(r'name="meaning"', html)) == 3
    assert " checked" not in html
    listed = client.get(LIST).content.decode()
    assert 'name="_selected_action"' not in listed
    answer = client.post(LIST, {"action": "approve", "_selected_action": [request.pk]})
    assert answer.status_code == 403
    assert not request.sign_offs.exists()


def test_two_people_sign_and_the_grant_begins(land: Ground) -> None:
    request = signing.ask(land)
    first = signed_in(land.owner).post(act(request, "sign"), word(request))
    assert (first.status_code, first["Location"]) == (302, page(request))
    assert not Grant.objects.exists()
    signed_in(land.security).post(act(request, "sign"), word(request))
    assert Grant.objects.get().request_id == request.pk
    assert request.reload().status == RequestStatus.COMPLETED


def test_without_a_proof_it_leads_to_one_and_keeps_what_was_typed(land: Ground) -> None:
    request = signing.ask(land)
    client = signed_in(land.security, proved=False)
    answer = client.post(act(request, "sign"), word(request, reason="typed with care"))
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("account_reauthenticate"))
    assert not request.sign_offs.exists()
    html = client.get(page(request)).content.decode()
    assert "typed with care" in html
    assert re.search(r'value="approved"[^>]* checked', html)
    key = client.session.session_key or ""
    record_reauthentication(actor=signing.actor_of(land.security), user=land.security, session_key=key, method="totp")
    client.post(act(request, "sign"), word(request, reason="typed with care"))
    assert request.sign_offs.get().reauthentication.session_digest == session_digest(key)
    assert "typed with care" not in client.get(LIST).content.decode()


def test_a_dossier_that_changed_comes_back_with_the_difference_and_is_not_signed(land: Ground) -> None:
    request = signing.ask(land)
    client = signed_in(land.security)
    shown = word(request, reason="I looked at 91")
    news("93")
    answer = client.post(act(request, "sign"), shown)
    text = text_of(answer)
    assert answer.status_code == 409
    assert "The dossier has changed since you were shown it, so nothing was signed" in text
    assert "91" in text
    assert "is now" in text
    assert "93" in text
    html = answer.content.decode()
    assert "I looked at 91" in html
    assert " checked" not in html
    assert not request.sign_offs.exists()
    assert client.post(act(request, "sign"), word(request)).status_code == 302
    assert request.sign_offs.get().dossier.number == 2


def test_a_form_that_is_not_whole_says_so_at_the_top_and_leads_to_the_place(land: Ground) -> None:
    request = signing.ask(land)
    for said, place in (("sign", "#decide"), ("comment", "#comments")):
        answer = signed_in(land.security).post(act(request, said), word(request, reason="", meaning="", text=""))
        top = answer.content.decode().partition('class="wg-columns"')[0]
        assert answer.status_code == 422
        assert f'<a class="wg-link" href="{place}">see below what is to be mended</a>' in top
    assert not request.sign_offs.exists()


def test_what_stands_against_it_is_told_once_with_its_names_as_names(land: Ground) -> None:
    request = signing.ask(land)
    news("71")
    html = signed_in(land.security).get(page(request)).content.decode()
    shown = html.partition("It cannot be approved as things stand")[2].partition("</div>")[0]
    for name in ("two-keys", "hr-prod", "refuses"):
        assert f">{name}</code>" in shown
    moved = html.partition('id="moved"')[2].partition("</div>")[0]
    assert moved.count("is not passed") == 1
    assert "`" not in moved + shown


def test_an_open_page_says_that_what_it_rests_on_moved_and_offers_no_signature(land: Ground) -> None:
    request = signing.ask(land)
    signing.sign(land.owner, request)
    news("93")
    client = signed_in(land.security)
    answer = client.get(page(request))
    assert "What this dossier rests on has changed" in text_of(answer)
    assert 'name="meaning"' not in answer.content.decode()
    client.post(act(request, "refresh"))
    text = text_of(client.get(page(request)))
    assert "void: dossier 1 was replaced" in text
    assert "dossier 1 of this request, which was signed" in text
    assert "<s>" in client.get(page(request)).content.decode()


def test_the_requester_is_offered_no_signature_and_refused_one(land: Ground) -> None:
    asker = signing.human("Super User", *Role, team="every")
    request = signing.ask(land, account=asker)
    client = signed_in(asker)
    text = text_of(client.get(page(request)))
    assert "You do not sign this: asked for it" in text
    answer = client.post(act(request, "sign"), word(request))
    assert answer.status_code == 409
    assert not request.sign_offs.exists()
    assert LedgerEntry.objects.filter(action="sign_off.refused").count() == 1


def test_the_requester_takes_it_back_and_others_comment(land: Ground) -> None:
    request = signing.ask(land)
    security = signed_in(land.security)
    security.post(act(request, "comment"), {"text": "Why not staging?", "change_requested": "on"})
    assert RequestComment.objects.get().kind == "change_requested"
    text = text_of(security.get(page(request)))
    assert "asks for a change" in text
    assert "Take my request back" not in text
    assert security.post(act(request, "withdraw"), {"reason": "no"}).status_code == 422
    signed_in(land.asker).post(act(request, "withdraw"), {"reason": "not needed any more"})
    assert request.reload().status == RequestStatus.WITHDRAWN


@pytest.mark.parametrize("reason", ["", "   "])
def test_a_signature_without_a_reason_or_meaning_is_none(land: Ground, reason: str) -> None:
    request = signing.ask(land)
    client = signed_in(land.security)
    assert client.post(act(request, "sign"), word(request, reason=reason)).status_code == 422
    assert client.post(act(request, "sign"), word(request, "")).status_code == 422
    assert not request.sign_offs.exists()


def test_a_time_is_stated_in_utc_and_never_shifted(land: Ground) -> None:
    client = signed_in(land.asker)
    address = reverse("admin:compliance_signoffrequest_ask_access")
    form = client.get(f"{address}?subject_version={land.version.pk}").content.decode()
    assert "Until (UTC)" in form
    assert 'name="systems"' in form
    client.post(
        address,
        {
            "key": "one",
            "subject_version": land.version.pk,
            "systems": [land.system.pk],
            "actions": "write",
            # In Berlin this hour was left out that night in spring; in UTC it is an hour like any other.
            "ends_at": "2027-01-31T02:30:00",
            "reason": "x",
        },
    )
    asked = json.loads(bytes(SignOffRequest.objects.get(kind=RequestKind.GRANT).proposal))
    assert asked["ends_at"] == "2027-01-31T02:30:00.000000Z"


def test_a_request_that_one_may_not_see_is_not_there(land: Ground) -> None:
    request = signing.ask(land)
    stranger = signed_in(signing.human("Nobody Much", Role.REQUESTER, team="elsewhere"))
    for address in (page(request), act(request, "dossier")):
        assert stranger.get(address).status_code == 404
    for name in ("sign", "comment", "withdraw", "refresh", "complete"):
        assert stranger.post(act(request, name), word(request)).status_code == 404
    assert f"/signoffrequest/{request.pk}/" not in stranger.get(LIST, {"q": "model-a"}).content.decode()
    found = stranger.get(
        reverse("admin:autocomplete"), {"app_label": "compliance", "model_name": "grant", "field_name": "request"}
    )
    assert found.status_code in (403, 404) or str(request) not in found.content.decode()


def test_the_list_narrows_by_kind_status_and_whom_it_concerns(land: Ground) -> None:
    waiting = signing.ask(land)
    done = signing.ask(land, days=10)
    signing.sign(land.owner, done)
    signing.sign(land.security, done)

    def listed(account: User, **query: str) -> set[int]:
        html = signed_in(account).get(LIST, query).content.decode()
        return {int(pk) for pk in re.findall(r"/signoffrequest/(\d+)/change/", html)}

    assert listed(land.security) >= {waiting.pk, done.pk}
    assert listed(land.security, **{"for": "me"}) == {waiting.pk}
    assert listed(land.asker, **{"for": "mine"}) == {waiting.pk, done.pk}
    assert listed(land.security, standing="completed") == {done.pk}
    assert listed(land.security, kind__exact="ruling") == set()
    assert listed(land.security, q="hr-prod") == {waiting.pk, done.pk}


def test_the_bytes_that_are_signed_can_be_taken_away(land: Ground) -> None:
    request = signing.ask(land)
    answer = signed_in(land.security).get(act(request, "dossier"))
    assert answer.content == bytes(request.dossier.content)
    assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.slow
def test_who_signs_reads_that_access_was_taken_away_since_it_was_asked_for(land: Ground) -> None:
    grant = signing.granted(land, days=20)
    by = signing.actor_of(land.security)
    asked = request_renewal(actor=signing.actor_of(land.asker), grant=grant, ends_at=now() + timedelta(days=60), reason="needed")
    suspend_grant(actor=by, grant=grant, reason="a look is needed")
    stop_grants(actor=by, scope="system", key="hr-prod", reason="it <b>leaks</b>")
    refresh_dossier(actor=by, request=asked)
    shown = signed_in(land.owner).get(page(asked)).content.decode()
    assert "is suspended: taken back by a person" in shown
    assert "system hr-prod, since this was asked for: it &lt;b&gt;leaks&lt;/b&gt;" in shown


def test_each_page_makes_the_queries_that_the_baseline_states(land: Ground) -> None:
    request = signing.ask(land)
    signing.sign(land.owner, request)
    grant = signing.granted(land, days=20)
    client = signed_in(land.security)
    renewal = request_renewal(
        actor=signing.actor_of(land.asker), grant=grant, ends_at=now() + timedelta(days=60), reason="still needed"
    )
    signing.sign(land.owner, renewal)
    pages = {
        "dossier": page(request),
        "dossier of a renewal": page(renewal),
        "requests": LIST,
        "home": reverse("admin:index"),
        "grant": reverse("admin:compliance_grant_change", args=[grant.pk]),
        "grants": reverse("admin:compliance_grant_changelist"),
        "drift": reverse("admin:compliance_grant_drift"),
        "subject": reverse("admin:evaluations_subject_change", args=[land.version.subject_id]),
    }

    def counted() -> dict[str, int]:
        found = {}
        for name, address in pages.items():
            with CaptureQueriesContext(connection) as queries:
                assert client.get(address).status_code == 200
            found[name] = len(queries)
        return found

    counted()  # what is looked up once a process
    counts = counted()
    for number in range(3):
        world.submit(
            world.submission(
                "model-a", *[world.observation("91")], run={"status": "complete", "ended_at": f"2026-10-0{number + 1}T00:00:00Z"}
            )
        )
        world.judge_all()
        signing.human(f"More {number}", Role.SECURITY)
        signing.ask(land, days=30 + number)
        signing.granted(land, days=40 + number)
    assert counted() == counts
    stated = json.loads(BASELINE.read_text(encoding="utf-8"))
    assert max(counts.values()) <= 30
    assert counts == stated, f"the queries changed; if that is meant, write them to {BASELINE}"


def test_meanings_are_offered_by_what_was_said(land: Ground) -> None:
    request = signing.ask(land)
    client = signed_in(land.security)
    signing.sign(land.security, request)
    offered = set(re.findall(r'name="meaning" value="(\w+)"', client.get(page(request)).content.decode()))
    assert offered == {Meaning.REJECTED, Meaning.REVIEWED, Meaning.WITHDRAWN}
    client.post(act(request, "sign"), word(request, "withdrawn"))
    text = text_of(client.get(page(request)))
    assert "void: she has said something else since" in text
