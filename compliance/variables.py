"""Variables of the environment, read by kind; what is written wrongly is named. Each may come from a file (NAME_FILE)."""

import os
from urllib.parse import urlsplit

from compliance.connections import read_variable


class VariableRefusedError(ValueError):
    """What a variable of the environment holds cannot be right; the text names it and says what to write."""


def text(name: str, default: str = "") -> str:
    """Return a text, the default where it is unset or empty."""
    return read_variable(os.environ, name) or default


def flag(name: str) -> bool:
    """Return a yes or no, no where it is unset. Raises `VariableRefusedError`."""
    value = text(name).lower()
    if value not in ("", "0", "1", "false", "true", "no", "yes"):
        raise VariableRefusedError(f"{name} must be 1 or 0, not {value!r}")
    return value in ("1", "true", "yes")


def words(name: str, default: str = "") -> list[str]:
    """Return the parts of a text that commas divide."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def named(prefix: str) -> dict[str, str]:
    """Return the variables whose names begin so, by name; those that are empty are left out."""
    names = {name.removesuffix("_FILE") for name in os.environ if name.startswith(prefix)}
    found = {name: text(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if value}


def whole(name: str, default: int, *, most: int | None = None) -> int:
    """Return a whole number above 0, at most `most` where that is given. Raises `VariableRefusedError`."""
    value = text(name, str(default))
    if not (value.isascii() and value.isdigit() and int(value) > 0) or (most is not None and int(value) > most):
        limits = "above 0" if most is None else f"from 1 to {most}"
        raise VariableRefusedError(f"{name} must be a whole number {limits}, not {value!r}")
    return int(value)


def https_address(name: str) -> str:
    """Return an https address without query or fragment, and without a final `/`; "" where it is unset.

    Raises `VariableRefusedError`.
    """
    given = text(name)
    parts = urlsplit(given)
    if given and (parts.scheme != "https" or not parts.hostname or "?" in given or "#" in given or "@" in parts.netloc):
        raise VariableRefusedError(f"{name} must be an https address without user, query or fragment, not {given!r}")
    return given.rstrip("/")
