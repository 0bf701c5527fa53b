"""The console's site: who gets in, what comes first, and how an actor is called."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.sites import UnfoldAdminSite

from compliance.admin.forms import OwnPasswordForm
from compliance.selectors.actors import actor_names

ALWAYS_OPEN = frozenset({"password_change", "logout", "i18n_javascript"})
"""What an account with a one-time password may still do."""


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]
    """Django's admin site in our frame. Staff accounts alone sign in (Django's own rule); nothing is written here but a password."""

    index_title = "Home"
    password_change_template = "writegate/password_change.html"  # noqa: S105 - a template, no password

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:  # noqa: FBT001, FBT002 - Django's own
        """Ask for a new password before anything else, where the account still has a one-time password."""

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            must_change = getattr(request.user, "must_change_password", False)
            if must_change and getattr(view, "__name__", "") not in ALWAYS_OPEN:
                return HttpResponseRedirect(reverse(f"{self.name}:password_change"))
            response: HttpResponse = view(request, *args, **kwargs)
            return response

        wrapped: Callable[..., Any] = super().admin_view(guarded, cacheable)
        return wrapped

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Lead to the one page where people sign in, with its limits and second factors; Django's own form is never shown."""
        # Not at the top, as below: allauth's models need the app registry to be ready.
        from allauth.account.decorators import secure_admin_login

        answer: HttpResponseBase = secure_admin_login(super().login)(request, extra_context)
        return answer

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Change one's own password through the service that records it."""
        # Not at the top: Django's views module needs the app registry to be ready, and this module is loaded with it.
        from django.contrib.auth.views import PasswordChangeView

        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse(f"{self.name}:password_change_done", current_app=self.name),
            template_name=self.password_change_template,
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The fleet: which subjects each policy clears, each answer a link to its verdict."""
        # Not at the top: it reads the pages of the apps below, which register with this very site.
        from compliance.admin import home

        context = {
            **self.each_context(request),
            "title": self.index_title,
            "index": True,
            **home.context(request),
            **(extra_context or {}),
        }
        request.current_app = self.name
        return TemplateResponse(request, "writegate/home.html", context)

    def actor_names(self, references: Collection[str]) -> Mapping[str, str]:
        """Return names for actors as rows cite them."""
        return actor_names(references)
