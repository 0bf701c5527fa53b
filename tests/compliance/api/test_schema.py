"""The published description: whole, without warnings, open, and with nothing loaded from outside."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from drf_spectacular.drainage import GENERATOR_STATS, reset_generator_stats
from jsonschema import Draft202012Validator

from compliance.api.authzen.denials import REQUESTS
from compliance.api.authzen.discovery import ENDPOINTS
from tests.compliance.api.world import nobody


def test_the_schema_is_generated_without_a_warning(tmp_path: Path) -> None:
    reset_generator_stats()
    target = tmp_path / "schema.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(target), stdout=StringIO())
    assert not GENERATOR_STATS
    assert "/api/v1/evidence" in target.read_text(encoding="utf-8")


@pytest.mark.django_db
def test_the_schema_covers_every_address_and_every_answer_of_it() -> None:
    answer = nobody().get("/api/schema/", {"format": "json"})
    assert answer.status_code == 200
    schema = json.loads(answer.content)
    assert len(schema["paths"]) == 101
    doors = {path for path in schema["paths"] if not path.startswith("/api/")}
    assert len(doors) == 9
    for path, operations in schema["paths"].items():
        if path in doors:
            continue
        for method, operation in operations.items():
            assert {"400", "401", "403", "503"} <= set(operation["responses"]), (path, method)
            if "{" in path:
                assert "404" in operation["responses"], path
            assert operation["security"], path
            for status, described in operation["responses"].items():
                if status >= "400":
                    assert list(described["content"]) == ["application/problem+json"]
    decimal = schema["components"]["schemas"]["Observation"]["properties"]["value"]
    assert decimal["type"] == "string"


@pytest.mark.django_db
def test_the_docs_page_loads_only_what_this_site_serves() -> None:
    page = nobody().get("/api/docs/")
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")
    html = page.content.decode()
    assert not re.search(r"<script[^>]*>\s*\S[^<]*</script>", html), "the content policy refuses inline scripts"
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)["']""", html)
    assert len(addresses) >= 4
    for address in addresses:
        assert address.startswith("/"), address
        if address.startswith("/static/"):
            assert finders.find(address.removeprefix("/static/")), address
    script = nobody().client.get(next(address for address in addresses if "script" in address and "?" in address))
    assert script.headers["Content-Type"].startswith("application/javascript")
    assert b"/api/schema/" in script.content
    assert not re.search(rb"https?://", script.content)


@pytest.mark.django_db
def test_the_docs_page_keeps_the_strict_content_policy() -> None:
    policy = nobody().get("/api/docs/").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src" not in policy or "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


@pytest.mark.django_db
def test_the_doors_of_authzen_are_described_with_errors_in_text() -> None:
    schema = json.loads(nobody().get("/api/schema/", {"format": "json"}).content)
    paths = {path: operations for path, operations in schema["paths"].items() if path.startswith("/access/v1/")}
    doors = {path: operations["post"] for path, operations in paths.items() if not path.startswith(REQUESTS)}
    assert {*doors, REQUESTS} == set(ENDPOINTS.values())
    for operation in doors.values():
        assert operation["security"] == [{"token": []}]
        for status in ("400", "401", "403", "413", "429", "500"):
            assert list(operation["responses"][status]["content"]) == ["text/plain; charset=utf-8"]
    requests = {path: set(operations) for path, operations in paths.items() if path.startswith(REQUESTS)}
    assert requests == {REQUESTS: {"post"}, f"{REQUESTS}/{{id}}": {"get"}, f"{REQUESTS}/{{id}}/cancel": {"post"}}
    for operation in (operation for path in requests for operation in paths[path].values()):
        for status, response in operation["responses"].items():
            assert list(response["content"]) == ["application/json" if status < "300" else "application/problem+json"], status


@pytest.mark.django_db
def test_the_examples_of_the_doors_are_as_the_schema_describes_them() -> None:
    schema = json.loads(nobody().get("/api/schema/", {"format": "json"}).content)
    seen = 0
    for path, operations in schema["paths"].items():
        if path.startswith("/access/v1/"):
            for operation in operations.values():
                for part in [operation.get("requestBody", {}), *operation["responses"].values()]:
                    for held in part.get("content", {}).values():
                        check = Draft202012Validator({**held["schema"], "components": schema["components"]})
                        for name, example in held.get("examples", {}).items():
                            assert list(check.iter_errors(example["value"])) == [], (path, name)
                            seen += 1
    assert seen == 6 + 11
