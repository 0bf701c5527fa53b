"""A real browser on the console, served over real HTTP with committed rows.

Without a Chromium on this machine these tests skip; with WRITEGATE_NO_SKIP=1 a skip is a failure.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connections
from django.test import override_settings
from django.urls import reverse
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from compliance.models import AuditExport, LedgerEntry
from compliance.selectors.ledger import EntryFilter
from compliance.services.exports import start_export
from compliance.vocabulary import ExportStatus
from evaluations.kernel.actor import person
from evaluations.models import Document, Evidence, Source, Subject
from tests.compliance.admin.world import EMAIL, PASSWORD, World, build_world
from tests.support import cluster as clusters

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The browser may not look up any name: what asks for another host fails at once, and is recorded.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]


@dataclass
class Watched:
    """A page, and everything about it that would worry us."""

    page: Page
    address: str
    worries: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        answer = self.page.goto(f"{self.address}{path}", wait_until="load")
        assert answer is not None
        assert answer.ok, (path, answer.status)
        self._ready()

    @contextmanager
    def leaving(self, url: str | None = None) -> Iterator[None]:
        """What is done inside leads to another page: come out when that one (`url`, if one is named) is ready to be used.

        Neither a click nor a key waits for the page that it opens. Who asks right after may be answered by the old one, or by
        none, in the moment in which there is no document.
        """
        with self.page.expect_navigation(url=url):
            yield
        self._ready()

    def _ready(self) -> None:
        """Wait until the frame's scripts have run: until then it hides itself."""
        self.page.locator("html:not([x-cloak])").wait_for(state="attached")

    def barriers(self) -> list[str]:
        """Return what a checker of accessibility finds serious on the page as it stands, each with its first places."""
        answer = Axe().run(self.page, options={"resultTypes": ["violations"]}).response
        assert answer["passes"], "nothing was checked"
        return [
            f"{found['id']} ({found['impact']}): {[node['html'][:140] for node in found['nodes'][:3]]}"
            for found in answer["violations"]
            if found["impact"] in {"serious", "critical"}
        ]


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    return ""


@pytest.fixture(scope="session")
def chromium() -> str:
    found = _chromium()
    if not found:
        pytest.skip("no Chromium on this machine: install the package `chromium` to run the browser's tests")
    return found


Serve = Callable[..., AbstractContextManager[tuple[str, Any]]]
"""`serve(build, **settings)`: the console's address and what `build` returned, with all that it made committed behind it."""


@pytest.fixture(scope="module")
def serve(chromium: str, django_db_setup: None, django_db_blocker: DjangoDbBlocker, test_database: clusters.Database) -> Serve:
    @contextmanager
    def served(build: Callable[[], Any], **changed: Any) -> Iterator[tuple[str, Any]]:
        quick = override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"], **changed)
        with django_db_blocker.unblock(), quick:
            made = build()
            server = LiveServer("127.0.0.1")
            yield server.url, made
            server.stop()
            connections.close_all()
            clusters.empty_tables(test_database)

    return served


def _build() -> World:
    world = build_world()
    # No worker runs here: this one stays queued, and its page keeps asking.
    start_export(actor=person(world.user.person_id), wanted=EntryFilter(action="trust.assigned"))
    return world


@pytest.fixture(scope="module")
def served(serve: Serve) -> Iterator[tuple[str, World]]:
    """The console's address, with the made-up world committed behind it. No page here changes it, so one world serves them all."""
    with serve(_build) as found:
        yield found


@pytest.fixture(scope="module")
def paths(served: tuple[str, World]) -> dict[str, str]:
    """The pages to look at, by name; read before the browser runs."""
    _, world = served
    change = {
        "verdict-fails": ("policies_verdict", world.verdict("falls-short").pk),
        "verdict-stale": ("policies_verdict", world.verdict("gone-stale", "strict-for-tests").pk),
        "verdict-passes": ("policies_verdict", world.verdict("clears").pk),
        "verdict-agent": ("policies_verdict", world.verdict("hr-agent", "strict-for-tests").pk),
        "policy-version": ("policies_policyversion", world.verdict("clears", "strict-for-tests").policy_version_id),
        "policy": ("policies_policy", world.verdict("clears").policy_version.policy_id),
        "evidence": ("evaluations_evidence", Evidence.objects.get(subject_as_written="In Dispute").pk),
        "document": ("evaluations_document", Document.objects.get().pk),
        "source": ("evaluations_source", Source.objects.get(key="board").pk),
        "subject": ("evaluations_subject", Subject.objects.get(key="clears").pk),
        "person": ("compliance_person", world.user.person_id),
        "token": ("compliance_servicetoken", world.token.pk),
        "entry": ("compliance_ledgerentry", LedgerEntry.objects.get(action="evidence.disputed").pk),
        "entry-of-verdict": ("compliance_ledgerentry", LedgerEntry.objects.filter(action="verdict.recorded").first().pk),
        "entry-that-waits": (
            "compliance_ledgerentry",
            LedgerEntry.objects.filter(action="audit_export.requested", leaf=None).first().pk,
        ),
        "export": ("compliance_auditexport", world.export.pk),
        "export-that-waits": ("compliance_auditexport", AuditExport.objects.get(status=ExportStatus.QUEUED).pk),
    }
    lists = {
        "verdicts": "policies_verdict",
        "standings": "policies_standing",
        "evidence-list": "evaluations_evidence",
        "documents": "evaluations_document",
        "ledger": "compliance_ledgerentry",
        "people": "compliance_person",
        "tokens": "compliance_servicetoken",
        "names": "evaluations_aliasassignment",
        "exports": "compliance_auditexport",
        "routes-none-yet": "compliance_routinginventory",
    }
    found = {"home": "/admin/", "home-by-edge": "/admin/?order=edge"}
    found |= {name: reverse(f"admin:{where}_changelist") for name, where in lists.items()}
    found |= {name: reverse(f"admin:{where}_change", args=[pk]) for name, (where, pk) in change.items()}
    found["nothing-found"] = f"{found['verdicts']}?q=no-such-subject"
    found["ledger-searched"] = f"{found['ledger']}?actor=ada&action=trust.assigned"
    found["ledger-nothing"] = f"{found['ledger']}?target_kind=source&target_id=nowhere"
    found |= {page: reverse(f"admin:compliance_ledgerentry_{page}") for page in ("checkpoint", "verify", "population")}
    found["export-request"] = reverse("admin:compliance_auditexport_request")
    found["password"] = reverse("admin:password_change")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str, paths: dict[str, str]) -> Iterator[Browser]:
    """Started after the rows are there, and gone before they are taken away: Django refuses its ORM beside a running event loop."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


OpenPage = Callable[..., Watched]


@pytest.fixture
def open_page(browser: Browser, served: tuple[str, World]) -> Iterator[OpenPage]:
    """Opens a page of a given width that is signed in, and watches it."""
    address, _ = served
    contexts: list[BrowserContext] = []

    def opened(
        *, width: int, height: int = 900, dark: bool = False, signed_in: bool = True, zone: str = "Europe/Berlin"
    ) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", timezone_id=zone
        )
        contexts.append(context)
        page = context.new_page()
        watched = Watched(page, address)

        def heard(message: ConsoleMessage) -> None:
            if message.type in {"error", "warning"}:
                watched.worries.append(f"console {message.type}: {message.text}")

        def asked(request: Request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in {"data", "blob"} and f"{parts.scheme}://{parts.netloc}" != address:
                watched.worries.append(f"request to another host: {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: watched.worries.append(f"script error: {error}"))
        page.on("request", asked)
        if signed_in:
            watched.open("/admin/login/")
            page.fill("input[name=login]", EMAIL)
            page.fill("input[name=password]", PASSWORD)
            with watched.leaving(url=f"{address}/admin/"):
                page.click("button[type=submit]")
        return watched

    yield opened
    for context in contexts:
        context.close()
