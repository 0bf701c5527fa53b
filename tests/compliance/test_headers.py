"""Every answer carries a content policy, and nothing may come from another host."""

import pytest
from django.http import HttpResponse

from compliance.headers import ContentSecurityPolicyMiddleware


@pytest.mark.parametrize(
    ("path", "content_type", "part"),
    [
        ("/healthz", "application/json", "default-src 'none'"),
        ("/api/v1/policies", "application/problem+json", "default-src 'none'"),
        ("/anything", "text/html", "default-src 'self'"),
        ("/api/docs/", "text/html", "default-src 'self'"),
        ("/admin/", "text/html", "script-src 'self' 'unsafe-eval'; style-src"),
        ("/accounts/login/", "text/html", "form-action 'self';"),
    ],
)
def test_each_part_of_the_site_has_its_policy(rf, path: str, content_type: str, part: str) -> None:
    answer = ContentSecurityPolicyMiddleware(lambda _: HttpResponse("x", content_type=content_type))(rf.get(path))
    policy = answer.headers["Content-Security-Policy"]
    assert part in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert "*" not in policy


def test_the_pages_of_signing_in_run_nothing_inline_and_lead_to_the_company_s_issuer_alone(rf, settings) -> None:
    def policy() -> str:
        answer = ContentSecurityPolicyMiddleware(lambda _: HttpResponse("x"))(rf.get("/accounts/login/"))
        return answer.headers["Content-Security-Policy"]

    assert "unsafe" not in policy()
    settings.OIDC_ISSUER = "https://id.example.org/realms/staff"
    assert "form-action 'self' https://id.example.org;" in policy()
    assert "unsafe" not in policy()


def test_the_schema_browser_may_not_run_inline_scripts(rf) -> None:
    answer = ContentSecurityPolicyMiddleware(lambda _: HttpResponse("x"))(rf.get("/api/docs/"))
    assert "script-src" not in answer.headers["Content-Security-Policy"]


def test_a_view_keeps_the_policy_that_it_set(rf) -> None:
    own = HttpResponse("x", headers={"Content-Security-Policy": "default-src 'none'; sandbox"})
    answer = ContentSecurityPolicyMiddleware(lambda _: own)(rf.get("/admin/"))
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
