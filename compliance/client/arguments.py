"""The parser of the `writegate` command's arguments, and what its options read."""

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from compliance.client.answers import DIGEST
from compliance.client.ask import read_end
from compliance.client.options import read_number
from compliance.client.outcome import Refused

MAX_WAIT_SECONDS = 7 * 24 * 60 * 60


class Parser(argparse.ArgumentParser):
    """Names an option that it does not know before it says which one is missing: a mistyped one that is required is both."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        # A parser of commands does not know the options of any.
        if args is not None and self._subparsers is None:
            self._refuse_unknown(args)
        return super().parse_known_args(args, namespace)

    def _refuse_unknown(self, given: Sequence[str]) -> None:
        for text in given:
            name = text.partition("=")[0]
            if text == "--":
                return
            # What has a space is a value, as argparse sees it.
            if name.startswith("--") and " " not in text and name not in self._option_string_actions:
                near = get_close_matches(name, self._option_string_actions, n=1)
                self.error(f"there is no option {name}{f'; did you mean {near[0]}?' if near else ''}")


def read_word(text: str) -> str:
    """Read a name or a sentence: an unset variable of a pipeline comes as nothing, and is a mistake."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    if not text.isprintable():
        raise argparse.ArgumentTypeError("it is no line of plain text")
    return text


def read_until(text: str) -> str:
    """Read an end, so that one that is none is refused before the gate is asked."""
    try:
        read_end(text)
    except Refused as refused:
        raise argparse.ArgumentTypeError(str(refused)) from refused
    return text


def read_wait(text: str) -> float:
    """Read how long to wait for people: days, where they take them."""
    return read_number(text, most=MAX_WAIT_SECONDS)


def read_digest(text: str) -> str:
    """Read the digest of a version."""
    if not DIGEST.match(text):
        raise argparse.ArgumentTypeError("write sha256: and 64 hexadecimal digits in lower case")
    return text
