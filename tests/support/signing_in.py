"""Signing in as people do: over the real pages, with a second factor.

A code works once. Codes of the step before, of this one and of the next are taken (`MFA_TOTP_TOLERANCE`), so three are at hand at any
moment, and each half minute brings another: `code` gives the oldest that was not given yet in this process, and waits for the next
step when all are used up.
"""

import time
from collections import defaultdict
from typing import Any

import pyotp
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from compliance.models import User
from compliance.services.signing_in import account_actor, record_factor

PERIOD = 30
_given: defaultdict[str, set[int]] = defaultdict(set)


def give_totp(user: User) -> str:
    """Give an account an authenticator app, as its own page does, and return the secret."""
    secret: str = generate_totp_secret()
    with transaction.atomic():
        TOTP.activate(user, secret)
    record_factor(actor=account_actor(user), user=user, action="added", type="totp")
    return secret


def code(secret: str) -> str:
    """Return a code that is taken now and was not given before; waits at most half a minute."""
    while True:
        step = int(time.time()) // PERIOD
        for wanted in (step - 1, step, step + 1):
            if wanted not in _given[secret]:
                # The step may change on the way: a code of the last one is then too old, so it is given only where time is left.
                if wanted == step - 1 and time.time() % PERIOD > PERIOD - 3:
                    continue
                _given[secret].add(wanted)
                return pyotp.TOTP(secret).at(wanted * PERIOD)
        time.sleep(PERIOD - time.time() % PERIOD + 0.05)


def sign_in(client: Client, email: str, password: str, secret: str = "", *, next: str = "") -> HttpResponse:  # noqa: A002
    """Sign in over the pages, with a code where a secret is given; returns the last answer, a redirection where it worked."""
    answer: Any = client.post(reverse("account_login"), {"login": email, "password": password, "next": next})
    if secret and answer.status_code == 302 and answer["Location"].startswith(reverse("mfa_authenticate")):
        answer = client.post(reverse("mfa_authenticate"), {"code": code(secret)})
    return answer


def reauthenticate(client: Client, secret: str, *, next: str = "/admin/") -> HttpResponse:  # noqa: A002
    """Prove anew, by a code, that it is she; returns the answer, a redirection to `next` where it worked."""
    answer: Any = client.post(reverse("mfa_reauthenticate"), {"code": code(secret), "next": next})
    return answer
