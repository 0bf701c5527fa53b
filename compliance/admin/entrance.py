"""How the console lets people in: what allauth asks of us, and the pages of it that we open.

Accounts are made by our services alone, so everything that would make or change one here is closed. Each page that somebody with a
one-time password must not see asks for a new one first.
"""

import base64
import logging
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base import AuthProcess
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from compliance.models.people import normalise_email
from compliance.selectors.access import find_account, has_second_factor
from compliance.services.signing_in import account_actor, connect_company_account, refuse_session
from evaluations.kernel.actor import system_job
from evaluations.kernel.canonical import digest_of

DOOR = system_job("sign-in")
LOCKED_SECONDS = 300
"""How long a lock-out is recorded once, as long as it lasts at least."""
logger = logging.getLogger("writegate.entrance")
View = Callable[..., HttpResponseBase]


def own_password_first(view: View) -> View:
    """Ask for a new password before anything else, where the account still has a one-time password."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if getattr(request.user, "must_change_password", False):
            return redirect("admin:password_change")
        return view(request, *args, **kwargs)

    return guarded


def may_enter(user: Any) -> bool:
    """True for an account that may use the console."""
    return bool(user.is_active and user.is_staff)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Nobody signs up; every refusal sounds the same and is recorded; a second factor outranks a password."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Return the account of right credentials, where it may enter; None otherwise, for whatever reason."""
        typed = str(credentials.get("email", ""))
        try:
            user = super().authenticate(request, **credentials)
        except ValidationError:
            if cache.add(f"writegate.locked:{digest_of(normalise_email(typed.strip()).encode())}", "y", timeout=LOCKED_SECONDS):
                refuse_session(actor=DOOR, user=find_account(email=typed), cause="locked_out")
            raise
        if user is not None and may_enter(user):
            return user
        refuse_session(actor=DOOR, user=find_account(email=typed), cause="wrong_password" if user is None else "may_not_enter")
        return None

    def reauthenticate(self, user: Any, password: str) -> bool:
        """Check the password of the account that is signed in; its address is on the account itself."""
        found = self.authenticate(self.request, email=user.email, password=password)
        return found is not None and found.pk == user.pk

    def pre_login(self, request: HttpRequest, user: Any, **details: Any) -> HttpResponse | None:
        """Stop an account that may not enter, by whatever road it comes: a passkey or the company's sign-in."""
        if not may_enter(user):
            refuse_session(actor=DOOR, user=user, cause="may_not_enter")
            return redirect("account_inactive")
        answer: HttpResponse | None = super().pre_login(request, user, **details)
        return answer

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Whoever has a second factor proves herself by it, and no longer by a password; by a recovery code at need."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if user.is_authenticated and has_second_factor(user_id=user.pk):
            return [method for method in methods if method["id"] != "reauthenticate"]
        return methods


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Keeps the secrets of factors encrypted: who reads the database, or a copy of it, cannot make codes."""

    def encrypt(self, text: str) -> str:
        return _cipher(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).decrypt(encrypted_text.encode()).decode()


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """The company's sign-in opens an account that is there already, under the same verified address; it makes none."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: Any) -> Any:
        """Keep nothing of what the company says about the person: her name lies in its one place."""
        sociallogin.account.extra_data = {}
        return super().populate_user(request, sociallogin, data)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Connect a company account with the account of the same address when it first comes; refuse every other.

        Done here and not by allauth, which would take the account's own password away and write past our services.
        """
        signing_in = sociallogin.state.get("process") in (None, AuthProcess.LOGIN)
        verified = {normalise_email(address.email) for address in sociallogin.email_addresses if address.verified}
        known = sociallogin.user if sociallogin.is_existing else None
        account = known or next(filter(None, (find_account(email=address) for address in sorted(verified))), None)
        if not signing_in or account is None or account.email not in verified or not may_enter(account):
            refuse_session(actor=DOOR, user=account, cause="company_account_refused")
            raise ImmediateHttpResponse(redirect(reverse("socialaccount_login_error")))
        if known is None:
            connect_company_account(
                actor=account_actor(account), user=account, provider=sociallogin.account.provider, uid=sociallogin.account.uid
            )
            sociallogin.lookup()

    def on_authentication_error(self, request: HttpRequest, provider: Any, error: Any = None, **details: Any) -> None:
        logger.warning("the company's sign-in failed: %s", error, exc_info=details.get("exception"))


@lru_cache(maxsize=4)
def _cipher(*secrets: str) -> MultiFernet:
    keys = (HKDF(SHA256(), 32, None, b"writegate second factors").derive(secret.encode()) for secret in secrets)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
