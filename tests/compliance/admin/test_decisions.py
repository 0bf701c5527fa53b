"""Decisions in the console: found, explained, judged once more and proved; and how often a grant was used."""

import re
import shlex

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags

from compliance.deciding.facts import Question
from compliance.ledger.note import VerifierKey
from compliance.ledger.verifier import verify_proof_file
from compliance.models import Decision, LedgerEntry
from compliance.selectors.access_tasks import BECAUSE, EMERGENCY
from compliance.selectors.ledger import signing_keys
from compliance.services.decisions import decide
from compliance.services.people import token_digest
from compliance.services.recording import Decided
from compliance.services.sealing import seal
from compliance.services.stopping import suspend_grant
from compliance.vocabulary import Role
from evaluations.models import Evidence
from policies.models import Verdict
from tests.compliance.admin.test_requests import signed_in, text_of
from tests.support import signing, world
from tests.support.asking import ask_gate, ask_token, file_about
from tests.support.signing import Ground

pytestmark = pytest.mark.django_db
LIST = reverse("admin:compliance_decision_changelist")


@pytest.fixture
def token(land: Ground) -> str:
    return ask_token(land.asker)


@pytest.fixture
def security(land: Ground) -> Client:
    return signed_in(land.security)


def page(answer: Decided, word: str = "change") -> str:
    return reverse(f"admin:compliance_decision_{word}", args=[Decision.objects.get(uid=answer.uid).pk])


def listed(client: Client, **query: str) -> list[str]:
    """Return the rows of the list as text, newest first."""
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    table = answer.content.decode().partition('id="result_list"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.partition("<tbody")[2], re.DOTALL)
    return [" ".join(strip_tags(row).split()) for row in rows if "<td" in row]


def test_an_empty_list_shows_how_to_ask(security: Client) -> None:
    html = security.get(LIST).content.decode()
    for part in ("How tooling asks", "http://testserver/access/v1/evaluation", "Bearer $WRITEGATE_TOKEN", "Nobody has asked yet"):
        assert part in html, part
    assert "How tooling asks" not in security.get(LIST, {"answer": "yes"}).content.decode(), "nothing found is not nothing there"


def test_the_list_tells_answer_subject_action_system_reason_and_who_asked(land: Ground, token: str, security: Client) -> None:
    ask_gate(token, "nobody")
    signing.granted(land)
    ask_gate(token)
    newest, oldest = listed(security)
    for part in ("allowed", "model-a", "write", "hr-prod", "a grant stands", "pipeline (token)", "UTC"):
        assert part in newest, part
    for part in ("denied", "nobody", "unknown subject and 1 more"):
        assert part in oldest, part
    assert "How tooling asks" not in security.get(LIST).content.decode()


def test_it_is_searched_by_answer_reason_system_subject_grant_and_period(land: Ground, token: str, security: Client) -> None:
    ask_gate(token, system="nowhere")
    grant = signing.granted(land)
    ask_gate(token)
    found = {
        "answer": ("yes", "allowed"),
        "code": ("unknown_system", "nowhere"),
        "system": ("nowhere", "nowhere"),
        "grant": (str(grant.uid), "allowed"),
    }
    for name, (value, expected) in found.items():
        (row,) = listed(security, **{name: value})
        assert expected in row, name
    answered = ask_gate(token, "model-b")
    for wanted in (answered.uid, answered.entry):
        (row,) = listed(security, q=str(wanted))
        assert "model-b" in row
    assert listed(security, q="no such request") == []
    assert len(listed(security, subject="model-a", since="2020-01-01", observed="no")) == 2
    assert listed(security, until="2020-01-01") == []
    assert listed(security, observed="yes") == []
    unreadable = security.get(LIST, {"grant": "no uuid"})
    assert "Nothing matches" in unreadable.content.decode()
    assert "Enter a valid UUID" in unreadable.content.decode()
    assert "Decision" in security.get(LIST, {"code": "no_such_code"}).content.decode()


def test_what_only_looked_on_says_so(land: Ground, token: str, security: Client) -> None:
    question = Question("model", "model-a", "write", "hr-prod")
    (answer,) = decide(questions=[question], token_digest=token_digest(token), observed=True)
    ask_gate(token)
    (row,) = listed(security, observed="yes")
    assert "only looked on" in row
    assert "a denial stopped nobody there" in text_of(security.get(page(answer)))
    assert len(listed(security, observed="no")) == 1


def test_older_ones_are_a_page_that_new_ones_do_not_move(land: Ground, token: str, security: Client) -> None:
    for number in range(52):
        ask_gate(token, f"subject-{number}")
    html = security.get(LIST).content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', html)
    assert older
    address = LIST + older[1].replace("&amp;", "&")
    assert "subject-1" in security.get(address).content.decode()
    ask_gate(token, "subject-52")
    again = security.get(address).content.decode()
    assert "subject-2<" not in again
    assert "subject-0" in again
    assert "Newest" in again


def test_everybody_sees_the_systems_of_her_team(land: Ground, token: str) -> None:
    answer, other = ask_gate(token), ask_gate(token, system="nowhere")
    owner, asker = signed_in(land.owner), signed_in(land.asker)
    assert len(listed(owner)) == 1
    assert listed(asker) == []
    for word in ("change", "replay", "proof"):
        assert owner.get(page(other, word)).status_code == 404
        assert asker.get(page(answer, word)).status_code == 404
        assert owner.get(page(answer, word)).status_code in (200, 409)
    assert security_of().get(page(other)).status_code == 200
    assert owner.post(page(answer)).status_code == 403
    assert Client().get(LIST).status_code == 302


def security_of() -> Client:
    return signed_in(signing.human("Sue Security", Role.SECURITY))


def test_a_denial_that_was_asked_about_links_to_its_request(land: Ground, security: Client) -> None:
    token = ask_token(land.asker, "decide", "request")
    answer, other = ask_gate(token), ask_gate(token)
    made = file_about(answer, token)
    html = security.get(page(answer)).content.decode()
    assert f"/admin/compliance/signoffrequest/{made.pk}/change/" in html
    assert "Asked of people" in html
    assert "Asked of people" not in security.get(page(other)).content.decode()


@pytest.mark.parametrize("emergency", [False, True])
def test_whoever_signs_sees_that_a_machine_asked_about_which_decision_and_how_urgently(land: Ground, emergency: bool) -> None:
    token = ask_token(land.asker, "decide", "request")
    answer = ask_gate(token)
    made = file_about(answer, token, emergency=emergency)
    shown = reverse("admin:compliance_signoffrequest_change", args=[made.pk])
    signer = signed_in(land.security)
    html = signer.get(shown).content.decode()
    head = html[html.index('id="origin"') : html.index("</header>", html.index('id="origin"'))]
    assert "asked by a machine" in head
    assert page(answer) in head
    assert ("an emergency, says the caller" in head) == emergency
    assert "by a machine" in signer.get(reverse("admin:compliance_signoffrequest_changelist")).content.decode()
    asker = signed_in(land.asker).get(shown).content.decode()
    assert str(answer.uid) in asker
    assert page(answer) not in asker


def test_a_person_who_writes_like_a_machine_is_none(land: Ground) -> None:
    answer = ask_gate(ask_token(land.asker))
    made = signing.ask(land, reason=f"{EMERGENCY}\n\n{BECAUSE.format(answer.uid)}")
    signer = signed_in(land.security)
    assert 'id="origin"' not in signer.get(reverse("admin:compliance_signoffrequest_change", args=[made.pk])).content.decode()
    assert "by a machine" not in signer.get(reverse("admin:compliance_signoffrequest_changelist")).content.decode()


def test_the_page_explains_a_denial_with_its_numbers_and_what_would_change_it(land: Ground, token: str, security: Client) -> None:
    grant = signing.granted(land)
    world.submit(
        world.submission("model-a", world.observation("71"), run={"status": "complete", "ended_at": "2026-11-20T00:00:00Z"})
    )
    world.judge_all()
    suspend_grant(actor=signing.actor_of(land.security), grant=grant, reason="odd")
    answer = ask_gate(token)
    html = security.get(page(answer)).content.decode()
    text = " ".join(strip_tags(html).split())
    for part in (
        "model-a was not allowed to write on hr-prod: the grant is suspended: taken back.",
        "denied",
        "grant_suspended",
        "evidence_insufficient",
        "measured: 71",
        "bar: 80",
        "Mend the cause, then ask that the grant comes back.",
        "two-keys v1",
        "fails",
        "pipeline (token)",
        "Workday production (hr-prod)",
        "waits",
        "Its entries in the ledger",
        "The facts, as they stand under the digest of the body",
    ):
        assert part in text, part
    verdict = Verdict.objects.order_by("-pk")[0]
    evidence = Evidence.objects.order_by("-pk")[0]
    for kind, pk in (("compliance_grant", grant.pk), ("policies_verdict", verdict.pk), ("evaluations_evidence", evidence.pk)):
        assert reverse(f"admin:{kind}_change", args=[pk]) in html, kind


def test_the_question_as_curl_says_what_was_asked_whatever_it_was(land: Ground, token: str, security: Client) -> None:
    answer = ask_gate(token, "it's; rm -rf /", fingerprint=land.version.digest)
    html = security.get(page(answer)).content.decode()
    shown = re.search(r"<pre[^>]*>(curl.*?)</pre>", html, re.DOTALL)
    assert shown
    parts = shlex.split(shown[1].replace("&quot;", '"').replace("&#x27;", "'").replace("\\\n", " "))
    assert parts[2] == "http://testserver/access/v1/evaluation"
    assert '"id": "it\'s; rm -rf /"' in parts[-1]
    assert land.version.digest in parts[-1]


def test_judging_once_more_says_what_came_of_it_and_records_nothing(land: Ground, token: str, security: Client) -> None:
    answer = ask_gate(token)
    narrow = ask_gate(ask_token(land.asker, "decide:other"))
    before = LedgerEntry.objects.count()
    assert "it comes out the same, byte for byte" in text_of(security.get(page(answer, "replay")))
    replaced = text_of(security.get(page(narrow, "replay")))
    for part in ("it comes out the same", "What the facts giveno: no grant", "out_of_scope: The token is for another system"):
        assert part in replaced, part
    assert LedgerEntry.objects.count() == before
    assert "it comes out" not in text_of(security.get(page(answer)))


def test_its_proof_follows_once_it_is_sealed_and_holds_offline(land: Ground, token: str) -> None:
    owner = signed_in(land.owner)
    answer = ask_gate(token)
    waits = owner.get(page(answer, "proof"))
    assert (waits.status_code, waits.headers["Retry-After"]) == (409, "5")
    assert "Download the proof" not in owner.get(page(answer)).content.decode()
    seal()
    assert "Download the proof" in owner.get(page(answer)).content.decode()
    proof = owner.get(page(answer, "proof"))
    assert proof.headers["Content-Disposition"] == f'attachment; filename="decision-{answer.uid}.tlog-proof"'
    report = verify_proof_file(
        proof.content, keys=[VerifierKey.parse(key.verifier_key) for key in signing_keys(up_to_size=10_000)]
    )
    assert report.is_ok()
    assert str(answer.uid) in report.facts["content"]


def test_a_grant_s_page_draws_its_days_and_leads_to_its_decisions(land: Ground, token: str, security: Client) -> None:
    grant = signing.granted(land)
    address = reverse("admin:compliance_grant_change", args=[grant.pk])
    assert "Nobody asked for anything under it" in text_of(security.get(address))
    ask_gate(token)
    ask_gate(token)
    ask_gate(token, action="delete")
    answer = security.get(address)
    assert "2 allowed and 1 denied in the last 30 days" in text_of(answer)
    html = answer.content.decode()
    assert "Decisions on each of the last 30 days: 2 allowed, 1 denied" in html
    assert f"{LIST}?grant={grant.uid}" in html
    assert len(listed(security, grant=str(grant.uid))) == 3
    stranger = signed_in(signing.human("Nobody Much", Role.REQUESTER, team="elsewhere"))
    assert stranger.get(address).status_code == 404
    assert "as far as you see" in text_of(signed_in(land.asker).get(address))


def test_the_list_makes_the_same_queries_however_long_it_is(land: Ground, token: str, security: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            security.get(LIST)
        return len(queries)

    signing.granted(land)
    ask_gate(token)
    count()
    before = count()
    for number in range(5):
        ask_gate(token, f"subject-{number}")
        ask_gate(ask_token(land.asker))
    assert count() == before <= 12


def test_an_entry_of_the_trail_leads_to_its_decision(land: Ground, token: str) -> None:
    answer = ask_gate(token)
    auditor = signed_in(signing.human("Ada Auditor", Role.AUDITOR))
    entry = LedgerEntry.objects.get(uid=answer.entry)
    html = auditor.get(reverse("admin:compliance_ledgerentry_change", args=[entry.pk])).content.decode()
    assert page(answer) in html
    assert reverse("admin:compliance_ledgerentry_change", args=[entry.pk]) in auditor.get(page(answer)).content.decode()
