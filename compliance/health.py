"""Two addresses for whoever watches us, answered without a login and without secrets.

`/healthz`: the process answers. `/readyz`: it can work; 200 when every part is ok, else 503.
"""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from compliance.selectors.health import read_readiness


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """`{"ok": true}`; touches neither the database nor the disk."""
    return JsonResponse({"ok": True})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """`{"ok": …, "checks": {"database": {"ok": …, "age_seconds": …}, "migrations": …, "worker": …, "scheduler": …}}`."""
    checks = read_readiness()
    ok = all(part.ok for part in checks.values())
    return JsonResponse({"ok": ok, "checks": {name: part.as_json() for name, part in checks.items()}}, status=200 if ok else 503)
