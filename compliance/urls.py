"""Addresses of the site. What they do not name is answered with problem details, the console's own part excepted.

The doors of AuthZEN under `/access/v1/` are not among them: the first middleware answers there.
"""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from compliance import health
from compliance.api.authzen.discovery import discovery
from compliance.api.metrics import metrics
from compliance.api.schema import DocsView, SchemaView

handler400 = "compliance.api.errors.bad_request"
handler403 = "compliance.api.errors.permission_denied"
handler404 = "compliance.api.errors.not_found"
handler500 = "compliance.api.errors.server_error"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("accounts/", include("compliance.admin.entrance_urls")),
    path("api/v1/", include("compliance.api.v1.urls")),
    path("api/schema/", SchemaView.as_view(), name="api-schema"),
    path("api/docs/", DocsView.as_view(), name="api-docs"),
    path(".well-known/authzen-configuration", discovery, name="authzen-configuration"),
    path(".well-known/authzen-configuration/<path:path>", discovery, name="authzen-configuration-of-path"),
    path("ledger/", include("compliance.api.trail")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
