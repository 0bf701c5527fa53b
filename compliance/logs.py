"""Log lines: one event a line, as text for people or JSON for machines, with secrets taken out."""

import json
import logging
import re
from datetime import UTC, datetime

# What a database driver or an HTTP library may quote in an error: the password part of an address, and tokens.
_SECRETS = (
    (re.compile(r"(?P<keep>[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@]+@"), r"\g<keep>***@"),
    (
        re.compile(
            r"(?P<keep>\b(?:password|secret|token|authorization)\b['\"]?\s*[=:]\s*['\"]?(?:(?:bearer|token|basic)\s+)?)"
            r"[^\s'\",;)}]+",
            re.IGNORECASE,
        ),
        r"\g<keep>***",
    ),
    (re.compile(r"(?P<keep>\bBearer\s+)\S+", re.IGNORECASE), r"\g<keep>***"),
    # Our own, wherever one stands: in an address somebody mistyped, or in an error that quotes its input.
    (re.compile(r"(?P<keep>\bwg_)[A-Za-z0-9_-]{16,}"), r"\g<keep>***"),
)
# What every record carries; anything else was put there by `extra=` and belongs to the event.
_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime", "taskName"}


def without_secrets(text: str) -> str:
    """The text with passwords in addresses, bearer tokens and `password=` values replaced by `***`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _extras(record: logging.LogRecord) -> dict[str, str]:
    return {
        key: without_secrets(str(value))
        for key, value in record.__dict__.items()
        if key not in _STANDARD and isinstance(value, str | int | float | bool)
    }


class WithoutReadiness(logging.Filter):
    """Drops Django's line about a 503 of `/readyz`: whoever asks gets the reasons, several times a minute."""

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        return not (record.name == "django.request" and getattr(request, "path", "") == "/readyz")


class PlainFormatter(logging.Formatter):
    """`12:00:00 warning compliance.health: text key=value`, times in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, tz=UTC).strftime("%H:%M:%S")
        text = " ".join([record.getMessage(), *(f"{key}={value}" for key, value in _extras(record).items())])
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return without_secrets(f"{moment} {record.levelname.lower()} {record.name}: {text}")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at` (RFC 3339, UTC), `level`, `logger`, `text`, `error` where there is one, and the extras."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            event["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(_extras(record) | event, ensure_ascii=False)
