"""Clients that speak as a person who is signed in, or as a token of hers."""

import json
from typing import Any

from django.test import Client

from compliance.models import User
from compliance.services.people import create_token
from tests.compliance.api.world import V1, Api, with_token
from tests.support import signing


def as_person(account: User, **options: Any) -> Api:
    """Return a client that is signed in as somebody, and has shown in this session that it is she."""
    client = Client(**options)
    client.force_login(account)
    signing.prove(account, session=str(client.session.session_key))
    return Api(client)


def as_token(account: User, *scopes: str) -> Api:
    made = create_token(actor=signing.actor_of(account), name="ci", scopes=scopes, person=account.person)
    return with_token(made.secret)


def post(api: Api, path: str, body: Any = None, **headers: str) -> Any:
    """Post a body; header names are written with underscores."""
    sent = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.post(f"{V1}/{path}", sent, content_type="application/json", headers={**api.headers, **given})
