"""Somebody at the console, over real HTTP: she signs in, adds an authenticator app, proves who she is, and fills in forms.

What the demo does, it does by the road that people take: there is no other one round re-authentication.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pyotp
import requests
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application

PERIOD = 30
TIMEOUT = 60


class PageRefused(RuntimeError):
    """The console answered otherwise than a visitor expects; the text names page, status and what it says."""


class Form:
    """A form of a page: where it goes, and the values that it holds by itself."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.values: dict[str, list[str]] = {}
        self.names: set[str] = set()


class _Forms(HTMLParser):
    """Reads the forms of a page as a browser does, as far as ours need it."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.said: list[str] = []
        self._open: Form | None = None
        self._select = ""
        self._quiet = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("script", "style"):
            self._quiet += 1
        if tag == "form":
            self._open = Form(given.get("action", ""))
            self.forms.append(self._open)
        if self._open is None:
            return
        name = given.get("name", "")
        if tag in ("input", "textarea", "select", "button") and name:
            self._open.names.add(name)
        if tag == "input" and name:
            kind = given.get("type", "text")
            unticked = kind in ("checkbox", "radio") and "checked" not in given
            if not unticked and kind not in ("submit", "button", "file", "image"):
                self._open.values.setdefault(name, []).append(given.get("value", ""))
        if tag == "select":
            self._select = name
        if tag == "option" and self._select and "selected" in given:
            self._open.values.setdefault(self._select, []).append(given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._quiet -= 1
        if tag == "form":
            self._open = None
        if tag == "select":
            self._select = ""

    def handle_data(self, data: str) -> None:
        if not self._quiet and data.strip():
            self.said.append(data.strip())


class Visitor:
    """One account in one browser."""

    def __init__(self, address: str, *, email: str, password: str, secret: str = "") -> None:
        self._address = address
        self._browser = requests.Session()
        self._email = email
        self._password = password
        self.secret = secret
        self._used: set[int] = set()

    def sign_in(self) -> None:
        """Sign in by password, and by a code where the account has an authenticator app."""
        answer = self.submit("/accounts/login/", having="password", login=self._email, password=self._password)
        if "/2fa/authenticate" in answer.url:
            answer = self.submit(answer.url, having="code", code=self._code())
        if "/accounts/" in answer.url:
            raise PageRefused(f"{self._email} could not sign in: {_said(answer)}")

    def add_authenticator(self) -> str:
        """Add an authenticator app, and return its secret."""
        path = "/accounts/2fa/totp/activate/"
        page = self._get(path)
        if "/reauthenticate" in page.url:
            self.submit(page.url, having="password", password=self._password)
            page = self._get(path)
        self.secret = _field(page, "authenticator_secret")
        self.submit(path, having="code", page=page, code=self._code())
        return self.secret

    def prove(self, back_to: str) -> None:
        """Show once more, by a code, that it is she."""
        self.submit(f"/accounts/2fa/reauthenticate/?next={back_to}", having="code", code=self._code())

    def submit(self, path: str, *, having: str, page: requests.Response | None = None, **fields: Any) -> requests.Response:
        """Fill in the form of a page that has the field `having`, keeping what it holds by itself; return the page it leads to.

        Raises `PageRefused` where there is no such form, or where the answer is an error.
        """
        shown = page or self._get(path)
        reader = _read(shown)
        form = next((form for form in reader.forms if having in form.names), None)
        if form is None:
            raise PageRefused(f"{shown.url} has no form with `{having}`: {_said(shown)}")
        values: dict[str, Any] = {**form.values, **fields}
        target = urljoin(shown.url, form.action or shown.url)
        answer = self._browser.post(target, data=values, headers={"Referer": shown.url}, timeout=TIMEOUT)
        if answer.status_code >= 400:
            raise PageRefused(f"{target} answered {answer.status_code}: {_said(answer)}")
        return answer

    def read(self, path: str) -> str:
        """Return what a page says."""
        return _said(self._get(path), whole=True)

    def _get(self, path: str) -> requests.Response:
        answer = self._browser.get(urljoin(self._address, path), timeout=TIMEOUT)
        if answer.status_code >= 400:
            raise PageRefused(f"{answer.url} answered {answer.status_code}: {_said(answer)}")
        return answer

    def _code(self) -> str:
        """Return a code that was not given before: each works once, those of the last, this and the next half minute are taken."""
        while True:
            step = int(time.time()) // PERIOD
            for wanted in (step, step + 1, step - 1):
                if wanted not in self._used:
                    self._used.add(wanted)
                    return pyotp.TOTP(self.secret).at(wanted * PERIOD)
            time.sleep(1)


@contextmanager
def own_server() -> Iterator[str]:
    """Serve the site on a free port of the loopback for as long as the block runs; yields its address."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Silent)
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has in the standard library
        """The demo tells its own story; a line for each page would drown it."""


def _read(page: requests.Response) -> _Forms:
    reader = _Forms()
    reader.feed(page.text)
    return reader


def _said(page: requests.Response, *, whole: bool = False) -> str:
    text = " ".join(_read(page).said)
    # What a page has to say comes after the console's navigation.
    return text if whole else text[-600:]


def _field(page: requests.Response, identifier: str) -> str:
    """Return the value of the input with this id."""

    class Finder(HTMLParser):
        found = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            if tag == "input" and given.get("id") == identifier:
                self.found = given.get("value") or ""

    finder = Finder()
    finder.feed(page.text)
    if not finder.found:
        raise PageRefused(f"{page.url} shows no `{identifier}`")
    return finder.found
