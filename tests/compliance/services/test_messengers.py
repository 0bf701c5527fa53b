"""Mail and chat on real wires: to one recipient each, and without a secret in what is said of a failure."""

import json

import pytest

from compliance.models import OutboxMessage, User
from compliance.services.delivery import deliver_due
from compliance.services.messengers import masked
from compliance.vocabulary import NoticeStatus
from evaluations.kernel.services import service_transaction
from tests.support.notices import notify, only, person
from tests.support.sinks import HttpSink, MailSink

PASSWORD = "hunter2-mail"


def test_a_mail_goes_to_the_one_person_with_title_lines_and_link(mails: MailSink) -> None:
    ada, bob = person(), person("bob@example.org")
    notify(ada, bob, title="Grant `hr-agent` – suspended")
    assert deliver_due() == (2, 0, False)
    assert [recipients for recipients, _ in mails.mails] == [["ada@example.org"], ["bob@example.org"]]
    mail = mails.mails[0][1]
    assert str(mail["Subject"]) == "Grant `hr-agent` – suspended"
    assert "bob" not in str(mail["To"])
    text = mail.get_body(("plain",)).get_content()
    assert "A result fell." in text
    assert "http://localhost:8000/admin/" in text


def test_a_person_who_lost_her_account_meanwhile_is_not_written_to(mails: MailSink) -> None:
    ada = person()
    notify(ada)
    with service_transaction("test"):
        User.objects.filter(pk=ada.pk).update(is_active=False)
    assert deliver_due() == (0, 1, False)
    assert (only().status, only().last_error, mails.mails) == ("dead", "this person has no active account", [])


@pytest.mark.parametrize("address", ["a@example.org,b@evil.org", "a@example.org?to=b@evil.org", "a@example.org\nBcc: b@evil.org"])
def test_an_address_can_name_no_second_recipient(mails: MailSink, address: str) -> None:
    ada = person()
    with service_transaction("test"):
        User.objects.filter(pk=ada.pk).update(email=address)
    notify(ada)
    assert deliver_due() == (0, 1, False)
    assert (only().status, mails.mails) == ("dead", [])


def test_a_mail_that_is_refused_is_tried_again_and_the_reason_holds_no_secret(
    mails: MailSink, settings, capfd: pytest.CaptureFixture[str]
) -> None:
    mails.refused = {"ada@example.org"}
    notify(person())
    assert deliver_due() == (0, 1, False)
    message = only()
    assert message.status == NoticeStatus.WAITING
    assert message.last_error.startswith("not taken")
    settings.NOTICE_MAIL_URL = f"mailto://operator:{PASSWORD}@127.0.0.1:1?from=gate@example.org"
    assert deliver_due(at=message.due_at) == (0, 1, False)
    settings.NOTICE_MAIL_URL = f"slack://{PASSWORD}"
    assert deliver_due(at=only().due_at) == (0, 1, False)
    assert "no mailto" in only().last_error
    told = only().last_error + message.last_error + "".join(capfd.readouterr())
    assert PASSWORD not in told
    assert "ada@example.org" not in told


def test_a_chat_is_told_by_its_mark_and_ends_when_it_is_taken_away(sink: HttpSink, settings) -> None:
    settings.NOTICE_CHAT_URLS = [f"json://operator:{PASSWORD}@{sink.place}/room"]
    (message,) = notify()
    assert PASSWORD not in str(vars(message))
    assert deliver_due() == (1, 0, False)
    assert json.loads(sink.heard[0].body)["title"] == "The grant is suspended"
    notify(cause="2")
    settings.NOTICE_CHAT_URLS = []
    assert deliver_due() == (0, 1, False)
    assert OutboxMessage.objects.get(status="dead").last_error == "this chat is no longer in WRITEGATE_CHAT_URLS"


def test_a_chat_s_error_repeats_nothing_of_its_address(sink: HttpSink, settings, capfd: pytest.CaptureFixture[str]) -> None:
    settings.NOTICE_CHAT_URLS = [f"json://operator:{PASSWORD}@{sink.place}/t0ken-in-path/"]
    sink.answers = [(500, {})]
    notify()
    assert deliver_due() == (0, 1, False)
    assert only().last_error.startswith("not taken: ")
    for hidden in (PASSWORD, "t0ken-in-path", "operator"):
        assert hidden not in only().last_error + "".join(capfd.readouterr())


def test_masking_takes_out_what_is_written_with_escapes_too() -> None:
    url = "slack://Tok%20en/xoxb-1234/%23room?key=se%2Fcret"
    said = masked("bad Tok en, Tok%20en, xoxb-1234 and se/cret at slack", url)
    assert said == "bad ***, ***, *** and *** at slack"
