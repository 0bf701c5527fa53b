"""The wires that notices go over."""

from collections.abc import Iterator

import pytest

from tests.support.sinks import HttpSink, MailSink, http_sink, mail_sink


@pytest.fixture
def sink(committed_db, settings) -> Iterator[HttpSink]:
    """An endpoint, allowed and told of nothing yet."""
    settings.NOTICE_MAIL_URL, settings.NOTICE_CHAT_URLS = "", []
    with http_sink() as found:
        settings.WEBHOOK_ALLOW = [found.place]
        yield found


@pytest.fixture
def mails(committed_db, settings) -> Iterator[MailSink]:
    settings.NOTICE_CHAT_URLS = []
    with mail_sink() as found:
        settings.NOTICE_MAIL_URL = f"mailto://127.0.0.1:{found.port}?from=gate@example.org&name=Writegate"
        yield found
