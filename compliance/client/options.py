"""The options that every command shares which talks to a service: where it is, the token, how long to wait."""

import argparse
import math
import os
from pathlib import Path
from urllib.parse import SplitResult

from compliance.client.http import MAX_RETRIES, RETRIES, TIMEOUT_SECONDS, Server, check_address
from compliance.client.outcome import Refused

SERVER_VARIABLE = "WRITEGATE_SERVER"
TOKEN_VARIABLE = "WRITEGATE_TOKEN"  # noqa: S105 - the variable's name
MAX_TOKEN_BYTES = 4096
MAX_TIMEOUT_SECONDS = 3600


def add_server_options(parser: argparse.ArgumentParser, *, timeout: float = TIMEOUT_SECONDS) -> None:
    """Add what says which service is asked, and how patiently; `timeout` is in seconds."""
    parser.add_argument("--server", metavar="URL", help=f"such as https://gate.example.org; else {SERVER_VARIABLE} is read")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help=f"holds the token; else {TOKEN_VARIABLE} is read")
    parser.add_argument(
        "--timeout",
        type=read_seconds,
        default=timeout,
        metavar="SECONDS",
        help="for all attempts together; default: %(default)g",
    )
    parser.add_argument(
        "--retries", type=_retries, default=RETRIES, metavar="NUMBER", help="after the first attempt; default: %(default)s"
    )
    parser.add_argument("--allow-http", action="store_true", help="send the token over plain HTTP to another machine")


def server_address(given: argparse.Namespace) -> SplitResult:
    """Return the service's address, from the arguments or the environment. Raises `Refused`, `AddressRefused`."""
    url: str = given.server or os.environ.get(SERVER_VARIABLE, "")
    if not url:
        raise Refused(f"no server: give --server, or set {SERVER_VARIABLE}")
    return check_address(url, allow_http=given.allow_http)


def server_of(given: argparse.Namespace) -> Server:
    """Return the service with its token. Raises `Refused`, `AddressRefused`."""
    return Server(server_address(given), read_token(given.token_file))


def read_token(path: Path | None) -> str:
    """Return the token from a file or the environment. It is never an argument, which every process on the machine could read."""
    if path is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    else:
        where = str(path)
        try:
            with path.open("rb") as stream:
                token = stream.read(MAX_TOKEN_BYTES).decode("ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"no token can be read from {where}") from error
    token = token.strip()
    if not token and path is not None:
        raise Refused(f"no token: {where} is empty")
    if not token:
        raise Refused(f"no token: give --token-file, or set {TOKEN_VARIABLE}")
    if not is_token(token):
        raise Refused(f"what {where} holds is no token")
    return token


def is_token(text: str) -> bool:
    """Return whether a text can be sent as a token."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def read_seconds(text: str) -> float:
    """Read a time limit. Raises `argparse.ArgumentTypeError`."""
    return read_number(text, most=MAX_TIMEOUT_SECONDS)


def read_number(text: str, *, most: int) -> float:
    """Read seconds, more than none and at most so many. Raises `argparse.ArgumentTypeError`."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= most:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds above 0 and up to {most}")
    return seconds


def _retries(text: str) -> int:
    """Read how often to try again."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MAX_RETRIES:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 0 to {MAX_RETRIES}")
    return number
