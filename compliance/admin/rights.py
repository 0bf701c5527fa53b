"""The pages that only some roles may read, and the page that says so to the others."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from compliance.selectors.access import holds_any_role
from compliance.vocabulary import TRAIL_READERS
from evaluations.kernel.actor import Actor, person
from evaluations.kernel.admin import ReadOnlyAdmin
from evaluations.kernel.clock import now

_ASKED = "_writegate_reads_trail"

View = Callable[..., HttpResponseBase]


def reads_trail(request: HttpRequest) -> bool:
    """True when the signed-in person holds one of `TRAIL_READERS` now; looked up once a request."""
    known: bool | None = getattr(request, _ASKED, None)
    if known is None:
        person_id: Any = getattr(request.user, "person_id", None)
        known = person_id is not None and holds_any_role(person_id=person_id, roles=TRAIL_READERS, at=now())
        setattr(request, _ASKED, known)
    return known


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in person as an actor."""
    user: Any = request.user
    return person(user.person_id)


class TrailAdmin(ReadOnlyAdmin):
    """A read-only list of the trail: for staff with one of `TRAIL_READERS`; others are told which role they lack."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request) and reads_trail(request)

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Say who sees the name of the list, which the frame asks on every page: this needs no look at the roles."""
        return {"add": False, "change": False, "delete": False, "view": self.has_module_permission(request)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return self.refuse_role(request)
        return super().changelist_view(request, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            return self.refuse_role(request)
        return super().change_view(request, object_id, form_url, extra_context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_view_permission(request):
            return self.refuse_role(request)
        return super().history_view(request, object_id, extra_context)

    def trail_path(self, route: str, view: View, name: str) -> URLPattern:
        """Return the address of a further page, for those alone who may read the trail."""

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not self.has_view_permission(request):
                return self.refuse_role(request)
            return view(request, *args, **kwargs)

        return path(route, self.admin_site.admin_view(guarded), name=f"{self.opts.app_label}_{self.opts.model_name}_{name}")

    def page(self, request: HttpRequest, template: str, title: str, *, status: int = 200, **context: Any) -> HttpResponse:
        """Render one of our own pages inside the frame."""
        request.current_app = self.admin_site.name
        whole = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, **context}
        return TemplateResponse(request, template, whole, status=status)

    def refuse_role(self, request: HttpRequest) -> HttpResponse:
        """Answer 403 with the roles that would open the page."""
        roles = [role.label for role in TRAIL_READERS]
        return self.page(request, "writegate/role_needed.html", "Another role is needed", status=403, roles=roles)
