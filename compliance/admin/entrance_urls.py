"""The pages of allauth that we open, under their own names: those that sign in and out, prove anew, and keep one's factors."""

from collections.abc import Sequence
from typing import Any

from allauth.account import views as account
from allauth.mfa import urls as mfa_urls
from allauth.socialaccount import views as company
from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from compliance.admin.entrance import own_password_first


def _guarded(patterns: Sequence[Any]) -> list[URLPattern | URLResolver]:
    """Put `own_password_first` before every view, however deep it lies."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            _guarded(pattern.url_patterns)
        else:
            pattern.callback = own_password_first(pattern.callback)
    return list(patterns)


urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", account.login, name="account_login"),
    path("logout/", account.logout, name="account_logout"),
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("reauthenticate/", own_password_first(account.reauthenticate), name="account_reauthenticate"),
    path("2fa/", include(_guarded(mfa_urls.urlpatterns))),
    path("company/cancelled/", company.login_cancelled, name="socialaccount_login_cancelled"),
    path("company/error/", company.login_error, name="socialaccount_login_error"),
]
if settings.OIDC_ISSUER:
    urlpatterns.append(path("", include("allauth.socialaccount.providers.openid_connect.urls")))
