"""Mail and chat by Apprise. The addresses in settings hold passwords: no error and no log line repeats a part of them."""

import logging
import re
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.crypto import salted_hmac

from compliance.services.outgoing import DeliveryFailed

SHOWN_REASON = 200
MASK = "***"
MAIL_SCHEMES = ("mailto", "mailtos")
_PARTS = re.compile(r"[:/@?&=,;#\s]+")


def chats() -> Mapping[str, str]:
    """Return the configured chats by their marks: keyed digests, by which a row names an address without holding it."""
    return {salted_hmac("writegate.chat", url).hexdigest()[:16]: url for url in settings.NOTICE_CHAT_URLS}


def send_mail(*, address: str, title: str, text: str) -> None:
    """Send one mail to one address. Raises `DeliveryFailed`."""
    try:
        validate_email(address)
    except ValidationError:
        raise DeliveryFailed("the account's e-mail address is none", final=True) from None
    url = settings.NOTICE_MAIL_URL
    if url and url.partition("://")[0].lower() not in MAIL_SCHEMES:
        raise DeliveryFailed("WRITEGATE_MAIL_URL is no mailto:// or mailtos:// address: correct it")
    messenger = _messenger(url, "WRITEGATE_MAIL_URL")
    # Set on the parsed object and not written into the address: nothing in it can be read as another recipient or option.
    messenger.targets = [(False, address)]
    messenger.cc, messenger.bcc = set(), set()
    messenger.notify_format = _library().NotifyFormat.TEXT
    _notify(messenger, title=title, text=text, url=url, also=address)


def send_chat(*, mark: str, title: str, text: str) -> None:
    """Send one message to the chat under a mark of `chats`. Raises `DeliveryFailed`."""
    url = chats().get(mark)
    if url is None:
        raise DeliveryFailed("this chat is no longer in WRITEGATE_CHAT_URLS", final=True)
    _notify(_messenger(url, "WRITEGATE_CHAT_URLS"), title=title, text=text, url=url)


@cache
def _library() -> Any:
    """Load Apprise when the first message needs it: that takes seconds, which no web process or command should pay."""
    with warnings.catch_warnings():
        # Its mail part looks for a module that newer Pythons lack, and does without.
        warnings.simplefilter("ignore", DeprecationWarning)
        import apprise
        import apprise.plugins.email
    return apprise


def _messenger(url: str, variable: str) -> Any:
    if not url:
        raise DeliveryFailed(f"{variable} is not set: set it")
    library = _library()
    with library.LogCapture(level=logging.WARNING):
        made = library.Apprise.instantiate(url)
    if made is None:
        raise DeliveryFailed(f"an address in {variable} cannot be read: correct it")
    return made


def _notify(messenger: Any, *, title: str, text: str, url: str, also: str = "") -> None:
    library = _library()
    outgoing = library.Apprise()
    outgoing.add(messenger)
    with library.LogCapture(level=logging.WARNING, fmt="%(message)s") as captured:
        taken = outgoing.notify(title=title, body=text, body_format=library.NotifyFormat.TEXT)
        said = captured.getvalue()
    if not taken:
        reason = masked(" ".join(said.split()), url, also)[:SHOWN_REASON]
        raise DeliveryFailed(f"not taken: {reason}" if reason else "not taken")


def masked(text: str, url: str, also: str = "") -> str:
    """Return the text without any part of the address but its scheme, as written and as decoded."""
    scheme, _, rest = url.partition("://")
    parts = {form for part in _PARTS.split(rest) for form in (part, unquote(part))} | set(_PARTS.split(also)) | {url, also}
    for part in sorted((part for part in parts if len(part) > 2 and part != scheme), key=len, reverse=True):
        text = text.replace(part, MASK)
    return text
